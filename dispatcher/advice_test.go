package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// advises checks that an error says what to do.
func advises(t *testing.T, err error, all ...string) {
	t.Helper()
	for _, says := range all {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, and does not say %q", err, says)
		}
	}
}

// An answer without an id ends the only thing that waits for a person, whatever it is. A pause
// is none, and an answer says what ends that.
func TestAdviceAnswerWithoutAnID(t *testing.T) {
	var w witness
	var bank effectBank
	g := effectNode(t, w.sees(func(ctx context.Context, s *Tale) error {
		_, err := dag.Effect(ctx, "charge", 5, bank.pay)
		return err
	}), dag.Policy{})
	approval := dispatcher.Options{Gates: dispatcher.Gates{Names: []string{"pay"}}}
	interceptor := dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{
		{Name: "careful", Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Ask("may it?") }},
	}}}
	for name, o := range map[string]dispatcher.Options{"visit": approval, "effect": gatesCharge, "interceptor": interceptor} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			d := process(t, g, &store, o)
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "pay")
			unchanged(t, &store, run, func() {
				err := d.Skip(t.Context(), run, "")
				refused(t, err, dispatcher.ErrNotAwaited)
				advises(t, err, "no question waits")
			})
			if err := d.Answer(t.Context(), run, "", dispatcher.Approve); err != nil {
				t.Fatal(err)
			}
			unchanged(t, &store, run, func() {
				err := d.Answer(t.Context(), run, "", dispatcher.Approve)
				refused(t, err, dispatcher.ErrNotAwaited)
				advises(t, err, "nothing waits for an answer")
			})
			if res, err := d.State(t.Context(), run); err != nil || res.Status != checkpoint.StatusInterrupted || len(res.Interrupts) > 0 {
				t.Errorf("the run is %s and waits for %v, %v", res.Status, res.Interrupts, err)
			}
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
		})
	}
	var store memory.Store
	changeHeld(t, changeLine(t, &w, "a", "b"), &store, "b")
	d := process(t, changeLine(t, &w, "a", "b"), &store, dispatcher.Options{})
	unchanged(t, &store, run, func() {
		err := d.Answer(t.Context(), run, "", dispatcher.Approve)
		refused(t, err, dispatcher.ErrNotAwaited)
		advises(t, err, "a pause, before b: Resume ends it")
	})
}

// Who comes too late with an answer, or a skip, is told who was faster, and when.
func TestAdviceAnsweredAlready(t *testing.T) {
	for _, live := range []bool{true, false} {
		var w witness
		var store memory.Store
		d := process(t, asking(t, &w, closedChan()), &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		id := res.Interrupts[0].ID
		if live { // somebody has the run, and has not drained the answer yet
			if _, err := store.Acquire(t.Context(), run, "somebody"); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Answer(t.Context(), run, id, "this", dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
		unchanged(t, &store, run, func() {
			for _, err := range []error{
				d.Answer(t.Context(), run, id, "that", dispatcher.Author("Eve")),
				d.Skip(t.Context(), run, id),
			} {
				refused(t, err, dispatcher.ErrNotAwaited)
				advises(t, err, "it was answered already (by Ada, 20")
			}
			if live {
				advises(t, d.Answer(t.Context(), run, "", "that"), "everything that waited has its answer")
			}
		})
	}
}

// The empty address is the last checkpoint, everywhere, read as one of the run's own frame.
func TestAdviceEmptyAddress(t *testing.T) {
	var w witness
	var store memory.Store
	g := migrateSpin(t, &w, "spin", "loop", "a", "b")
	changeHeld(t, g, &store, "loop/1/b")
	d := process(t, g, &store, dispatcher.Options{})
	at, err := d.At(t.Context(), run, "")
	if err != nil || at.Frame != "" || at.Superstep != 1 || at.State == nil {
		t.Fatalf("the last checkpoint is %+v, %v", at, err)
	}
	if err := d.Tag(t.Context(), run, "", "now"); err != nil {
		t.Fatal(err)
	}
	tagged, err := d.At(t.Context(), run, "tag:now")
	if err != nil || tagged.Frame != "loop/1" || tagged.Cursor.Seq != at.Cursor.Seq {
		t.Errorf("the tag is at %s of %q, %v, want %s", tagged.Cursor, tagged.Frame, err, at.Cursor)
	}
	of, err := dispatcher.StateOf[Tale](t.Context(), d, run, "tag:now")
	if err != nil || of.Frame != "loop/1" || of.Cursor.Seq != at.Cursor.Seq {
		t.Errorf("StateOf of the tag is at %s of %q, %v, want %s", of.Cursor, of.Frame, err, at.Cursor)
	}
	if is := blameText(t, d, run, "", "Said"); len(is) != 1 || !strings.Contains(is[0], "begin") || strings.Contains(is[0], "loop") {
		t.Errorf("Blame of what At shows is %q, want begin, and nothing of what the loop has not said yet", is)
	}
	_, err = d.At(t.Context(), run, "tag:none")
	if !errors.Is(err, checkpoint.ErrCursor) {
		t.Errorf("no tag is %v", err)
	}
	advises(t, err, `the run has no tag "none"`)
}

// A graph that could not go on with a fork, or with a run that was rewound, makes none; what
// only reads, or names, works.
func TestAdviceForkOfAnotherGraph(t *testing.T) {
	var w witness
	var store memory.Store
	old := changeLine(t, &w, "a", "b")
	changeHeld(t, old, &store, "b")
	var changed *dispatcher.GraphChangedError
	another := dag.New[Tale]("another")
	dag.Step(another, "z", nothing[Tale])
	for name, g := range map[string]*dag.Graph[Tale]{
		"name": frozen(t, another), "past": changeLine(t, &w, "z", "b"),
	} {
		d := process(t, g, &store, dispatcher.Options{})
		unchanged(t, &store, run, func() {
			ids, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{Into: []string{"x"}})
			if !errors.As(err, &changed) || ids != nil {
				t.Errorf("%s: Fork returned %q, %v", name, ids, err)
			}
			if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); !errors.As(err, &changed) {
				t.Errorf("%s: Rewind returned %v", name, err)
			}
			if name == "name" {
				advises(t, err, "a Migration whose From is "+old.Digest())
			}
			if _, err := d.Blame(t.Context(), run, ""); err != nil {
				t.Errorf("%s: Blame returned %v", name, err)
			}
			if _, err := d.Lineage(t.Context(), run); err != nil {
				t.Errorf("%s: Lineage returned %v", name, err)
			}
			if _, err := store.Stat(t.Context(), "x"); !errors.Is(err, checkpoint.ErrNotFound) {
				t.Errorf("%s: there is a fork: %v", name, err)
			}
		})
		if err := d.Tag(t.Context(), run, "1", name); err != nil {
			t.Errorf("%s: Tag returned %v", name, err)
		}
	}
	// Nothing has happened yet in the state as it was opened, and a migration may say what fits.
	d := process(t, changeLine(t, &w, "z", "b"), &store, dispatcher.Options{})
	if _, err := d.Fork(t.Context(), run, "0", dispatcher.ForkOptions[Tale]{Into: []string{"early"}}); err != nil {
		t.Errorf("the fork of what has not begun returned %v", err)
	}
	d = process(t, changeLine(t, &w, "z", "b"), &store, migrating(dispatcher.Migration{Name: "a is z", Nodes: map[string]string{"a": "z"}}))
	if _, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{Into: []string{"late"}}); err != nil {
		t.Errorf("the fork with a migration returned %v", err)
	}
	for _, id := range []string{"early", "late"} {
		res, err := d.Run(t.Context(), id, nil)
		completes(t, res, err)
	}
}

// Errors of everyday mistakes say what to do.
func TestAdviceTexts(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, changeLine(t, &w, "a"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	_, err = d.State(t.Context(), "nope")
	advises(t, err, `not found: run "nope": check its id and the store, or begin it with Run`)
	_, err = d.Resume(t.Context(), "nope")
	advises(t, err, `not found: run "nope": check its id and the store, or begin it with Run`)
	_, err = d.Start(t.Context(), run, nil)
	advises(t, err, "run exists: Run goes on with it")
	_, err = d.Resume(t.Context(), run)
	advises(t, err, "run is completed: Turn gives it new input, Fork tries another way")
	advises(t, d.Tag(t.Context(), run, "1", "sk-proj-"+strings.Repeat("aB3", 16)), "tag holds what looks like a secret: it has")
	_, err = d.Run(t.Context(), "new", nil, dispatcher.Labels(map[string]string{"api_key": "x"}))
	advises(t, err, "labels hold what looks like a secret at .api_key: its")
	advises(t, d.Answer(t.Context(), run, "", 1, dispatcher.OrStart()), "OrStart is for calls that run something: this one takes Author, Because and Message")
	advises(t, d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{}, dispatcher.OrStart()), "this one takes Author alone")
	_, err = d.Run(t.Context(), run, nil, dispatcher.Because("so"))
	advises(t, err, "Because is for Answer, Answers and Skip, and beside Answering")
	lease, err := store.Acquire(t.Context(), run, "ann")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Start(t.Context(), run, nil)
	advises(t, err, `dispatcher: run "tale": run exists, and is at work: State tells how it stands`)
	if err := store.Release(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errWeather)
	for _, err := range d.Events(ended, run, dispatcher.Listen{}) {
		advises(t, err, `run "tale": context canceled: bad weather`)
	}
	breaks := func(*Tale) { panic("ouch") }
	_, err = d.Run(t.Context(), "new", breaks)
	advises(t, err, "input: panic: ouch")
	_, err = d.Turn(t.Context(), run, breaks)
	advises(t, err, "input: panic: ouch")
	advises(t, d.Enqueue(t.Context(), run, breaks), "input: panic: ouch")
	_, err = d.Fork(t.Context(), run, "0", dispatcher.ForkOptions[Tale]{Edit: breaks})
	advises(t, err, "edit: panic: ouch")
}
