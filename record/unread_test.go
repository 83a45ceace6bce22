package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// A record that is too damaged to be read hides no version of another, older or newer; of a version
// that is in no other it is not said that there is none.
func TestVersionsAreFoundBesideADamagedRecord(t *testing.T) {
	var s memory.Faulty
	l := ledgerOver(t, &s, nil)
	versions := map[string]*record.Version{}
	for _, id := range []string{"a", "b", "c"} {
		r := draft(id)
		r.Task.Goal = "walk to " + id
		v, err := l.Create(t.Context(), r, bot)
		done(t, err)
		versions[id] = v
	}
	merged, err := l.Merge(t.Context(), "c", "b", record.PreferA, ann)
	done(t, err)
	all, err := l.Ancestors(t.Context(), merged.Record.ContentHash)
	if err != nil || len(all) != 2 {
		t.Fatalf("the ancestors of the merge are %v, %v, want those in b and c", all, err)
	}

	s.Spoil("pawl.record/b", checkpoint.PartInfo)
	for _, want := range []*record.Version{versions["a"], versions["c"], merged} {
		v, err := l.GetByHash(t.Context(), want.Record.ContentHash)
		if err != nil || v.Record.ID != want.Record.ID || v.Number != want.Number {
			t.Errorf("version %d of %s: %+v, %v", want.Number, want.Record.ID, v, err)
		}
	}
	for _, hash := range []string{versions["b"].Record.ContentHash, "another"} {
		if _, err := l.GetByHash(t.Context(), hash); !errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, record.ErrNotFound) {
			t.Errorf("the version of %q: %v, want that b is damaged", hash, err)
		}
	}
	if all, err := l.Ancestors(t.Context(), merged.Record.ContentHash); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("the ancestors of the merge are %v, %v, want that b is damaged", all, err)
	}
	if all, err := l.Ancestors(t.Context(), versions["c"].Record.ContentHash); err != nil || len(all) > 0 {
		t.Errorf("the first version of c has the ancestors %v, %v", all, err)
	}
}

// A locked store has runs that it can't read, since the keys are not those they were sealed with.
type locked struct {
	*memory.Store
	runs []string
}

func (s *locked) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	f.Graph = "" // nobody can read whose it is
	page, err := s.Store.List(ctx, f)
	for i, info := range page {
		if slices.Contains(s.runs, info.Run) {
			return page[:i], checkpoint.Corrupt(info.Run, 2, checkpoint.ErrKey)
		}
	}
	return page, err
}

// Versions are found beside a record that these keys can't read, as beside a damaged one; and a run
// that is no record, and can't be read, is none of theirs.
func TestVersionsAreFoundBesideWhatIsLocked(t *testing.T) {
	b := newBook(t)
	a, c := b.create(t, draft("a")), b.create(t, draft("c"))
	locks := &locked{b.store, []string{"pawl.record/b"}}
	b.create(t, draft("b"))
	g := dag.New[struct{}]("walk")
	dag.Step(g, "only", func(context.Context, *struct{}) error { return nil })
	walk, err := g.Build()
	done(t, err)
	d, err := dispatcher.New(walk, b.store, dispatcher.Options{})
	done(t, err)
	_, err = d.Run(t.Context(), "some-run", nil)
	done(t, err)
	for _, r := range []struct {
		locked string
		absent error
	}{{"pawl.record/b", checkpoint.ErrKey}, {"some-run", record.ErrNotFound}} {
		locks.runs = []string{r.locked}
		l := ledgerOver(t, locks, nil)
		for _, want := range []*record.Version{a, c} {
			if v, err := l.GetByHash(t.Context(), want.Record.ContentHash); err != nil || v.Record.ID != want.Record.ID {
				t.Errorf("beside %s version %s: %+v, %v", r.locked, want.Record.ID, v, err)
			}
		}
		if _, err := l.GetByHash(t.Context(), "another"); !errors.Is(err, r.absent) {
			t.Errorf("beside %s a version that there is not: %v, want %v", r.locked, err, r.absent)
		}
	}
}

// An endless store never comes to the end of a listing: behind each run that it tells, it says that
// the one to go on behind was deleted.
type endless struct {
	*memory.Store
	told string // the run
}

func (s *endless) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	if f.After != "" {
		return nil, fmt.Errorf("%w: run %q", checkpoint.ErrNotFound, f.After)
	}
	info, err := s.Stat(ctx, s.told)
	if err != nil {
		return nil, err
	}
	return []checkpoint.Info{info}, fmt.Errorf("%w: run %q", checkpoint.ErrNotFound, s.told)
}

// Where a listing breaks off because runs are deleted all the time, nobody knows which records
// there are: what was not found by then is not taken for what is not there. Ancestors tells no
// fewer than there are, and a merge whose common ancestor may be among the rest is refused.
func TestAListingThatBreaksOff(t *testing.T) {
	b := newBook(t)
	origin := b.create(t, draft("origin"))
	branch := func(id string) *record.Version {
		r := draft(id)
		r.ParentCRHash = origin.Record.ContentHash
		return b.learn(t, b.create(t, r), "of "+id)
	}
	a := branch("a")
	branch("b")

	l := ledgerOver(t, &endless{b.store, "pawl.record/a"}, nil)
	if all, err := l.Ancestors(t.Context(), a.Record.ContentHash); err == nil {
		t.Errorf("the ancestors of a are %+v, want that they can't be told", all)
	}
	b.unchanged(t, func() error {
		_, err := l.Merge(t.Context(), "a", "b", record.PreferA, ann)
		return err
	})
}

// A version that somebody has copied into other records is the one of the record that it was
// written for; if that is not there, it is told as what is broken in the first of the others, in
// whichever order they are read.
func TestAVersionThatWasCopiedIntoOtherRecords(t *testing.T) {
	b := newBook(t)
	x := b.create(t, draft("x"))
	for _, id := range []string{"a", "b"} {
		b.learn(t, b.branch(t, id, draft(id), x), "of "+id)
	}
	var copied checkpoint.Entry
	for e, err := range b.store.Read(t.Context(), "pawl.record/x", preamble+1, 0) {
		done(t, err)
		copied = e
		copied.Data = bytes.Clone(e.Data)
	}
	for _, id := range []string{"c", "d", "e"} {
		b.create(t, draft(id))
	}
	for _, there := range []bool{true, false} {
		for range 20 {
			s := forged(t, b.store, func(all []checkpoint.Entry) []checkpoint.Entry {
				for _, id := range []string{"c", "d", "e"} {
					if bytes.Contains(all[len(all)-1].Data, []byte(`"id":"`+id+`"`)) {
						return append(all, copied)
					}
				}
				return all
			})
			if !there {
				done(t, s.Delete(t.Context(), "pawl.record/x"))
			}
			l := ledgerOver(t, s, nil)
			v, err := l.GetByHash(t.Context(), x.Record.ContentHash)
			done(t, err)
			same(t, "it", []any{v.Record.ID, v.Unverified == ""}, []any{"x", there})
			_, err = l.Merge(t.Context(), "a", "b", record.PreferA, ann)
			var broken *record.BrokenError
			if there && err != nil || !there && (!errors.As(err, &broken) || broken == nil || broken.ID != "c") {
				t.Fatalf("merged, x is there: %v: %v", there, err)
			}
			if !there && v.Unverified != broken.Error() {
				t.Errorf("found is what is broken by %s, and merged over by %v", v.Unverified, broken)
			}
		}
	}
}
