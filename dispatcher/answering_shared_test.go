package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// kindsOf are the kinds of what an append says.
func kindsOf(entries []checkpoint.Entry) (all []checkpoint.Kind) {
	for i := range entries {
		all = append(all, entries[i].Kind)
	}
	return all
}

// Answering is one append with the resume behind it: a disk is waited for once.
func TestAnsweringIsOneAppendWithTheResume(t *testing.T) {
	var appends [][]checkpoint.Kind
	var inner memory.Store
	store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
		if k.method == "Append" {
			appends = append(appends, kindsOf(k.entries))
		}
		return nil
	}}
	d, id := waiting(t, store, 3)
	appends = nil
	r, err := d.Resume(t.Context(), run, dispatcher.Answering(id, true))
	completes(t, r, err)
	if want := []checkpoint.Kind{checkpoint.Answered, checkpoint.Resumed}; !slices.Equal(appends[0], want) {
		t.Errorf("the first append says %v, want %v", appends[0], want)
	}
	sameMachine(t, d, run)
}

// A conflict behind the append of the answers is that of a call that has begun: it does not begin
// again.
func TestAConflictBehindTheAnswersEndsTheCall(t *testing.T) {
	var inner memory.Store
	made := map[string]int{}
	counts := countsCalls(made)
	store := &tampered{Store: &inner}
	d, id := waiting(t, store, 3)
	store.before = func(ctx context.Context, k call) error {
		if _ = counts(ctx, k); k.method == "Append" && made["Append"] == 2 {
			return checkpoint.ErrConflict
		}
		return nil
	}
	if _, err := d.Resume(t.Context(), run, dispatcher.Answering(id, true)); !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("the call returned %v, want ErrConflict", err)
	}
	if made["Acquire"] != 1 || len(askAnswers(t, &inner, run)) != 1 {
		t.Errorf("the call took the run %d times, and the log has the answers %+v", made["Acquire"], askAnswers(t, &inner, run))
	}
	store.before = nil
	r, err := d.Run(t.Context(), run, nil)
	completes(t, r, err)
}

// An Asker is a state that a test may have refused behind an answer.
type Asker struct{ Word state.Value[string] }

var askerCheck func() error // of the test that runs; tests that set it are not parallel

func (*Asker) Check() error {
	if askerCheck != nil {
		return askerCheck()
	}
	return nil
}

// What keeps the call from going on behind the answer does not take that back.
func TestAnswerCountsThoughTheCallCantGoOn(t *testing.T) {
	defer func() { askerCheck = nil }()
	asks := func(keys ...string) *dag.Graph[Asker] {
		b := dag.New[Asker]("asks")
		for _, key := range keys {
			dag.Step(b, "node-"+key, func(ctx context.Context, s *Asker) error {
				_, err := dag.Ask[string](ctx, key, "which?")
				return err
			})
		}
		return frozen(t, b)
	}
	fault := func(kind string) func(error) bool {
		return func(err error) bool {
			var f *dispatcher.FaultError
			return errors.As(err, &f) && f.Kind == kind
		}
	}
	for name, c := range map[string]struct {
		check func() error
		hooks dispatcher.Hooks
		want  func(error) bool
	}{
		"the state is refused":         {check: func() error { return errWeather }, want: fault("check")},
		"its check ends the goroutine": {check: func() error { runtime.Goexit(); return nil }, want: fault("check")},
		"OnStart refuses":              {hooks: dispatcher.Hooks{OnStart: func(context.Context, dispatcher.Start) error { return errWeather }}, want: fault("hook")},
	} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			askerCheck = nil
			g := asks("word")
			d := callsDispatcher(t, g, &store, dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "node-word")
			askerCheck = c.check
			by := callsDispatcher(t, g, &store, dispatcher.Options{Hooks: c.hooks})
			_, err = by.Continue(t.Context(), run, dispatcher.Answering("", "this"), dispatcher.Author("Ada"))
			if !c.want(err) {
				t.Errorf("the call returned %v", err)
			}
			if all := askAnswers(t, &store, run); len(all) != 1 {
				t.Errorf("the log has the answers %+v, want Ada's", all)
			}
			askerCheck = nil
			res, err = d.Run(t.Context(), run, nil)
			completes(t, res, err)
		})
	}
}

// Of two questions of a visit one is answered: it counts, the run waits for the other one, and the
// call takes it once. Who answers both is done with one append.
func TestAnsweringTwoQuestionsOfAVisit(t *testing.T) {
	var inner memory.Store
	var appends [][]checkpoint.Kind
	acquired := 0
	store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
		switch k.method {
		case "Acquire":
			acquired++
		case "Append":
			appends = append(appends, kindsOf(k.entries))
		}
		return nil
	}}
	var w witness
	d := callsDispatcher(t, askSeveral(t, &w, 2, closedChan()), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
	one, two := askedBy(t, d, run, "asks0", "word"), askedBy(t, d, run, "asks0", "number")
	acquired = 0
	res, err = d.Resume(t.Context(), run, dispatcher.Answering(one, "this"))
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
	if acquired != 1 {
		t.Errorf("the call took the run %d times", acquired)
	}
	res, err = d.Resume(t.Context(), run, dispatcher.Answering(two, 7))
	rests(t, res, err, checkpoint.StatusInterrupted, "asks1")
	appends = nil
	res, err = d.Resume(t.Context(), run,
		dispatcher.Answering(askedBy(t, d, run, "asks1", "word"), "that"), dispatcher.Answering(askedBy(t, d, run, "asks1", "number"), 8))
	completes(t, res, err)
	if want := []checkpoint.Kind{checkpoint.Answered, checkpoint.Answered, checkpoint.Resumed}; !slices.Equal(appends[0], want) {
		t.Errorf("the first append says %v, want %v", appends[0], want)
	}
	for name, want := range map[string]string{"asks0": "this7", "asks1": "that8"} {
		if got, _ := res.State.Notes.Get(name); got != want {
			t.Errorf("node %s was told %q, want %q", name, got, want)
		}
	}
	w.expect(t, "works", "asks0", "asks1", "asks0", "asks1", "last")
}

// A doubt is resolved by the call that goes on in a graph in which its node has another name.
func TestAnsweringADoubtOfARenamedNode(t *testing.T) {
	var store memory.Store
	side := doubtSide{fails: 1}
	was := process(t, gatesNamed(t, dag.KindStep, "pay", side.pay(dag.InDoubt(dag.DoubtAsks))), &store, dispatcher.Options{})
	res, err := was.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "pay")
	o := migrating(dispatcher.Migration{Name: "m", Nodes: map[string]string{"pay": "bill"}})
	made := map[string]int{}
	is := process(t, gatesNamed(t, dag.KindStep, "bill", side.pay(dag.InDoubt(dag.DoubtAsks))), &tampered{Store: &store, before: countsCalls(made)}, o)
	res, err = is.Resume(t.Context(), run, dispatcher.Answering("", dispatcher.Happened("receipt by hand")))
	completes(t, res, err)
	if got := res.State.Word.Get(); got != "receipt by hand" || side.calls != 1 {
		t.Errorf("the state has %q, and the effect was done %d times", got, side.calls)
	}
	if made["Acquire"] != 1 {
		t.Errorf("the call took the run %d times", made["Acquire"])
	}
	sameMachine(t, is, run)
}

// A pause behind a visit, or before it, is answered by the call that goes on.
func TestAnsweringAPause(t *testing.T) {
	for _, o := range []dispatcher.Options{{InterruptAfter: []string{"node-1"}}, {InterruptBefore: []string{"node-2"}}} {
		for _, verdict := range []dispatcher.Verdict{dispatcher.Approve, dispatcher.Reject} {
			var store memory.Store
			d := callsDispatcher(t, benchChain(t, 3), &store, o)
			res, err := d.Run(t.Context(), run, nil)
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			res, err = d.Resume(t.Context(), run, dispatcher.Answering(res.Interrupts[0].ID, verdict))
			if verdict == dispatcher.Approve {
				completes(t, res, err)
				continue
			}
			if res.Status != checkpoint.StatusFailed {
				t.Errorf("a run that was rejected is %s, %v", res.Status, err)
			}
		}
	}
}
