package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// A conflict behind the append of the answers is that of a call that has begun: it does not begin again.
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

// Of two questions of a visit one is answered: it counts, the run waits for the other one, and the call takes it once. Who answers both is
// done with one append.
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

// Who watches a call that has to begin again, since somebody has posted under its number, sees one call.
func TestAnsweringAgainIsOneCall(t *testing.T) {
	var inner memory.Store
	var w witness
	g := askSeveral(t, &w, 2, closedChan())
	d := callsDispatcher(t, g, &inner, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
	head := res.Cursor.Seq
	var first []dispatcher.RunOption
	second := map[string]any{}
	for _, i := range res.Interrupts {
		var value any = 7
		if i.Key == "word" {
			value = "this"
		}
		if i.Path == "asks1" {
			second[i.ID] = value
			continue
		}
		first = append(first, dispatcher.Answering(i.ID, value))
	}
	refusals := 0
	store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		if k.method == "Append" && k.n == 1 {
			return d.Answers(ctx, run, second)
		}
		return nil
	}, after: func(k call, err error) error {
		if k.method == "Append" && err != nil {
			refusals++
		}
		return err
	}}
	var observed []dispatcher.Event
	ends := 0
	by := callsDispatcher(t, g, store, dispatcher.Options{
		Observe: func(e dispatcher.Event) { observed = append(observed, e) },
		Hooks:   dispatcher.Hooks{OnEnd: func(context.Context, dispatcher.End) error { ends++; return nil }},
	})
	var streamed []dispatcher.Event
	for e, err := range by.Stream(t.Context(), run, nil, dispatcher.Listen{Since: head}, first...) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Result == nil {
			streamed = append(streamed, e.Event)
		}
	}
	if refusals != 1 || ends != 1 {
		t.Errorf("the store has refused %d appends, want one, and OnEnd was called %d times", refusals, ends)
	}
	for who, events := range map[string][]dispatcher.Event{"the observer": observed, "the stream": streamed} {
		next := head + 1
		for _, e := range events {
			switch {
			case e.Live && e.Kind == dispatcher.RunRested:
				t.Errorf("%s was told that the run is left: %s", who, e)
			case !e.Live && e.Seq != next:
				t.Fatalf("%s was told of entry %d, want %d", who, e.Seq, next)
			case !e.Live:
				next++
			}
		}
		if info, err := inner.Stat(t.Context(), run); err != nil || info.Head.Seq != next-1 {
			t.Errorf("%s was told of entries up to %d of %d, %v", who, next-1, info.Head.Seq, err)
		}
	}
	w.expect(t, "works", "asks0", "asks1", "asks0", "asks1", "last")
}

// A call that has to begin again goes on from where it was told to, or not at all: what another one has made of the run
// meanwhile is not what it answers.
func TestAnsweringAgainKeepsFrom(t *testing.T) {
	var inner memory.Store
	b := dag.New[Tale]("asks")
	dag.Step(b, "node", func(ctx context.Context, s *Tale) error {
		for _, key := range []string{"one", "two"} {
			word, err := dag.Ask[string](ctx, key, "which?")
			if err != nil {
				return err
			}
			s.Word.Set(word)
		}
		return nil
	})
	g := frozen(t, b)
	d := callsDispatcher(t, g, &inner, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "node")
	store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		switch {
		case k.method == "Append" && k.n == 1:
			return d.Answer(ctx, run, "", "theirs")
		case k.method == "Acquire" && k.n == 2:
			if _, err := d.Resume(ctx, run); !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Errorf("the other call: %v, want that it waits for the second question", err)
			}
		}
		return nil
	}}
	by := callsDispatcher(t, g, store, dispatcher.Options{})
	if _, err := by.Resume(t.Context(), run, dispatcher.From(res.Cursor), dispatcher.Answering("", "mine")); !errors.Is(err, dispatcher.ErrStaleCursor) {
		t.Errorf("the call returned %v, want ErrStaleCursor", err)
	}
	if all := askAnswers(t, &inner, run); len(all) != 1 {
		t.Errorf("the log has the answers %+v, want theirs", all)
	}
}

// Who cancels a run whose call has to begin again has cancelled that call. Its answers count.
func TestAnsweringAgainHearsACancel(t *testing.T) {
	var inner memory.Store
	var w witness
	g := askSeveral(t, &w, 2, closedChan())
	d := callsDispatcher(t, g, &inner, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
	var first []dispatcher.RunOption
	second := map[string]any{}
	for _, i := range res.Interrupts {
		var value any = 7
		if i.Key == "word" {
			value = "this"
		}
		if i.Path == "asks1" {
			second[i.ID] = value
			continue
		}
		first = append(first, dispatcher.Answering(i.ID, value))
	}
	store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
		if k.method == "Append" && k.n == 1 {
			return errors.Join(d.Cancel(ctx, run, errWeather, dispatcher.Author("Ada")), d.Answers(ctx, run, second))
		}
		return nil
	}}
	res, err = callsDispatcher(t, g, store, dispatcher.Options{}).Resume(t.Context(), run, first...)
	rests(t, res, err, checkpoint.StatusCancelled, "asks0", "asks1")
	var rest *dispatcher.Rest
	if errors.As(err, &rest); rest.By != "Ada" || !strings.Contains(err.Error(), errWeather.Error()) {
		t.Errorf("the call returned %v, by %q", err, rest.By)
	}
	if all := askAnswers(t, &inner, run); len(all) != 4 {
		t.Errorf("the log has the answers %+v, want four", all)
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
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

// The grace period of a call that has to begin again is one, however much of it is left then.
func TestAnsweringAgainEndsWithinItsGrace(t *testing.T) {
	for _, late := range []time.Duration{time.Second, 3 * time.Second, 4600 * time.Millisecond, 4900 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) { answersAgainWithinGrace(t, late) })
	}
}

func answersAgainWithinGrace(t *testing.T, late time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var inner memory.Store
		var w witness
		g := askSeveral(t, &w, 2, closedChan())
		d := callsDispatcher(t, g, &inner, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks0", "asks1")
		mine := func(i int) map[string]any {
			path := []string{"asks0", "asks1"}[i]
			return map[string]any{askedBy(t, d, run, path, "word"): "this", askedBy(t, d, run, path, "number"): 7}
		}
		first, second := mine(0), mine(1)
		hung := make(chan struct{})
		store := &tampered{Store: &inner, before: func(ctx context.Context, k call) error {
			switch {
			case k.method == "Append" && k.n == 1:
				time.Sleep(late)
				return d.Answers(ctx, run, second)
			case k.method == "Append":
				<-hung
			}
			return nil
		}}
		by := callsDispatcher(t, g, store, dispatcher.Options{Grace: 5 * time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var options []dispatcher.RunOption
		for id, value := range first {
			options = append(options, dispatcher.Answering(id, value))
		}
		began := time.Now()
		if _, err := by.Resume(ctx, run, options...); !errors.Is(err, dispatcher.ErrStuck) {
			t.Errorf("the call returned %v, want ErrStuck", err)
		}
		if took := time.Since(began); took > 5*time.Second+5*time.Millisecond { // a moment is always left to tell how the run rests
			t.Errorf("the call returned after %v, its grace period is 5s", took)
		}
		close(hung)
		synctest.Wait()
		res, err = d.Run(t.Context(), run, nil)
		if err != nil { // what hung has heeded its context, or not
			res, err = d.Run(t.Context(), run, nil, options...)
		}
		completes(t, res, err)
	})
}
