package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

func TestScenario31InterruptBefore(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	o := dispatcher.Options{InterruptBefore: []string{"b"}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	w.expect(t, "a")
	says(t, res.State, "a")
	var rest *dispatcher.Rest
	errors.As(err, &rest)
	if rest.Run != run || res.Run != run || res.Superstep != 1 || len(rest.Interrupts) != 1 {
		t.Fatalf("the error is %+v, beside %+v", rest, res)
	}
	if i := rest.Interrupts[0]; i.Path != "b" || i.Kind != dispatcher.KindBefore || i.ID == "" || i.Key != "" {
		t.Errorf("the interrupt is %+v, want one before b", i)
	}
}

// Scenario 32: what a resume ended does not pause again. That a later visit does is told in
// TestScenario32EveryIterationPauses.
func TestScenario32ResumeAfterBefore(t *testing.T) {
	pausesOnce(t, dispatcher.Options{InterruptBefore: []string{"b"}}, "b", "a")
}

// An interrupt that was taken is not taken again, also if the visit did not begin then.
func TestScenario32TakenOnceOverACancel(t *testing.T) {
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	o := dispatcher.Options{InterruptBefore: []string{"b"}}
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err = process(t, g, &store, o).Resume(ctx, run)
	rests(t, res, err, checkpoint.StatusCancelled, "b")
	res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "a", "b", "c")
}

func TestScenario33InterruptAfter(t *testing.T) {
	i := pausesOnce(t, dispatcher.Options{InterruptAfter: []string{"a"}}, "b", "a")
	if i.Path != "a" || i.Kind != dispatcher.KindAfter {
		t.Errorf("the interrupt is %+v, want one after a", i)
	}
}

// After the last node the frame does not end until the interrupt has.
func TestScenario33InterruptAfterTheLast(t *testing.T) {
	pausesOnce(t, dispatcher.Options{InterruptAfter: []string{"c"}}, "c", "a", "b", "c")
}

// pausesOnce runs a line of visits until it pauses, which stands at a visit when these are done.
// Another process resumes it, and it runs the others to the end. It returns the interrupt.
func pausesOnce(t *testing.T, o dispatcher.Options, at string, done ...string) dispatcher.Interrupt {
	t.Helper()
	quiet(t)
	var w witness
	var store memory.Store
	g := line(t, &w, nil)
	res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, at)
	w.expect(t, done...)
	says(t, res.State, done...)
	if len(res.Interrupts) != 1 {
		t.Fatalf("the interrupts are %+v, want one", res.Interrupts)
	}
	paused := res.Interrupts[0]
	res, err = process(t, g, &store, o).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, []string{"a", "b", "c"}[len(done):]...)
	says(t, res.State, "a", "b", "c")
	return paused
}

func TestScenario33Verdicts(t *testing.T) {
	quiet(t)
	for _, c := range []struct {
		before, after []string
		verdict       dispatcher.Verdict
		status        checkpoint.Status
		cursor        []string
		ran           []string
	}{
		{before: []string{"b"}, verdict: dispatcher.Approve, status: checkpoint.StatusCompleted, ran: []string{"b", "c"}},
		{before: []string{"b"}, verdict: dispatcher.Reject, status: checkpoint.StatusFailed, cursor: []string{"b"}},
		{after: []string{"a"}, verdict: dispatcher.Approve, status: checkpoint.StatusCompleted, ran: []string{"b", "c"}},
		{after: []string{"a"}, verdict: dispatcher.Reject, status: checkpoint.StatusFailed, cursor: []string{"b"}},
	} {
		t.Run(fmt.Sprint(c.before, c.after, c.verdict), func(t *testing.T) {
			var w witness
			var store memory.Store
			d := process(t, line(t, &w, nil), &store, dispatcher.Options{InterruptBefore: c.before, InterruptAfter: c.after})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			w.expect(t, "a")
			id := res.Interrupts[0].ID
			if err := d.Answer(t.Context(), run, id, "perhaps"); !errors.Is(err, dispatcher.ErrAnswerType) {
				t.Errorf("the answer perhaps was taken: %v", err)
			}
			if err := d.Answer(t.Context(), run, id, c.verdict); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
			if c.status == checkpoint.StatusCompleted {
				completes(t, res, err)
			} else {
				rests(t, res, err, c.status, c.cursor...)
				var failed *dispatcher.NodeError
				if !errors.As(err, &failed) || failed.Kind != dag.FailedRejected {
					t.Errorf("the error is %v, want one of kind %s", err, dag.FailedRejected)
				}
			}
			w.expect(t, c.ran...)
		})
	}
}

func TestScenario34InterruptsThatCannotBe(t *testing.T) {
	quiet(t)
	var w witness
	g := nest(t, &w, nil)
	before := func(path string) dispatcher.Options { return dispatcher.Options{InterruptBefore: []string{path}} }
	for name, o := range map[string]dispatcher.Options{
		"InterruptBefore": before("first"),
		"InterruptAfter":  {InterruptAfter: []string{"first"}},
		"InterruptIf":     {InterruptIf: func(dispatcher.Boundary) bool { return false }},
	} {
		if _, err := dispatcher.New(g, nil, o); !isOptionError(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("New with %s and no store returned %v", name, err)
		}
	}
	for _, path := range []string{
		"nobody", "", "house/nobody", "first/more", "house/rounds/0/mop", "house/rounds/6/mop", "house/rounds/02/mop",
		"house/rounds/2", "rounds/mop", "mop", "/first", "house//rounds", "house/rounds/-1/mop",
	} {
		_, err := dispatcher.New(g, &memory.Store{}, before(path))
		if !isOptionError(err) || !strings.Contains(err.Error(), fmt.Sprintf("%q", path)) {
			t.Errorf("New with an interrupt before %q returned %v", path, err)
		}
	}
	for _, path := range []string{"first", "house", "house/rounds", "house/rounds/mop", "house/rounds/5/mop"} {
		if _, err := dispatcher.New(g, &memory.Store{}, before(path)); err != nil {
			t.Errorf("New with an interrupt before %s returned %v", path, err)
		}
	}
	w.expect(t)
}

// Nothing pauses at a dag.Fail, so nothing that names one is taken for a pause, a gate or an
// interceptor that is never asked.
func TestScenario34InterruptsAtADagFail(t *testing.T) {
	quiet(t)
	inner := dag.New[Tale]("inner")
	dag.Fail(inner, "ruin", dag.Step(inner, "try", func(context.Context, *Tale) error { return nil }))
	b := dag.New[Tale]("outer")
	dag.Loop(b, "rounds", frozen(t, inner), func(*Tale) bool { return true }, 3)
	g := frozen(t, b)
	stands := func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Continue() }
	for _, path := range []string{"rounds/ruin", "rounds/2/ruin"} {
		for name, o := range map[string]dispatcher.Options{
			"InterruptBefore": {InterruptBefore: []string{path}},
			"InterruptAfter":  {InterruptAfter: []string{path}},
			"Gates":           {Gates: dispatcher.Gates{Names: []string{path}}},
			"Intercept":       {Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{Nodes: []string{path}, Before: stands}}}},
		} {
			_, err := dispatcher.New(g, &memory.Store{}, o)
			if !isOptionError(err) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), name) {
				t.Errorf("New with %s of %s returned %v", name, path, err)
			}
		}
	}
}

func isOptionError(err error) bool {
	var o *dispatcher.OptionError
	return errors.As(err, &o)
}

// Scenario 36: a node asks, the run waits, and an answer lets it go on from its first line.
func TestScenario36Ask(t *testing.T) {
	quiet(t)
	type dose struct{ Drug, Unit string }
	var w witness
	var store memory.Store
	g := line(t, &w, func(ctx context.Context, s *Tale) error {
		s.Notes.Put("draft", "dropped")
		amount, err := dag.Ask[int](ctx, "amount", dose{"tea", "cups"})
		if err != nil {
			return err
		}
		s.Word.Set(fmt.Sprintf("%d cups", amount))
		return nil
	})
	res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	w.expect(t, "a", "b")
	if len(notes(res.State)) > 0 {
		t.Errorf("the draft of a visit that asks is in the state: %v", notes(res.State))
	}
	if len(res.Interrupts) != 1 {
		t.Fatalf("the interrupts are %+v, want one", res.Interrupts)
	}
	i := res.Interrupts[0]
	var question dose
	if err := json.Unmarshal(i.Question, &question); err != nil || question != (dose{"tea", "cups"}) {
		t.Errorf("the question reads %s, %v", i.Question, err)
	}
	if i.Key != "amount" || i.Kind != dispatcher.KindAsked || i.Path != "b" {
		t.Errorf("the interrupt is %+v, want amount, asked by b", i)
	}

	// Neither Run nor Resume ends it, and nothing runs for it.
	d := process(t, g, &store, dispatcher.Options{})
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	res, err = d.Resume(t.Context(), run)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	w.expect(t)
	if err := d.Answer(t.Context(), run, i.ID, 3); err != nil {
		t.Fatal(err)
	}
	res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
	completes(t, res, err)
	w.expect(t, "b", "c")
	says(t, res.State, "a", "b", "c")
	if got := res.State.Word.Get(); got != "3 cups" {
		t.Errorf("the answer became %q", got)
	}
}

// One visit may ask several questions, one after the other or at once.
func TestScenario36AskTwice(t *testing.T) {
	quiet(t)
	for _, atOnce := range []bool{false, true} {
		var w witness
		var store memory.Store
		g := line(t, &w, func(ctx context.Context, s *Tale) error {
			one, err := dag.Ask[string](ctx, "one", "which?")
			if err != nil && !atOnce {
				return err
			}
			two, err2 := dag.Ask[string](ctx, "two", "why?")
			if err = errors.Join(err, err2); err != nil {
				return err
			}
			s.Word.Set(one + two)
			return nil
		})
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		asked := []string{"one"}
		if atOnce {
			asked = []string{"one", "two"}
		}
		for range 2 {
			d := process(t, g, &store, dispatcher.Options{})
			var keys []string
			for _, i := range res.Interrupts {
				keys = append(keys, i.Key)
			}
			if !slices.Equal(keys, asked) {
				t.Errorf("the keys are %q, want %q", keys, asked)
			}
			if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, keys[0]+"!"); err != nil {
				t.Fatal(err)
			}
			if res, err = d.Run(t.Context(), run, nil); err == nil {
				break
			}
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			asked = []string{"two"}
		}
		completes(t, res, err)
		if got := res.State.Word.Get(); got != "one!two!" {
			t.Errorf("the answers became %q", got)
		}
	}
}
