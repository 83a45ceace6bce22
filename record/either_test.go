package record_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// eitherWay merges two records of a book into each other, each into the other in a book of its own,
// and returns what comes of it, which has to be the same if the strategy is exchanged as well: nil
// if it is a conflict.
func eitherWay(t *testing.T, build func() *book, a, b string, s record.Strategy) *record.Record {
	t.Helper()
	merge := func(into, of string, s record.Strategy) *record.Record {
		t.Helper()
		v, err := build().Merge(t.Context(), into, of, s, ann)
		var conflict *record.MergeError
		if errors.As(err, &conflict) {
			return nil
		}
		done(t, err)
		return v.Record
	}
	say := func(r *record.Record) string {
		if r == nil {
			return "a conflict"
		}
		return content(r)
	}
	exchanged := map[record.Strategy]record.Strategy{record.PreferA: record.PreferB, record.PreferB: record.PreferA, record.Manual: record.Manual}
	one, other := merge(a, b, s), merge(b, a, exchanged[s])
	if say(one) != say(other) {
		t.Errorf("%s into %s, %s, and exchanged:\n%s\n%s", b, a, s, say(one), say(other))
	}
	return one
}

var strategies = []record.Strategy{record.PreferA, record.PreferB, record.Manual}

// toldAt is what the log of a run tells at a position: which way it went last.
func toldAt(seq uint64, way string) *record.Record {
	r := draft("r")
	r.Source = &record.Source{Run: "r", Seq: seq, Digest: "00", Graph: "g"}
	r.Decisions[0].Description, r.Decisions[0].Status = way, dag.Accepted
	return r
}

// Of two records that have heard the same of a run, what people decided in one of them contradicts
// nothing in the other, whenever that was and whatever the run has decided since; which is merged
// into which does not matter.
func TestPeopleAreHeardInAMergeAtOnePosition(t *testing.T) {
	for before := range 3 {
		contest := func() *book {
			b := newBook(t)
			b.branch(t, "other", toldAt(1, "left"), b.create(t, toldAt(1, "left")))
			for i, next := range []string{"straight", "back", ""} {
				if i == before {
					b.override(t, "r", "right")
				}
				for _, id := range []string{"r", "other"} {
					if next != "" {
						_, err := b.Advance(t.Context(), id, toldAt(uint64(i+2), next), cron)
						done(t, err)
					}
				}
			}
			return b
		}
		for _, s := range strategies {
			if m := eitherWay(t, contest, "r", "other", s); m == nil || way(m)[0] != "right" {
				t.Errorf("decided when %d steps more were heard, %s: %s", before, s, show(m))
			}
		}
	}
}

// Two records that know nothing of each other stand at one position of a run, and somebody wrote
// another goal and a learning into one before it was kept: the learning is kept, the goals
// contradict each other.
func TestMergeAtOnePositionOfWhatWasWrittenIn(t *testing.T) {
	strangers := func() *book {
		b := newBook(t)
		b.create(t, toldAt(1, "left"))
		other := toldAt(1, "left")
		other.ID, other.Task.Goal, other.Learnings = "other", "swim", []record.Learning{{ID: "l", Content: "wet", LearnedBy: ann}}
		b.create(t, other)
		return b
	}
	for _, s := range strategies {
		m := eitherWay(t, strangers, "r", "other", s)
		if (m == nil) != (s == record.Manual) || m != nil && (len(m.Learnings) != 1 || (m.Task.Goal == "swim") != (s == record.PreferB)) {
			t.Errorf("%s: %s", s, show(m))
		}
	}
}

// A record that was merged into another one catches up with what came of it, also where they stand
// at one position: it says what that says, down to the order of tags.
func TestCatchingUpAtOnePosition(t *testing.T) {
	merged := func() *book {
		b := newBook(t)
		b.branch(t, "other", toldAt(1, "left"), b.create(t, toldAt(1, "left")))
		b.override(t, "other", "right")
		for _, id := range []string{"r", "other"} {
			_, err := b.Advance(t.Context(), id, toldAt(2, "straight"), cron)
			done(t, err)
		}
		b.change(t, "other", func(r *record.Record) { r.Metadata.Tags = []string{"y", "x"} })
		v, err := b.Merge(t.Context(), "r", "other", record.Manual, ann)
		done(t, err)
		b.learn(t, v, "since")
		return b
	}
	for _, s := range strategies {
		if m := eitherWay(t, merged, "r", "other", s); m == nil || way(m)[0] != "right" || len(m.Learnings) != 1 {
			t.Errorf("%s: %s", s, show(m))
		}
	}
}

// Whatever the order in which two records go on with a run, are changed and merged: of the last
// merge the same comes whichever is merged into the other. As many orders are tried as of
// TestRandomAdvancesAndMerges.
func TestRandomMergesEitherWay(t *testing.T) {
	t.Parallel()
	for seed := range randomOrders(t) {
		var told []string
		build := func() *book {
			s := newSaga(t, rand.NewPCG(uint64(seed), 5))
			for range 12 {
				s.step()
			}
			for s.of["other"] == nil {
				s.step()
			}
			told = s.told
			return s.book
		}
		for _, how := range strategies {
			eitherWay(t, build, "r", "other", how)
			if t.Failed() {
				t.Fatalf("order %d: %q", seed, told)
			}
		}
	}
}
