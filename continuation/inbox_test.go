package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// What is sent to a run is input for a turn, once under its id; it wakes a run that is completed,
// and waits for one that waits. A run that was cancelled is not brought back.
func TestSend(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	say := func(word string) func(*Talk) { return func(s *Talk) { s.Said.Append(word) } }
	for range 2 {
		if err := continuation.Send(t.Context(), p.rt, run, "m1", say("first"), continuation.Wake); err != nil {
			t.Fatal(err)
		}
	}
	p.stands(run, continuation.StatusPending, "")
	if _, err := p.rt.Trigger(t.Context(), reply("t1", "hello")); err != nil {
		t.Fatal(err)
	}
	all, err := p.rt.List(t.Context(), continuation.Filter{Status: []continuation.Status{continuation.StatusPending}})
	if err != nil || len(all) != 1 || !slices.Equal(p.said(run), []string{"hello", "first"}) {
		t.Fatalf("the second turn waits: %+v, %v; said %q", all, err, p.said(run))
	}
	// What ended a wait of one turn does not end that of the next.
	if out, err := p.rt.Trigger(t.Context(), reply("t1", "hello")); err != nil || out.Wait == all[0].ID {
		t.Errorf("the first trigger again: %+v, %v", out, err)
	}
	if _, err := p.rt.Trigger(t.Context(), reply("t2", "bye")); err != nil {
		t.Fatal(err)
	}
	if err := continuation.Send(t.Context(), p.rt, run, "m2", say("second"), continuation.WaitForRun); err != nil {
		t.Fatal(err)
	}
	if said := p.said(run); len(said) != 3 {
		t.Errorf("it was left, and said %q", said)
	}
	if err := continuation.Send(t.Context(), p.rt, run, "m3", say("third"), continuation.Wake); err != nil {
		t.Fatal(err)
	}
	if said := p.said(run); !slices.Equal(said, []string{"hello", "first", "bye", "second"}) {
		t.Errorf("it was woken, and said %q", said)
	}
	if _, err := p.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil {
		t.Fatal(err)
	}
	for _, sent := range []string{"m1", "m3"} { // taken, and left
		if err := continuation.Send(t.Context(), p.rt, run, sent, say("again"), continuation.WaitForRun); err != nil {
			t.Errorf("%s, which the run has, is sent again: %v", sent, err)
		}
	}
	p.unchanged(run, func() {
		var over *continuation.TerminalError
		if err := continuation.Send(t.Context(), p.rt, run, "m4", say("fourth"), continuation.Wake); !errors.As(err, &over) {
			t.Errorf("to a run that was stopped: %v", err)
		}
		var bad *continuation.ArgumentError
		if err := continuation.Send(t.Context(), p.rt, run, "m5", func(*struct{}) {}, continuation.Wake); !errors.As(err, &bad) {
			t.Errorf("of another state: %v", err)
		}
	})
}

// In a dialogue whose waits have one key, a trigger that is sent again is none for the next wait.
func TestRepeatedTriggerIsForNoOtherWait(t *testing.T) {
	b := dag.New[Talk]("dialogue")
	dag.Step(b, "talk", func(ctx context.Context, s *Talk) error {
		for i := range 3 {
			r, err := continuation.Await[string](ctx, fmt.Sprint("turn-", i), continuation.Wait{Key: "chat"})
			if err != nil {
				return err
			}
			s.Said.Append(r.Payload)
		}
		return nil
	})
	p := talk(t, frozen(t, b))
	first, err := p.rt.Trigger(t.Context(), reply2("t1", "chat"))
	if err != nil {
		t.Fatal(err)
	}
	p.unchanged(run, func() {
		if again, err := p.rt.Trigger(t.Context(), reply2("t1", "chat")); err != nil || again.Receipt != first.Receipt {
			t.Errorf("again: %+v, %v; want %+v", again, err, first)
		}
		other := reply2("t1", "chat")
		other.Payload = []byte(`"something else"`)
		var mismatch *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), other); !errors.As(err, &mismatch) {
			t.Errorf("another trigger of the same id: %v", err)
		}
	})
}

// An id that was given to a trigger of one wait ends no other one, and whoever sends it is told:
// the other wait goes on, so its outcome is not that of the first.
func TestIDOfATriggerOfAnotherWait(t *testing.T) {
	b := dag.New[Talk]("talk")
	for _, name := range []string{"first", "second"} {
		dag.Step(b, name, func(ctx context.Context, s *Talk) error {
			r, err := continuation.Await[string](ctx, name, continuation.Wait{Key: name})
			if err == nil {
				s.Said.Append(r.Payload)
			}
			return err
		})
	}
	p := talk(t, frozen(t, b))
	all, err := p.rt.List(t.Context(), continuation.Filter{Run: run})
	if err != nil || len(all) != 2 {
		t.Fatalf("the waits: %+v, %v", all, err)
	}
	wait := map[string]string{all[0].Name: all[0].ID, all[1].Name: all[1].ID}
	named := func(of func(*continuation.Trigger)) continuation.Trigger {
		tr := reply2("t1", "")
		of(&tr)
		return tr
	}
	first, err := p.rt.Trigger(t.Context(), named(func(tr *continuation.Trigger) { tr.Wait = wait["first"] }))
	if err != nil || first.Wait != wait["first"] {
		t.Fatalf("the first: %+v, %v", first, err)
	}
	for name, tr := range map[string]continuation.Trigger{
		"wait":        named(func(tr *continuation.Trigger) { tr.Wait = wait["second"] }),
		"run and key": named(func(tr *continuation.Trigger) { tr.Run, tr.Key = run, "second" }),
		"key":         named(func(tr *continuation.Trigger) { tr.Key = "second" }),
	} {
		p.unchanged(run, func() {
			var mismatch *continuation.MismatchError
			if out, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &mismatch) {
				t.Errorf("the second by its %s, under the id of the first: %+v, %v", name, out, err)
			}
		})
	}
	for name, tr := range map[string]continuation.Trigger{
		"wait":        named(func(tr *continuation.Trigger) { tr.Wait = wait["first"] }),
		"run and key": named(func(tr *continuation.Trigger) { tr.Run, tr.Key = run, "first" }),
		"run":         named(func(tr *continuation.Trigger) { tr.Run = run }),
	} {
		if again, err := p.rt.Trigger(t.Context(), tr); err != nil || again.Receipt != first.Receipt {
			t.Errorf("the first again by its %s: %+v, %v; want %+v", name, again, err, first)
		}
	}
}

// A process that dies between a denial and the cancel that it says: the next one cancels the run.
func TestCrashBehindADenial(t *testing.T) {
	for n := 1; n < 6; n++ {
		for _, after := range []bool{false, true} {
			store := &pawltest.Mortal{Store: freshStore()}
			g := waiting(t, continuation.Wait{Kind: continuation.KindApproval}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
				t.Error("the body has run")
				return nil
			})
			p := begin(t, g, store, continuation.Options{})
			p.waits(run)
			if store.DieBefore(n); after {
				store.DieAfter(n)
			}
			_, _ = p.rt.Trigger(t.Context(), decide("t", continuation.Denied))
			if err := store.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			q := begin(t, g, store, continuation.Options{})
			if _, err := q.rt.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v := q.only(run); v.Status == continuation.StatusPending { // nothing of it was durable
				if _, err := q.rt.Trigger(t.Context(), decide("t", continuation.Denied)); err != nil {
					t.Fatal(err)
				}
			}
			q.stands(run, continuation.StatusCancelled, continuation.ApprovalDenied)
			if info, err := store.Stat(t.Context(), run); err != nil || info.Status != checkpoint.StatusCancelled {
				t.Errorf("died at write %d (%v): the run is %s, %v", n, after, info.Status, err)
			}
		}
	}
}

// The runs of other graphs are none of a runtime's: it finds none of their waits, and stops none.
func TestRunsOfOtherGraphs(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	b := dag.New[Talk]("other")
	dag.Step(b, "step", func(context.Context, *Talk) error { return nil })
	q := begin(t, frozen(t, b), p.store, continuation.Options{})
	p.unchanged(run, func() {
		_, triggered := q.rt.Trigger(t.Context(), reply("t", "x"))
		_, stopped := q.rt.Stop(t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser})
		_, listed := q.rt.List(t.Context(), continuation.Filter{Run: run})
		for _, err := range []error{triggered, stopped, listed} {
			if !errors.Is(err, continuation.ErrNotFound) {
				t.Errorf("a run of another graph: %v", err)
			}
		}
	})
}

// Who dies while it notes something has the lease until that lapses. A wake waits for it, with
// pauses: the clock could not go on here if it tried all the time.
func TestAWakeWaitsForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
		if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
			t.Fatal(err)
		}
		lease, err := p.store.Acquire(t.Context(), run, "somebody who dies")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Second, func() { _ = p.store.Release(context.Background(), lease) })
		err = continuation.Send(t.Context(), p.rt, run, "m", func(s *Talk) { s.Said.Append("and") }, continuation.Wake)
		if err != nil {
			t.Fatal(err)
		}
		if said := p.said(run); !slices.Equal(said, []string{"hello", "and"}) {
			t.Errorf("the state says %q", said)
		}
	})
}

// The id of a trigger is that of one actor, with one payload, for one kind.
func TestAnIDIsOfOneTrigger(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
		t.Fatal(err)
	}
	bob, other, kind := reply("t", "hello"), reply("t", "hullo"), decide("t", continuation.Approved)
	bob.Actor.ID = "bob"
	kind.Payload = json.RawMessage(`"hello"`)
	for _, tr := range []continuation.Trigger{bob, other, kind} {
		p.unchanged(run, func() {
			var mismatch *continuation.MismatchError
			if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &mismatch) {
				t.Errorf("%+v: %v", tr, err)
			}
		})
	}
}

// So it is where payloads differ by no more than what a float64 can't hold.
func TestAnIDIsOfOneNumber(t *testing.T) {
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[int64](ctx, "answer", continuation.Wait{})
		if err == nil {
			s.Said.Append(fmt.Sprint(r.Payload))
		}
		return err
	})
	p := talk(t, frozen(t, b))
	tr := reply("t", "")
	for payload, same := range map[string]bool{"9007199254740993": true, "9007199254740992": false} {
		tr.Payload = json.RawMessage("9007199254740993")
		if _, err := p.rt.Trigger(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		tr.Payload = json.RawMessage(payload)
		var mismatch *continuation.MismatchError
		if _, err := p.rt.Trigger(t.Context(), tr); errors.As(err, &mismatch) == same || same && err != nil {
			t.Errorf("repeated with %s: %v", payload, err)
		}
	}
	if got := p.said(run); !slices.Equal(got, []string{"9007199254740993"}) {
		t.Errorf("said was %q", got)
	}
}

// What a log can't keep as it is said is refused as an argument, before anything has happened.
func TestOddTriggers(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, says))
	for name, odd := range map[string]func(*continuation.Trigger){
		"an id":         func(tr *continuation.Trigger) { tr.ID = "\xff" },
		"a reason":      func(tr *continuation.Trigger) { tr.Reason = "\xff" },
		"an actor":      func(tr *continuation.Trigger) { tr.Actor.ID = "\xff" },
		"two lines":     func(tr *continuation.Trigger) { tr.Actor.ID = "ann\nbob" },
		"a long actor":  func(tr *continuation.Trigger) { tr.Actor.ID = strings.Repeat("a", 1025) },
		"a bad payload": func(tr *continuation.Trigger) { tr.Payload = json.RawMessage(`{`) },
	} {
		tr := reply("t", "hello")
		odd(&tr)
		p.unchanged(run, func() {
			var bad *continuation.ArgumentError
			if _, err := p.rt.Trigger(t.Context(), tr); !errors.As(err, &bad) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A shredder is a store of which a run is deleted behind each listing.
type shredder struct {
	*memory.Store
	run string
}

func (s *shredder) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	all, err := s.Store.List(ctx, f)
	if gone := s.Delete(ctx, s.run); gone != nil && !errors.Is(gone, checkpoint.ErrNotFound) {
		return nil, gone
	}
	return all, err
}

// A run that is deleted while others are listed is not missed, also where the next page would
// begin.
func TestListBesideADelete(t *testing.T) {
	store := &memory.Store{}
	g := waiting(t, continuation.Wait{}, dag.Policy{}, says)
	p := begin(t, g, store, continuation.Options{})
	for _, id := range []string{"a", "b"} {
		p.waits(id)
	}
	for _, gone := range []string{"a", "b"} {
		q := begin(t, g, &shredder{store, gone}, continuation.Options{})
		views, err := q.rt.List(t.Context(), continuation.Filter{})
		if err != nil || slices.ContainsFunc(views, func(v continuation.View) bool { return v.Run == gone }) {
			t.Errorf("without %s: %+v, %v", gone, views, err)
		}
		p.waits(gone)
	}
}

// A preempted is a store in which something happens just before somebody takes the lease of a run
// to go on with it.
type preempted struct {
	*memory.Store
	meanwhile func()
}

func (s *preempted) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	if f := s.meanwhile; f != nil && !checkpoint.Amends(owner) {
		s.meanwhile = nil
		f()
	}
	return s.Store.Acquire(ctx, run, owner)
}

// A wake is one beside a note too: the run has an entry more than Send has read, and goes on from
// there.
func TestAWakeBesideANote(t *testing.T) {
	store, g := &preempted{Store: &memory.Store{}}, waiting(t, continuation.Wait{}, dag.Policy{}, says)
	p, other := begin(t, g, store, continuation.Options{}), begin(t, g, store.Store, continuation.Options{})
	p.waits(run)
	if _, err := p.rt.Trigger(t.Context(), reply("t", "hello")); err != nil {
		t.Fatal(err)
	}
	store.meanwhile = func() {
		if err := other.d.Note(t.Context(), run, "mail.sent", 1); err != nil {
			t.Error(err)
		}
	}
	err := continuation.Send(t.Context(), p.rt, run, "m", func(s *Talk) { s.Said.Append("and") }, continuation.Wake)
	if said := p.said(run); err != nil || store.meanwhile != nil || !slices.Equal(said, []string{"hello", "and"}) {
		t.Errorf("the state says %q, %v", said, err)
	}
}

// Input that can't be sent is refused as any other argument.
func TestSendRefusesWhatNobodyCouldTake(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, nil))
	say := func(s *Talk) { s.Said.Append("x") }
	for name, c := range map[string]struct {
		id    string
		input func(*Talk)
	}{"no id": {"", say}, "a long id": {strings.Repeat("x", 201), say}, "an id of two lines": {"a\nb", say}, "no input": {"a", nil}} {
		p.unchanged(run, func() {
			var bad *continuation.ArgumentError
			if err := continuation.Send(t.Context(), p.rt, run, c.id, c.input, continuation.WaitForRun); !errors.As(err, &bad) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Who asks for the waits of one run within a scope is told nothing of a run of another one.
func TestAScopeHoldsForOneRunToo(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{}, dag.Policy{}, nil), dispatcher.Labels(map[string]string{"tenant": "a"}))
	for tenant, want := range map[string]int{"a": 1, "b": 0} {
		all, err := p.rt.List(t.Context(), continuation.Filter{Run: run, Scope: map[string]string{"tenant": tenant}})
		if err != nil || len(all) != want {
			t.Errorf("for tenant %s the waits are %+v, %v; want %d", tenant, all, err, want)
		}
	}
}
