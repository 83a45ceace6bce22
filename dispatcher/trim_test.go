package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// trimSteps lists which supersteps of a run are there.
func trimSteps[S any](t *testing.T, d *dispatcher.Dispatcher[S], id string) []int {
	t.Helper()
	var steps []int
	for p, err := range d.History(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, p.Superstep)
	}
	return steps
}

func trimVerified(t *testing.T, store checkpoint.Store, id string) {
	t.Helper()
	for f, err := range checkpoint.Verify(t.Context(), store, id) {
		t.Errorf("%s: %v, %v", id, f, err)
	}
}

// A trimmed run goes on as if nothing had happened. What was dropped is refused by name, what was
// kept for its name is read, and forks have all that they need.
func TestTrimmedRunGoesOn(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		o.InterruptBefore = []string{"e"}
		d := callsDispatcher(t, rewindLine(t, &w, "a", "b", "c", "d", "e"), store, o)
		res, err := d.Run(t.Context(), run, nil, dispatcher.Labels(map[string]string{"team": "red"}))
		rests(t, res, err, checkpoint.StatusInterrupted, "e")
		if err := d.Tag(t.Context(), run, "2", "good"); err != nil {
			t.Fatal(err)
		}
		forkOne(t, d, "1", "fork", dispatcher.ReuseOrLive)
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}, dispatcher.Author("ann")); err != nil {
			t.Fatal(err)
		}
		info, err := store.Stat(t.Context(), run)
		if err != nil || info.First <= 1 || info.Status != checkpoint.StatusInterrupted {
			t.Errorf("the log begins at %d, and the run is %s, %v", info.First, info.Status, err)
		}
		if got := trimSteps(t, d, run); !slices.Equal(got, []int{2, 4}) {
			t.Errorf("the supersteps %v are there", got)
		}
		if then, err := d.At(t.Context(), run, "tag:good"); err != nil || then.Superstep != 2 {
			t.Errorf("what was kept is of superstep %d, %v", then.Superstep, err)
		}
		for _, at := range []string{"1", "3", run + "@4"} {
			_, err := d.At(t.Context(), run, at)
			if !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("%s is %v", at, err)
			}
			advises(t, err, fmt.Sprintf("%q is no checkpoint that is left: the run was trimmed, and its log begins at entry %d", at, info.First))
		}
		for _, at := range []string{"17", run + "@99", "nobody@1"} {
			_, err := d.At(t.Context(), run, at)
			advises(t, err, fmt.Sprintf("%q is no checkpoint of the run: History lists them", at))
		}
		for _, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: 2}) {
			if !errors.Is(err, checkpoint.ErrTrimmed) {
				t.Errorf("events of what was dropped are %v", err)
			}
			advises(t, err, fmt.Sprintf("its log begins at entry %d: read from there, with a Since of %d", info.First, info.First-1))
		}
		heard := info.First - 1 // the way that the error shows
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: heard, States: true}) {
			if err != nil || e.Seq != heard+1 {
				t.Errorf("behind entry %d comes %d, %v", heard, e.Seq, err)
			}
			heard = e.Seq
		}
		trimVerified(t, store, run)
		unchanged(t, trimReads{store}, run, func() { // there is nothing more to drop
			if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 7}); err != nil {
				t.Error(err)
			}
		})
		if _, err := d.Fork(t.Context(), run, "tag:good", dispatcher.ForkOptions[Tale]{Into: []string{"kept"}}); err != nil {
			t.Fatal(err)
		}
		w.took()
		d = callsDispatcher(t, rewindLine(t, &w, "a", "b", "c", "d", "e"), store, dispatcher.Options{Paranoid: o.Paranoid})
		for id, want := range map[string][]string{run: {"e"}, "fork": {"b", "c", "d", "e"}, "kept": {"c", "d", "e"}} {
			res, err := d.Resume(t.Context(), id)
			completes(t, res, err)
			w.expect(t, want...)
			says(t, res.State, "a", "b", "c", "d", "e")
			if res.Labels["team"] != "red" {
				t.Errorf("%s has the labels %v", id, res.Labels)
			}
			trimVerified(t, store, id)
		}
		if got, want := blameText(t, d, run, "", "Said"), "Said: before at tale@9, "; len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("to blame are %q", got)
		}
		if err := d.Rewind(t.Context(), run, "tag:good", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "c", "d", "e")
	})
}

// trimReads is a store whose logs are read from where they begin.
type trimReads struct{ checkpoint.Store }

func (s trimReads) Read(ctx context.Context, run string, _, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return s.Store.Read(ctx, run, 0, to)
}

// Every run that comes to rest is trimmed as its dispatcher says: by number and age.
func TestRetentionTrimsAtRest(t *testing.T) {
	t.Parallel()
	var store memory.Store
	body := dag.New[Tale]("body")
	dag.Step(body, "in", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	b := dag.New[Tale]("long")
	dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 20 }, 30)
	g := frozen(t, b)
	keep := dispatcher.Retention{Last: 3}
	d := process(t, g, &store, dispatcher.Options{Retention: keep})
	for turn := range 3 {
		res, err := d.Run(t.Context(), run, nil)
		if turn > 0 {
			res, err = d.Turn(t.Context(), run, func(s *Tale) { s.Count.Set(0) })
		}
		completes(t, res, err)
		if len(res.Warnings) > 0 {
			t.Errorf("the warnings are %q", res.Warnings)
		}
		if got := len(trimSteps(t, d, run)); got != 3 {
			t.Errorf("%d checkpoints are there", got)
		}
		trimVerified(t, &store, run)
	}
	now := time.Now()
	old := dispatcher.WithNow(dispatcher.Options{Retention: dispatcher.Retention{Age: time.Hour}}, func() time.Time { return now.Add(2 * time.Hour) })
	young := dispatcher.Options{Retention: dispatcher.Retention{Age: time.Hour}}
	for id, o := range map[string]dispatcher.Options{"old": old, "young": young} {
		d := process(t, g, &store, o)
		res, err := d.Run(t.Context(), id, nil)
		completes(t, res, err)
		if got, want := len(trimSteps(t, d, id)), map[string]int{"old": 1, "young": 21}[id]; got != want {
			t.Errorf("%s: %d checkpoints are there, want %d", id, got, want)
		}
	}
}

// The opening is a checkpoint too: where all that there are stay, nothing is dropped, and the run
// can be tried anew from its input.
func TestTrimKeepsTheOpening(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]dispatcher.Retention{"number": {Last: 4}, "age": {Age: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			var w witness
			d := process(t, rewindLine(t, &w, "a", "b", "c"), &store, dispatcher.Options{Retention: keep})
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			if err := d.Trim(t.Context(), run, keep); err != nil {
				t.Fatal(err)
			}
			info, err := store.Stat(t.Context(), run)
			if err != nil || info.First != 1 || info.Head.Seq != res.Cursor.Seq {
				t.Errorf("the log has entries %d to %d, want 1 to %d: %v", info.First, info.Head.Seq, res.Cursor.Seq, err)
			}
			if at, err := d.At(t.Context(), run, "0"); err != nil || at.Superstep != 0 {
				t.Errorf("at the opening: %v", err)
			}
			if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 3}); err != nil {
				t.Fatal(err)
			}
			if _, err := d.At(t.Context(), run, "0"); !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("at the opening, of which three checkpoints are newer: %v", err)
			}
			if got := len(trimSteps(t, d, run)); got != 3 {
				t.Errorf("%d checkpoints are there, want 3", got)
			}
		})
	}
}

// A trim that is refused changes nothing.
func TestTrimRefused(t *testing.T) {
	t.Parallel()
	var store memory.Store
	var w witness
	d := process(t, rewindLine(t, &w, "a", "b"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	var o *dispatcher.OptionError
	for _, keep := range []dispatcher.Retention{{}, {Last: -1}, {Age: -1}} {
		unchanged(t, &store, run, func() {
			if err := d.Trim(t.Context(), run, keep); !errors.As(err, &o) {
				t.Errorf("%+v: the trim returned %v", keep, err)
			}
		})
		if _, err := dispatcher.New(rewindLine(t, &w, "a"), &store, dispatcher.Options{Retention: keep}); keep != (dispatcher.Retention{}) && !errors.As(err, &o) {
			t.Errorf("%+v: New returned %v", keep, err)
		}
	}
	if err := d.Trim(t.Context(), "nobody", dispatcher.Retention{Last: 1}); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("the trim of no run returned %v", err)
	}
	if _, err := store.Acquire(t.Context(), run, "somebody"); err != nil {
		t.Fatal(err)
	}
	unchanged(t, &store, run, func() {
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1}); !errors.Is(err, dispatcher.ErrBusy) {
			t.Errorf("the trim of a live run returned %v", err)
		}
	})
}

// A tag whose checkpoint nobody kept is no typo: the error says that the run was trimmed.
func TestTrimmedTagSaysSo(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, rewindLine(t, &w, "a", "b", "c"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	if err := errors.Join(d.Tag(t.Context(), run, "1", "good"), d.Trim(t.Context(), run, dispatcher.Retention{Last: 1})); err != nil {
		t.Fatal(err)
	}
	_, err = d.At(t.Context(), run, "tag:good")
	if !errors.Is(err, checkpoint.ErrCursor) {
		t.Errorf("the tag is %v", err)
	}
	advises(t, err, `"tag:good" is no checkpoint that is left: the run was trimmed`)
	_, err = d.At(t.Context(), run, "tag:bad")
	advises(t, err, `the run has no tag "bad"`)
}

// A run that waits behind a visit, in whatever frame, is trimmed where the interrupt stands between
// the visit and the end of its superstep. It is read and goes on as if nothing had happened.
func TestTrimBehindAnInterruptAfter(t *testing.T) {
	t.Parallel()
	said := func(name string) part {
		return func(_ context.Context, s *Tale) error { s.Said.Append(name); return nil }
	}
	in := dag.New[Tale]("inner")
	dag.Step(in, "post", said("post"), dag.Step(in, "pre", said("pre")))
	inner := frozen(t, in)
	joined := func(from, to *Tale) { to.Said.Append(from.Said.Slice()...) }
	outer := func(add func(b *dag.Builder[Tale])) *dag.Graph[Tale] {
		b := dag.New[Tale]("outer")
		add(b)
		return frozen(t, b)
	}
	for after, g := range map[string]*dag.Graph[Tale]{
		"pre":       inner,
		"embed/pre": outer(func(b *dag.Builder[Tale]) { dag.Embed(b, "embed", inner, func(_, _ *Tale) {}, joined) }),
		"loop/pre": outer(func(b *dag.Builder[Tale]) {
			dag.Loop(b, "loop", inner, func(s *Tale) bool { return s.Said.Len() >= 4 }, 2)
		}),
		"each/pre": outer(func(b *dag.Builder[Tale]) {
			dag.EachGraph(b, "each", func(*Tale) []int { return []int{1, 2} }, inner, func(*Tale, int, *Tale) {},
				func(from *Tale, _ int, to *Tale) { joined(from, to) })
		}),
	} {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
			o.InterruptAfter = []string{after}
			want := saidAtRest(t, g, new(memory.Store), o, false)
			if got := saidAtRest(t, g, store, o, true); len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s: trimmed, the run said %q, want %q", after, got, want)
			}
		})
	}
}

// saidAtRest runs g to its end, by another dispatcher each time that it has come to rest, and
// returns what it said. It is trimmed at every rest, if it is to be.
func saidAtRest(t *testing.T, g *dag.Graph[Tale], store checkpoint.Store, o dispatcher.Options, trimmed bool) []string {
	t.Helper()
	res, err := callsDispatcher(t, g, store, o).Run(t.Context(), run, nil)
	for errors.Is(err, dispatcher.ErrInterrupted) {
		if trimmed {
			if err := callsDispatcher(t, g, store, o).Trim(t.Context(), run, dispatcher.Retention{Last: 1}); err != nil {
				t.Fatal(err)
			}
			trimVerified(t, store, run)
			if _, err := callsDispatcher(t, g, store, o).State(t.Context(), run); err != nil {
				t.Fatalf("State of the trimmed run: %v", err)
			}
		}
		res, err = callsDispatcher(t, g, store, o).Resume(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res.State.Said.Slice()
}

// Where a run stands, as a call returns it, is where it stands: also if the call has trimmed it.
func TestRetentionTellsWhereTheRunStands(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		o.InterruptBefore, o.Retention = []string{"c", "d"}, dispatcher.Retention{Last: 1}
		g := rewindLine(t, &w, "a", "b", "c", "d")
		res, err := callsDispatcher(t, g, store, o).Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "c")
		for _, next := range []string{"d", ""} {
			rest := (*dispatcher.Rest)(nil)
			if info, serr := store.Stat(t.Context(), run); serr != nil || !errors.As(err, &rest) || info.First < 2 ||
				res.Cursor.Seq != info.Head.Seq || rest.Cursor.Seq != info.Head.Seq {
				t.Fatalf("the cursor is %v, and %v in the error; the run stands at %d, and begins at %d, %v",
					res.Cursor, err, info.Head.Seq, info.First, serr)
			}
			res, err = callsDispatcher(t, g, store, o).Resume(t.Context(), run, dispatcher.From(res.Cursor))
			if next != "" {
				rests(t, res, err, checkpoint.StatusInterrupted, next)
			}
		}
		if err != nil || res.Status != checkpoint.StatusCompleted {
			t.Errorf("the run is %s, %v", res.Status, err)
		}
	})
}

// A Turn whose own input is refused, or not taken, has come to rest as well: what it ran before
// that is trimmed.
func TestRetentionOfATurnWhoseInputIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, breaks := range []bool{false, true} {
		var store memory.Faulty
		broken, broke := errors.New("the queue is broken"), false
		store.FailRead = func(_ context.Context, method, _ string) error {
			if broke && method == "Posts" {
				return broken
			}
			return nil
		}
		o := dispatcher.Options{Retention: dispatcher.Retention{Last: 1}, Observe: func(e dispatcher.Event) {
			broke = broke || breaks && e.Turn == 2 && e.Kind == dispatcher.RunRested
		}}
		d := process(t, callsTalk(t, nil), &store, o)
		res, err := d.Run(t.Context(), run, hear("one"))
		completes(t, res, err)
		before, err := store.Stat(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		enqueue(t, d, "good")
		res, err = d.Turn(t.Context(), run, hear("bad"))
		fault := (*dispatcher.FaultError)(nil)
		if refused := errors.As(err, &fault); refused == breaks || errors.Is(err, broken) != breaks || res.Turn != 2 || res.Status != checkpoint.StatusCompleted {
			t.Errorf("broken %t: the run is %s in turn %d, and Turn returned %v", breaks, res.Status, res.Turn, err)
		}
		if info, err := store.Stat(t.Context(), run); err != nil || info.First <= before.First || res.Cursor.Seq != info.Head.Seq {
			t.Errorf("broken %t: the log began at %d, and has entries %d to %d, %v; the cursor is %s",
				breaks, before.First, info.First, info.Head.Seq, err, res.Cursor)
		}
	}
}

// A checkpoint that is exactly as old as one may be stays.
func TestTrimKeepsWhatIsJustAsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		d := process(t, line(t, &w, func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Second) }), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		<-time.After(time.Second)
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Age: time.Second}); err != nil {
			t.Fatal(err)
		}
		if got := len(trimSteps(t, d, run)); got != 2 {
			t.Errorf("%d checkpoints are there, want 2: of b and c", got)
		}
	})
}
