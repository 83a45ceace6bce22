package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// BaseDigest returns the name of a base, the SHA-256 of it in hexadecimal.
func BaseDigest(base []byte) string {
	sum := sha256.Sum256(base)
	return hex.EncodeToString(sum[:])
}

// A Fork is new runs that all begin at the same machine, their base. See [Store.Fork].
type Fork struct {
	Base []byte // the machine, encoded; a store does not look into it
	// Shelf is what effects have returned behind the checkpoint, for the runs to take it from
	// there: nil if nothing. It depends on how far the origin has gone on, and the machine does
	// not, so it is a base of its own.
	Shelf []byte
	Runs  []ForkedRun
}

// A ForkedRun is one run of a [Fork]: its id and its first append.
type ForkedRun struct {
	Run string
	// Entries begin with an [Opened] one, whose [Opening] has an Origin that names the base and
	// the shelf.
	Entries []Entry
}

// Check returns an error unless f can be made of it, and otherwise the digests of its bases, each
// once, in order. It is for stores, which know then that ids are valid and different, and that
// every run's first append is that of a fork of these bases.
func (f Fork) Check() (digests []string, err error) {
	switch {
	case len(f.Base) == 0:
		return nil, &ArgumentError{"Fork", "base", "is empty: give the machine that the runs begin at"}
	case len(f.Runs) == 0:
		return nil, &ArgumentError{"Fork", "list of runs", "is empty: name at least one"}
	}
	begin := Info{First: 1, Base: BaseDigest(f.Base), Origin: &Origin{}}
	if len(f.Shelf) > 0 {
		begin.Origin.Shelf = BaseDigest(f.Shelf)
	}
	ids := make(map[string]bool, len(f.Runs))
	for i := range f.Runs {
		r := &f.Runs[i]
		if err := CheckRunID(r.Run); err != nil {
			return nil, err
		}
		if ids[r.Run] {
			return nil, &ArgumentError{"Fork", "list of runs", fmt.Sprintf("names %q twice: give each an id of its own", r.Run)}
		}
		ids[r.Run] = true
		if what := r.fault(begin.Base, begin.Origin.Shelf); what != "" {
			return nil, &ArgumentError{"Fork", fmt.Sprintf("list of entries of run %q", r.Run), what}
		}
	}
	return begin.Bases(), nil
}

// Bases returns the base, and the shelf if there is one. It is for stores.
func (f Fork) Bases() [][]byte {
	if len(f.Shelf) == 0 {
		return [][]byte{f.Base}
	}
	return [][]byte{f.Base, f.Shelf}
}

// fault says why the entries can't be those of a fork of that base and shelf, "" if they can.
func (r *ForkedRun) fault(base, shelf string) string {
	if len(r.Entries) == 0 || r.Entries[0].Kind != Opened {
		return "does not begin with an opened one"
	}
	var o Opening
	if err := json.Unmarshal(r.Entries[0].Data, &o); err != nil {
		return "begins with data that is no opening: " + err.Error()
	}
	switch {
	case o.Origin == nil || o.Origin.Base != base:
		return "does not name the base as its origin: digest " + base
	case o.Origin.Shelf != shelf && shelf == "":
		return "names a shelf, and none is given"
	case o.Origin.Shelf != shelf:
		return "does not name the shelf that is given: digest " + shelf
	}
	for _, e := range r.Entries[1:] {
		if e.Kind == Opened || e.Kind == Trimmed {
			return fmt.Sprintf("has a further %s one", e.Kind)
		}
	}
	return ""
}

// Bases returns the digests of the bases that the run needs, each once, in order: of a fork also
// that of its shelf, until it is trimmed, for then it goes on from another machine.
func (i Info) Bases() []string {
	var digests []string
	if i.Base != "" {
		digests = append(digests, i.Base)
	}
	if i.First <= 1 && i.Origin != nil && i.Origin.Shelf != "" {
		digests = append(digests, i.Origin.Shelf)
	}
	for _, p := range i.Pins {
		digests = append(digests, p.Base)
	}
	slices.Sort(digests)
	return slices.Compact(digests)
}

// Own returns i with maps and slices of its own.
func (i Info) Own() Info {
	i.Labels, i.Pins = maps.Clone(i.Labels), slices.Clone(i.Pins)
	if i.Origin != nil {
		origin := *i.Origin
		i.Origin = &origin
	}
	return i
}

// is reports whether two origins say the same.
func (o *Origin) is(other *Origin) bool {
	if o == nil || other == nil {
		return o == other
	}
	return *o == *other
}
