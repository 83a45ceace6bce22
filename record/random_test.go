package record_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// Whatever the order in which records of a run go on with it, people change them, and one that is
// no further is merged into the other: a record says what people have decided in it, or in what was
// merged into it, and else what the log says by then; it has the tags of both but those that either
// has taken away, and counts each step once. PAWL_RANDOM is how many orders are tried, by
// default 30.
func TestRandomAdvancesAndMerges(t *testing.T) {
	t.Parallel()
	for seed := range randomOrders(t) {
		s := newSaga(t, rand.NewPCG(uint64(seed), 3))
		for range 14 {
			s.check(s.step())
			if t.Failed() {
				t.Fatalf("order %d: %q", seed, s.told)
			}
		}
	}
}

// randomOrders is how many orders a test is to try.
func randomOrders(t *testing.T) int {
	t.Helper()
	n := 30
	if text := os.Getenv("PAWL_RANDOM"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// A saga is a run, the records of it, and what people have made of them.
type saga struct {
	*testing.T
	*rand.Rand
	*book
	log  []*record.Record // what it tells, by positions
	of   map[string]*people
	n    int
	told []string
}

// People are what was done to a record beside the log, which it has heard up to seq.
type people struct {
	seq   int
	chose map[string]string
	tags  map[string]bool // false if one was taken away
}

// newSaga has a run take its first step, of which there is a record.
func newSaga(t *testing.T, from rand.Source) *saga {
	t.Helper()
	s := &saga{T: t, Rand: rand.New(from), book: newBook(t), of: map[string]*people{}}
	s.goesOn()
	s.create(t, s.fresh())
	s.of["r"] = &people{seq: 1, chose: map[string]string{}, tags: map[string]bool{}}
	return s
}

// word is one that nobody has said before.
func (s *saga) word(by string) string { s.n++; return fmt.Sprint(by, s.n) }

// goesOn has the run take a step, in which it decides some things anew, and has one tag more and
// perhaps one less.
func (s *saga) goesOn() {
	r := &record.Record{ID: "r", Task: record.Task{ID: "t", Goal: "walk", Status: record.TaskInProgress}, Metadata: record.Metadata{Priority: record.PriorityLow}}
	if len(s.log) > 0 {
		r = s.fresh()
	}
	r.Source = &record.Source{Run: "r", Seq: uint64(len(s.log) + 1), Digest: "00", Graph: "g"}
	r.ExecutionSummary.StepsCompleted++
	for i, id := range []string{"w", "x", "y"} {
		if len(s.log) == 0 {
			r.Decisions = append(r.Decisions, record.Decision{ID: id, Status: dag.Accepted, MadeBy: bot, MadeAt: 1, OverridableBy: []dag.Authority{dag.Human}})
		}
		if len(s.log) == 0 || s.IntN(2) == 0 {
			r.Decisions[i].Description = s.word("log")
		}
	}
	if tags := r.Metadata.Tags; len(tags) > 0 && s.IntN(2) == 0 {
		r.Metadata.Tags = slices.Delete(tags, 0, 1)
	}
	r.Metadata.Tags = append(r.Metadata.Tags, s.word("tag"))
	s.log = append(s.log, r)
}

// fresh is what the log tells now.
func (s *saga) fresh() *record.Record { return s.log[len(s.log)-1].Clone() }

// step does something to a record, and returns which.
func (s *saga) step() string {
	id := "r"
	if s.of["other"] != nil && s.IntN(3) == 0 {
		id = "other"
	}
	v, err := s.Get(s.Context(), id)
	done(s.T, err)
	p := s.of[id]
	switch s.IntN(6) {
	case 0, 1:
		if id == "r" && s.IntN(3) > 0 {
			s.goesOn()
		}
		_, err = s.Advance(s.Context(), id, s.fresh(), cron)
		p.seq = len(s.log)
		s.tell("%s hears %d", id, p.seq)
	case 2, 3:
		d := v.Record.Decisions[s.IntN(3)].ID
		p.chose[d] = s.word("ann")
		_, err = s.Override(s.Context(), id, d, p.chose[d], "", ann)
		s.tell("%s: %s is %s", id, d, p.chose[d])
	case 4:
		more, less := s.word("anns"), ""
		p.tags[more] = true
		if tags := v.Record.Metadata.Tags; len(tags) > 0 && s.IntN(2) == 0 {
			less = tags[s.IntN(len(tags))]
			p.tags[less] = false
		}
		s.change(s.T, id, func(r *record.Record) {
			r.Metadata.Tags = append(slices.DeleteFunc(r.Metadata.Tags, func(tag string) bool { return tag == less }), more)
		})
		s.tell("%s: tags +%s -%s", id, more, less)
	default:
		if s.of["other"] != nil {
			s.merge()
			return "r"
		}
		s.branch(s.T, "other", v.Record, v)
		s.of["other"] = &people{p.seq, maps.Clone(p.chose), maps.Clone(p.tags)}
		s.tell("branch")
		id = "other"
	}
	done(s.T, err)
	return id
}

// merge merges the other record into the first one. Where they decide otherwise, either may be
// right.
func (s *saga) merge() {
	p, o := s.of["r"], s.of["other"]
	v, err := s.Merge(s.Context(), "r", "other", record.PreferA, ann)
	done(s.T, err)
	s.tell("merge")
	p.seq = max(p.seq, o.seq)
	for _, d := range v.Record.Decisions {
		switch theirs := o.chose[d.ID]; {
		case d.Description == theirs:
			p.chose[d.ID] = theirs
		case theirs == "" && d.Description != p.chose[d.ID]:
			delete(p.chose, d.ID)
		}
	}
	for tag, has := range o.tags {
		was, known := p.tags[tag]
		p.tags[tag] = has && (was || !known)
	}
}

func (s *saga) tell(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// check compares a record with what it is to say.
func (s *saga) check(id string) {
	v, err := s.Get(s.Context(), id)
	done(s.T, err)
	p := s.of[id]
	want := s.log[p.seq-1].Clone()
	for i := range want.Decisions {
		if d := &want.Decisions[i]; p.chose[d.ID] != "" {
			d.Description = p.chose[d.ID]
		}
	}
	want.Metadata.Tags = slices.DeleteFunc(want.Metadata.Tags, func(tag string) bool { _, said := p.tags[tag]; return said })
	for tag, has := range p.tags {
		if has {
			want.Metadata.Tags = append(want.Metadata.Tags, tag)
		}
	}
	brief := func(r *record.Record) []any {
		return []any{
			ids(r.Decisions, func(d record.Decision) string { return d.Description }),
			slices.Sorted(slices.Values(r.Metadata.Tags)), r.ExecutionSummary.StepsCompleted, r.Source.Seq,
		}
	}
	same(s.T, id, brief(v.Record), brief(want))
}
