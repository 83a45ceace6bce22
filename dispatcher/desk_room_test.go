package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
)

// Nothing that was ever on a desk is there for who has it next: of facts only what is said is set.
func TestLeftDeskIsBare(t *testing.T) {
	for _, most := range []int{1, 3, 5, deskLines, deskLines + 1, 4 * deskLines} {
		d := newDesk()
		r := &run{facts: d.facts, logged: &logged{desk: d}}
		for range most {
			r.facts = append(r.facts, fact{Kind: checkpoint.Done, Path: "a", Attempt: 2, extra: &extra{ID: "x"}})
			d.lines = append(d.lines, checkpoint.Entry{ID: "x"})
		}
		d.facts = r.facts
		d.leave()
		if !reflect.DeepEqual(d.firstFacts, [len(d.firstFacts)]fact{}) || !reflect.DeepEqual(d.firstLines, [len(d.firstLines)]checkpoint.Entry{}) {
			t.Errorf("behind %d facts, some are left where they began", most)
		}
		for _, x := range d.facts[:cap(d.facts)] {
			if !reflect.DeepEqual(x, fact{}) {
				t.Errorf("behind %d facts, %+v is left", most, x)
			}
		}
	}
}

// whole says what is not as a new desk has it.
func (d *desk) whole() error {
	for _, x := range slices.Concat(d.facts[:cap(d.facts)], d.firstFacts[:]) {
		if !reflect.DeepEqual(x, fact{}) {
			return fmt.Errorf("a fact is left: %+v", x)
		}
	}
	for _, e := range slices.Concat(d.lines[:cap(d.lines)], d.firstLines[:]) {
		if !reflect.DeepEqual(e, checkpoint.Entry{}) {
			return fmt.Errorf("an entry is left: %+v", e)
		}
	}
	for _, x := range d.extras {
		if !reflect.DeepEqual(x, extra{}) {
			return fmt.Errorf("of a fact is left what it had beside the plain: %+v", x)
		}
	}
	if len(d.facts)+len(d.lines)+len(d.bytes)+d.taken > 0 {
		return fmt.Errorf("it has %d facts, %d entries, %d bytes and %d extras", len(d.facts), len(d.lines), len(d.bytes), d.taken)
	}
	return nil
}

// Facts beyond those whose extras a desk has room for have theirs elsewhere: each says what it was
// given, and what the next facts have is theirs alone.
func TestDeskWithMoreExtrasThanItHasRoomFor(t *testing.T) {
	for most := 1; most <= 3*len(desk{}.extras); most++ {
		r := &run{logged: &logged{desk: newDesk()}}
		r.facts = r.desk.facts
		for round := range 3 {
			for i := range most {
				id := fmt.Sprint(round, i)
				if i%2 == 0 {
					r.facts = append(r.facts, r.said(&checkpoint.Entry{Kind: checkpoint.Answered, ID: id, Post: "post " + id}, nil))
					continue
				}
				x := r.said(&checkpoint.Entry{Kind: checkpoint.Opened}, nil)
				r.more(&x).ID = id
				r.facts = append(r.facts, x)
			}
			for i := range r.facts {
				want := extra{ID: fmt.Sprint(round, i)}
				if i%2 == 0 {
					want.Post = "post " + want.ID
				}
				if got := *r.facts[i].extra; !reflect.DeepEqual(got, want) {
					t.Errorf("fact %d of %d, in append %d, has %+v, want %+v", i, most, round, got, want)
				}
			}
			r.forgetFacts()
		}
		r.desk.facts = r.facts
		d := r.desk
		d.leave()
		if err := d.whole(); err != nil {
			t.Errorf("behind %d facts: %v", most, err)
		}
	}
}

// Whatever calls there were, and whatever they came to, nothing of them is on the desks that they
// have left.
func TestDesksThatWereLeftAreBare(t *testing.T) {
	const asks = 6 // more than a desk has extras for
	graph := deskGraph(t, asks)
	for name, o := range map[string]Options{
		"each append is waited for":   {},
		"the run is ahead (Lag)":      {Lag: 3},
		"every append has a snapshot": {eager: true},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(graph, new(memory.Store), o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				id := fmt.Sprintf("run-%d", i)
				r, err := d.Start(t.Context(), id, func(s *thawed) { s.List.Append("input") }, Labels(map[string]string{"key": "value"}))
				if !errors.Is(err, ErrInterrupted) || len(r.Interrupts) != asks {
					t.Fatalf("the run is at %+v, %v", r, err)
				}
				desksAreWhole(t, "Start")
				if err := d.Edit(t.Context(), id, func(s *thawed) { s.Sum.Add(1) }, EditOptions{Reason: "a reason"}); err != nil {
					t.Fatal(err)
				}
				desksAreWhole(t, "Edit")
				if err := d.Answer(t.Context(), id, r.Interrupts[0].ID, "answer"); err != nil {
					t.Fatal(err)
				}
				desksAreWhole(t, "Answer")
				answers := map[string]any{}
				for _, p := range r.Interrupts[1:] {
					answers[p.ID] = "answer"
				}
				if err := d.Answers(t.Context(), id, answers); err != nil {
					t.Fatal(err)
				}
				desksAreWhole(t, "Answers")
				if r, err = d.Run(t.Context(), id, nil); err != nil || r.State.Sum.Get() != 1+asks {
					t.Fatalf("the run has ended at %+v, %v", r, err)
				}
				desksAreWhole(t, "Run")
			}
		})
	}
}

// desksAreWhole looks at some desks that were left, the last one first.
func desksAreWhole(t *testing.T, call string) {
	t.Helper()
	var some [4]*desk
	for i := range some {
		some[i] = newDesk()
		if err := some[i].whole(); err != nil {
			t.Errorf("behind %s: %v", call, err)
		}
	}
	for _, d := range some {
		desks.Put(d)
	}
}

// deskGraph asks so many questions at once between two chains.
func deskGraph(t *testing.T, asks int) *dag.Graph[thawed] {
	t.Helper()
	step := func(_ context.Context, s *thawed) error {
		s.List.Append("a step")
		return nil
	}
	b := dag.New[thawed]("desks")
	last := dag.Step(b, "second", step, dag.Step(b, "first", step))
	var questions []dag.Edge[thawed]
	for i := range asks {
		questions = append(questions, dag.Step(b, fmt.Sprintf("asks-%d", i), func(ctx context.Context, s *thawed) error {
			if _, err := dag.Ask[string](ctx, "what", "What?"); err != nil {
				return err
			}
			s.Sum.Add(1)
			return nil
		}, last))
	}
	dag.Step(b, "last", step, dag.Step(b, "joined", step, questions...))
	graph, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// The room that one large append took is let go of once a small one has used it: a run does not
// keep what its input was encoded in as long as it is at work. Appends that are all large go on
// with the same.
func TestRoomOfALargeAppend(t *testing.T) {
	r := &run{logged: &logged{desk: new(desk)}}
	for _, c := range []struct {
		used, room, left int
	}{
		{10 << 20, 10 << 20, 10 << 20},
		{3 << 20, 10 << 20, 10 << 20},
		{1 << 20, 10 << 20, 0},
		{0, deskBytes, deskBytes},
		{0, deskBytes + 1, 0},
	} {
		r.bytes = make([]byte, c.used, c.room)
		r.entries()
		if cap(r.bytes) != c.left || len(r.bytes) != 0 {
			t.Errorf("%d bytes of %d were used: %d are kept, want %d", c.used, c.room, cap(r.bytes), c.left)
		}
	}
}
