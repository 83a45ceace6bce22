package record

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
)

// An item is what the lists of a record have, each under an id.
type item interface {
	Decision | Learning | Question | Blocker | ResumePoint | ToolEffect | Invariant
}

func idOf[T item](x *T) string {
	switch x := any(x).(type) {
	case *Decision:
		return x.ID
	case *Learning:
		return x.ID
	case *Question:
		return x.ID
	case *Blocker:
		return x.ID
	case *ResumePoint:
		return x.ID
	case *ToolEffect:
		return x.ID
	case *Invariant:
		return x.ID
	}
	return ""
}

// find is the item of an id, nil if there is none.
func find[T item](list []T, id string) *T {
	for i := range list {
		if idOf(&list[i]) == id {
			return &list[i]
		}
	}
	return nil
}

// index has the items of a list by their ids: what find is for one, it is for many.
func index[T item](list []T) map[string]*T {
	all := make(map[string]*T, len(list))
	for i := range list {
		if id := idOf(&list[i]); all[id] == nil {
			all[id] = &list[i]
		}
	}
	return all
}

// pairs yields each item of a list, and the one of its id in another list, nil if there is none.
func pairs[T item](list, other []T) iter.Seq2[*T, *T] {
	return func(yield func(x, y *T) bool) {
		all := index(other)
		for i := range list {
			if x := &list[i]; !yield(x, all[idOf(x)]) {
				return
			}
		}
	}
}

// put adds items, or has each take the place of the one of its id.
func put[T item](list []T, more ...T) []T {
	at := make(map[string]int, len(list))
	for i := range slices.Backward(list) { // of several the first
		at[idOf(&list[i])] = i
	}
	for _, x := range more {
		id := idOf(&x)
		if i, was := at[id]; was {
			list[i] = x
			continue
		}
		at[id] = len(list)
		list = append(list, x)
	}
	return list
}

// say is a value as JSON, in which equal values are equal, for people as well.
func say(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?" + err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// content is all of a record but what says which version of which record it is.
func content(r *Record) string {
	c := cloned(r)
	c.identify(&Record{})
	return say(c)
}

// identify has a record say that it is the version of the record that another one is.
func (r *Record) identify(as *Record) {
	r.ID, r.Version, r.ContentHash = as.ID, as.Version, as.ContentHash
	r.ParentCRHash, r.MergedCRHash, r.MerkleRoot = as.ParentCRHash, as.MergedCRHash, as.MerkleRoot
	r.CreatedBy, r.CreatedAt = as.CreatedBy, as.CreatedAt
	r.LastModifiedBy, r.LastModifiedAt = as.LastModifiedBy, as.LastModifiedAt
}
