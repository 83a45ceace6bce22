package record

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Change is one difference between two records.
type Change struct {
	Section string          // as the member is called: decisions
	ID      string          // of the item; "" if the section has none
	Field   string          // of it; "" if the whole item came or went
	Before  json.RawMessage // null if there was nothing
	After   json.RawMessage // null if there is nothing any more
}

// String tells the change on one line: decisions d: status "tentative", now "accepted".
func (c Change) String() string {
	where := strings.TrimSpace(c.Section + " " + c.ID)
	switch {
	case c.Field != "":
		return fmt.Sprintf("%s: %s %s, now %s", where, c.Field, brief(c.Before), brief(c.After))
	case string(c.Before) == "null":
		return fmt.Sprintf("%s: new: %s", where, brief(c.After))
	}
	return fmt.Sprintf("%s: gone: %s", where, brief(c.Before))
}

// Diff tells what has changed from a to b, in the order of the sections, items and fields. It
// does not tell which versions they are: ids of records, hashes, and who made them when.
func Diff(a, b *Record) ([]Change, error) {
	if a == nil || b == nil {
		return nil, &ArgumentError{"Diff", "record", "is nil: give two"}
	}
	a, b = cloned(a), cloned(b)
	var all []Change
	all = append(all, fields("source", "", a.Source, b.Source)...)
	all = append(all, fields("task", "", a.Task, b.Task)...)
	all = append(all, fields("executionSummary", "", a.ExecutionSummary, b.ExecutionSummary)...)
	for _, s := range sections {
		all = append(all, s.diff(a, b)...)
	}
	return append(all, fields("metadata", "", a.Metadata, b.Metadata)...), nil
}

// Diff tells what has changed from the last version of a record to that of another.
func (l *Ledger) Diff(ctx context.Context, a, b string) ([]Change, error) {
	one, err := l.whole(ctx, "Diff", a)
	if err != nil {
		return nil, err
	}
	other, err := l.whole(ctx, "Diff", b)
	if err != nil {
		return nil, err
	}
	return Diff(one.all[len(one.all)-1].Record, other.all[len(other.all)-1].Record)
}

func (l *list[T]) diff(a, b *Record) (all []Change) {
	inA, inB := index(*l.of(a)), index(*l.of(b))
	for _, id := range order(*l.of(a), *l.of(b)) {
		x, y := inA[id], inB[id]
		if x == nil || y == nil {
			all = append(all, Change{l.name, id, "", json.RawMessage(say(x)), json.RawMessage(say(y))})
			continue
		}
		all = append(all, fields(l.name, id, x, y)...)
	}
	return all
}

// fields compares two structs by the members of their JSON.
func fields(section, id string, a, b any) (all []Change) {
	before, after := members(a), members(b)
	names := maps.Clone(before)
	maps.Copy(names, after)
	null := func(raw json.RawMessage) json.RawMessage {
		if raw == nil {
			return json.RawMessage("null")
		}
		return raw
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if string(before[name]) != string(after[name]) {
			all = append(all, Change{section, id, name, null(before[name]), null(after[name])})
		}
	}
	return all
}

func members(v any) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(say(v)), &all); err != nil || all == nil {
		return map[string]json.RawMessage{}
	}
	return all
}
