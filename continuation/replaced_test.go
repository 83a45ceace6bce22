package continuation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// pays asks whether to pay somebody, and does.
func pays(key string) func(ctx context.Context, s *Talk, who string) error {
	return func(ctx context.Context, s *Talk, who string) error {
		w := continuation.Wait{Kind: continuation.KindApproval, Question: "pay " + who + "?"}
		if key != "" {
			w.Key = key + who
		}
		if _, err := continuation.Await[string](ctx, "approval", w); err != nil {
			return err
		}
		s.Said.Append("paid " + who)
		return nil
	}
}

// paying is a process that asks whether to pay ann, in a visit that is reached by what builds the
// graph.
func paying(t *testing.T, build func(b *dag.Builder[Talk])) *process {
	t.Helper()
	b := dag.New[Talk]("paying")
	build(b)
	p := begin(t, frozen(t, b), &memory.Store{}, continuation.Options{})
	if _, err := p.d.Run(t.Context(), run, func(s *Talk) { s.Said.Append("ann") }); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	return p
}

// inStep asks whether to pay whoever is the first in the state.
func inStep(key string) func(b *dag.Builder[Talk]) {
	return func(b *dag.Builder[Talk]) {
		dag.Step(b, "pay", func(ctx context.Context, s *Talk) error { return pays(key)(ctx, s, s.Said.At(0)) })
	}
}

// instead has the state name others, and what asked begin anew if it is said.
func (p *process) instead(void []string, whom ...string) {
	p.t.Helper()
	if err := p.d.Edit(p.t.Context(), run, func(s *Talk) { s.Said.Replace(whom) }, dispatcher.EditOptions{Void: void}); err != nil {
		p.t.Fatal(err)
	}
}

// replaced checks that a trigger is refused, since what it is for is not asked any more.
func (p *process) replaced(tr continuation.Trigger) {
	p.t.Helper()
	var no *continuation.TerminalError
	if out, err := p.rt.Trigger(p.t.Context(), tr); !errors.As(err, &no) || no.Status != continuation.StatusSuperseded {
		p.t.Errorf("%+v, %v; want that its wait is superseded", out, err)
	}
}

// open is the only wait of the run that takes a trigger.
func (p *process) open() continuation.View {
	p.t.Helper()
	all, err := p.rt.List(p.t.Context(), continuation.Filter{Run: run, Status: []continuation.Status{continuation.StatusPending}})
	if err != nil || len(all) != 1 {
		p.t.Fatalf("the run waits for %+v, %v; want one wait", all, err)
	}
	return all[0]
}

// A trigger is for what was asked: if the visit asks something else in its place, when its frame
// has begun anew, that is another wait, of another id, and nobody has approved of it.
func TestAnApprovalIsForWhatWasAsked(t *testing.T) {
	inLoop := func(key string) func(b *dag.Builder[Talk]) {
		return func(b *dag.Builder[Talk]) {
			in := dag.New[Talk]("body")
			inStep(key)(in)
			dag.Loop(b, "frame", frozen(t, in), func(*Talk) bool { return true }, 1)
		}
	}
	inEach := func(key string) func(b *dag.Builder[Talk]) {
		return func(b *dag.Builder[Talk]) {
			dag.Each(b, "frame", func(s *Talk) []string { return s.Said.Slice() }, pays(key))
		}
	}
	for name, build := range map[string]func(*dag.Builder[Talk]){
		"a loop": inLoop("pay-"), "a loop, without a key": inLoop(""), "items": inEach("pay-"), "items, without a key": inEach(""),
	} {
		for _, asked := range []bool{false, true} { // anew, before the trigger comes
			for _, by := range []string{"wait", "key", "run"} {
				if asked && by == "run" { // which says no question: it is for what the run asks
					continue
				}
				t.Run(fmt.Sprintf("%s, by %s, asked %t", name, by, asked), func(t *testing.T) {
					p := paying(t, build)
					was := p.only(run)
					p.instead([]string{"frame"}, "eve")
					if asked {
						if _, err := p.d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
							t.Fatal(err)
						}
					}
					tr := decide("old", continuation.Approved)
					switch by {
					case "wait":
						tr.Wait = was.ID
					case "key":
						tr.Key = was.Expects[0].Key
					}
					p.replaced(tr)
					now := p.open()
					if now.ID == was.ID || string(now.Question) != `"pay eve?"` {
						t.Errorf("it waits for %+v", now)
					}
					tr = decide("new", continuation.Approved)
					tr.Wait = now.ID
					if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Status != continuation.StatusResolved {
						t.Errorf("%+v, %v", out, err)
					}
					if said := p.said(run); !slices.Equal(said, []string{"eve", "paid eve"}) {
						t.Errorf("the state says %q", said)
					}
				})
			}
		}
	}
}

// Items that begin anew in another order ask for others in their places: who was seen for the one
// is not paid for the other.
func TestAnApprovalIsForItsItem(t *testing.T) {
	p := paying(t, func(b *dag.Builder[Talk]) {
		dag.Each(b, "pay", func(s *Talk) []string { return s.Said.Slice() }, pays("pay-"))
	})
	was := p.only(run)
	p.instead([]string{"pay"}, "eve", "ann")
	tr := decide("old", continuation.Approved)
	tr.Wait = was.ID
	p.replaced(tr)
	if v := p.at("pay/2"); v.Status != continuation.StatusPending || v.Expects[0].Key != "pay-ann" {
		t.Errorf("the second item is %+v", v)
	}
	tr.ID, tr.Wait, tr.Key = "new", "", "pay-ann"
	if out, err := p.rt.Trigger(t.Context(), tr); err != nil || out.Wait != p.at("pay/2").ID {
		t.Errorf("%+v, %v; want that ann is paid", out, err)
	}
}

// An approval that was accepted before its visit asks something else is spent on what it was for,
// and so is the id of that: whoever clicks once more approves of nothing.
func TestAnApprovalIsSpentOnWhatWasAsked(t *testing.T) {
	p := paying(t, inStep(""))
	was := p.only(run)
	p.instead(nil, "eve")
	tr := decide("first", continuation.Approved)
	tr.Wait = was.ID
	first, err := p.rt.Trigger(t.Context(), tr)
	if err != nil || first.Wait != was.ID || first.Status != continuation.StatusSuperseded {
		t.Errorf("%+v, %v; want that its wait is superseded", first, err)
	}
	if again, err := p.rt.Trigger(t.Context(), tr); err != nil || again != first {
		t.Errorf("repeated it is %+v, %v; was %+v", again, err, first)
	}
	second := tr
	second.ID = "second"
	p.replaced(second)
	if now := p.open(); now.ID == was.ID || string(now.Question) != `"pay eve?"` || now.Resumes != 0 || now.Trigger != nil {
		t.Errorf("it waits for %+v", now)
	}
}

// So it is when the log was trimmed of how it was asked, and tells of its trigger alone.
func TestAnApprovalIsSpentBehindATrim(t *testing.T) {
	p := paying(t, func(b *dag.Builder[Talk]) {
		inStep("")(b)
		dag.Loop(b, "chat", waiting(t, continuation.Wait{Key: "chat"}, dag.Policy{}, says), func(*Talk) bool { return false }, 9)
	})
	was := p.at("pay")
	if _, err := p.rt.Trigger(t.Context(), reply2("t", "chat")); err != nil { // a superstep of the loop ends, from which on the log is kept
		t.Fatal(err)
	}
	p.instead(nil, "eve")
	tr := decide("first", continuation.Approved)
	tr.Wait = was.ID
	if first, err := p.rt.Trigger(t.Context(), tr); err != nil || first.Wait != was.ID || first.Status != continuation.StatusSuperseded {
		t.Errorf("%+v, %v; want that its wait is superseded", first, err)
	}
	if err := p.d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	if v, err := p.rt.Get(t.Context(), was.ID); err != nil || v.ID != was.ID || v.Question != nil {
		t.Fatalf("the log tells %+v, %v; want that only the trigger tells of it", v, err)
	}
	tr.ID = "second"
	p.replaced(tr)
	if now := p.at("pay"); p.said(run)[0] != "eve" || slices.Contains(p.said(run), "paid eve") {
		t.Errorf("the state says %q; it waits for %+v", p.said(run), now)
	}
}

// A first is a store in which something comes before a lease is taken, once.
type first struct {
	*memory.Store
	comes func()
}

func (s *first) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	if comes := s.comes; comes != nil {
		s.comes = nil
		comes()
	}
	return s.Store.Acquire(ctx, id, owner)
}

// Of two who send triggers for what a run waits for the one who comes too late has not answered
// what it asks next.
func TestTheLaterOfTwoTriggersIsForNothingElse(t *testing.T) {
	b := dag.New[Talk]("steps")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		for _, step := range []string{"one", "two"} {
			r, err := continuation.Await[string](ctx, step, continuation.Wait{Key: step})
			if err != nil {
				return err
			}
			s.Said.Append(step + " " + r.Payload)
		}
		return nil
	})
	store := &first{Store: &memory.Store{}}
	p := begin(t, frozen(t, b), store, continuation.Options{})
	p.waits(run)
	byRun := func(id string) continuation.Trigger {
		tr := reply(id, "yes")
		tr.Key = ""
		return tr
	}
	store.comes = func() {
		if out, err := p.rt.Trigger(t.Context(), byRun("sooner")); err != nil || out.Status != continuation.StatusResolved {
			t.Errorf("the sooner one is %s, %v", out.Status, err)
		}
	}
	out, err := p.rt.Trigger(t.Context(), byRun("later"))
	var taken *continuation.TakenError
	var terminal *continuation.TerminalError
	if !errors.As(err, &taken) && !errors.As(err, &terminal) {
		t.Errorf("the later one is %s, %v, want it refused", out.Status, err)
	}
	pending, err := p.rt.List(t.Context(), continuation.Filter{Run: run, Status: []continuation.Status{continuation.StatusPending}})
	if err != nil || len(pending) != 1 || pending[0].Name != "two" {
		t.Errorf("there wait %+v, %v, want the second step alone", pending, err)
	}
}

// What fails behind one trigger is no failure behind another: an attempt that asks something else
// under the name, since the one before has failed, goes on with the trigger for that, and asks once
// more only if it fails behind it.
func TestAnAttemptThatAsksSomethingElseIsHeard(t *testing.T) {
	for name, failures := range map[string]int{"it goes well": 1, "it fails as well": 2} {
		t.Run(name, func(t *testing.T) {
			b, tries := dag.New[Talk]("paying"), 0
			dag.Step(b, "pay", func(ctx context.Context, s *Talk) error {
				who := "eve"
				if tries == 0 {
					who = "ann"
				}
				if err := pays("")(ctx, s, who); err != nil {
					return err
				}
				if tries++; tries <= failures {
					return errWeather
				}
				return nil
			})
			p := talk(t, frozen(t, b))
			first := p.only(run)
			for i := range failures + 1 {
				if out, err := p.rt.Trigger(t.Context(), decide(fmt.Sprint("t", i), continuation.Approved)); err != nil {
					t.Fatalf("%+v, %v", out, err)
				}
				if i == failures {
					break
				}
				v := p.open()
				if v.ID == first.ID || string(v.Question) != `"pay eve?"` || v.Failures != i+1 {
					t.Errorf("behind %d triggers it waits for %+v", i+1, v)
				}
			}
			if said := p.said(run); !slices.Equal(said, []string{"paid eve"}) {
				t.Errorf("the state says %q", said)
			}
		})
	}
}
