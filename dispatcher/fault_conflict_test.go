package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A clash is two parallel writes that don't merge. A third writer, whose writes may clash
// with these, is not at fault: only the first pair is.
type clash struct {
	name       string
	one, other func(s *Tale)
	cell, key  string
}

var clashes = []clash{
	{"value", func(s *Tale) { s.Word.Set("one") }, func(s *Tale) { s.Word.Set("other") }, "Word", ""},
	{"the same value", func(s *Tale) { s.Word.Set("same") }, func(s *Tale) { s.Word.Set("same") }, "Word", ""},
	{"value and clear", func(s *Tale) { s.Word.Set("one") }, func(s *Tale) { s.Word.Clear() }, "Word", ""},
	{"key", func(s *Tale) { s.Notes.Put("k", "one") }, func(s *Tale) { s.Notes.Delete("k") }, "Notes", "k"},
	{"map", func(s *Tale) { s.Notes.Put("k", "one") }, func(s *Tale) { s.Notes.Clear() }, "Notes", ""},
	{"element", func(s *Tale) { s.Tags.Add("x", "k") }, func(s *Tale) { s.Tags.Remove("k", "y") }, "Tags", `"k"`},
	{"sum", func(s *Tale) { s.Count.Add(1) }, func(s *Tale) { s.Count.Set(1) }, "Count", ""},
	{"list", func(s *Tale) { s.Said.Append("one") }, func(s *Tale) { s.Said.Replace(nil) }, "Said", ""},
}

// writers returns a graph of three parallel writers and a last node. The second writer is
// a Loop, whose second iteration writes, if looped says so.
func writers(t testing.TB, w *witness, c clash, looped bool, mended *bool) *dag.Graph[Tale] {
	other := func(ctx context.Context, s *Tale) error {
		w.note(ctx)
		if looped && visitPath(ctx) != "other/2/write" {
			return nil
		}
		if *mended {
			return nil
		}
		c.other(s)
		return nil
	}
	b := dag.New[Tale]("writers")
	all := []dag.Edge[Tale]{dag.Step(b, "one", func(ctx context.Context, s *Tale) error {
		w.note(ctx)
		c.one(s)
		return nil
	})}
	if looped {
		body := dag.New[Tale]("body")
		dag.Step(body, "write", other)
		rounds := 0
		all = append(all, dag.Loop(b, "other", frozen(t, body), func(*Tale) bool { rounds++; return rounds%2 == 0 }, 3))
	} else {
		all = append(all, dag.Step(b, "other", other))
	}
	all = append(all, dag.Step(b, "third", func(ctx context.Context, s *Tale) error {
		w.note(ctx)
		s.Notes.Put("third", "was here")
		return nil
	}))
	dag.Step(b, "last", func(ctx context.Context, _ *Tale) error { w.note(ctx); return nil }, all...)
	return frozen(t, b)
}

func TestConflictFailsAndIsMended(t *testing.T) {
	quiet(t)
	for _, c := range clashes {
		for _, looped := range []bool{false, true} {
			t.Run(map[bool]string{false: c.name, true: c.name + "/loop"}[looped], func(t *testing.T) { c.meet(t, looped) })
		}
	}
}

func (c clash) meet(t *testing.T, looped bool) {
	var w witness
	var inner memory.Store
	var last []checkpoint.Entry // of the last append
	store := &tampered{Store: &inner, before: func(_ context.Context, k call) error {
		if k.method == "Append" {
			last = slices.Clone(k.entries)
		}
		return nil
	}}
	mended := false
	g := writers(t, &w, c, looped, &mended)
	again := []string{"one", "other"} // and nothing else, once they are voided
	if looped {
		again = []string{"one", "other/1/write", "other/2/write"}
	}
	third := []string{"third"}

	check := func(res *dispatcher.Result[Tale], err error) {
		t.Helper()
		rests(t, res, err, checkpoint.StatusFailed, "one", "other")
		var conflict *state.ConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("the error is %v, want a ConflictError", err)
		}
		if want := (state.ConflictError{Cell: c.cell, Key: c.key, Visits: [2]string{"one", "other"}}); *conflict != want {
			t.Errorf("the conflict is %+v, want %+v", *conflict, want)
		}
		if !slices.Equal(res.Finished, third) {
			t.Errorf("finished: %q, want %q", res.Finished, third)
		}
		if res.Superstep != 0 || asJSON(t, res.State) != asJSON(t, new(Tale)) {
			t.Errorf("after superstep %d the state is %s, want nothing merged", res.Superstep, asJSON(t, res.State))
		}
		voidedWithFailure(t, last, "one", "other")
	}

	check(process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil))
	w.expect(t, append(slices.Clone(again), third...)...)
	check(process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)) // nobody has mended it
	w.expect(t, again...)
	mended = true
	res, err := process(t, g, store, dispatcher.Options{}).Resume(t.Context(), run)
	completes(t, res, err)
	w.expect(t, append(again, "last")...)
}

// voidedWithFailure checks that one append holds both the failure of the run and what it
// takes back.
func voidedWithFailure(t *testing.T, entries []checkpoint.Entry, want ...string) {
	t.Helper()
	var voided []string
	failed := false
	for _, e := range entries {
		switch e.Kind {
		case checkpoint.Voided:
			if err := json.Unmarshal(e.Data, &voided); err != nil {
				t.Fatal(err)
			}
		case checkpoint.Failed:
			failed = true
		}
	}
	if !failed || !slices.Equal(voided, want) {
		t.Errorf("the append that failed the run (%t) voids %q, want %q", failed, voided, want)
	}
}

// Why a run failed that no visit made fail is told by every call that returns where it stands, also
// by another process, and until the run goes on or is something else.
func TestFaultOfARunIsReadAtRest(t *testing.T) {
	quiet(t)
	conflict := writers(t, new(witness), clashes[0], false, new(bool))
	for _, test := range []struct {
		g      *dag.Graph[Tale]
		limits dispatcher.Limits
		kind   string
	}{
		{conflict, dispatcher.Limits{}, "conflict"},
		{changeLine(t, new(witness), "a", "b"), dispatcher.Limits{Supersteps: 1}, "limit"},
		{changeLine(t, new(witness), "a", "b"), dispatcher.Limits{}, ""},
		{effectNode(t, func(context.Context, *Tale) error { return errWeather }, dag.Policy{}), dispatcher.Limits{}, ""},
	} {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
			o.Limits = test.limits
			tells := func(what string, res *dispatcher.Result[Tale], kind, message string) {
				t.Helper()
				switch is := res.Fault; {
				case kind == "" && is != nil:
					t.Errorf("%s: the fault is %v, want none", what, is)
				case kind != "" && (is == nil || is.Kind != kind || is.Message != message):
					t.Errorf("%s: the fault is %v, want a %s: %s", what, is, kind, message)
				}
			}
			d := callsDispatcher(t, test.g, store, o)
			live, err := d.Run(t.Context(), run, nil)
			message := ""
			if live.Fault != nil {
				message = live.Fault.Message
				if rest := new(dispatcher.Rest); !errors.As(err, &rest) || rest.Cause.Error() != message {
					t.Errorf("the fault is %v, and the error %v", live.Fault, err)
				}
			}
			tells("Run", live, test.kind, message)
			d = callsDispatcher(t, test.g, store, o)
			at, err := d.State(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			tells("State", at, test.kind, message)
			if at, err = d.At(t.Context(), run, "0"); err != nil {
				t.Fatal(err)
			}
			tells("At before", at, "", "")
			if test.kind == "" {
				return
			}
			if err := d.Cancel(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
			if at, err = d.State(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			tells("State of the cancelled run", at, "", "")
		})
	}
}

// A fault is over once the run goes on: nobody is told of it while the run is at work, nor if it
// fails of something else then.
func TestFaultOfARunIsOverOnceItGoesOn(t *testing.T) {
	quiet(t)
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var g *dag.Graph[Tale]
		none := func(what string, status checkpoint.Status, res *dispatcher.Result[Tale]) {
			t.Helper()
			if res.Status != status || res.Fault != nil {
				t.Errorf("%s: the run is %s with the fault %v, want it %s with none", what, res.Status, res.Fault, status)
			}
		}
		state := func(what string, status checkpoint.Status) error {
			t.Helper()
			res, err := callsDispatcher(t, g, store, o).State(t.Context(), run)
			none(what, status, res)
			return err
		}
		fails := true
		b := dag.New[Tale]("more")
		dag.Step(b, "b", func(context.Context, *Tale) error {
			err := state("State while it runs", checkpoint.StatusRunning)
			if fails {
				err = errors.Join(err, errWeather)
			}
			return err
		}, dag.Step(b, "a", func(context.Context, *Tale) error { return nil }))
		g = frozen(t, b)

		limited := o
		limited.Limits.Supersteps = 1
		if res, _ := callsDispatcher(t, g, store, limited).Run(t.Context(), run, nil); res.Fault == nil {
			t.Fatalf("the run is %s, want a fault", res.Status)
		}
		res, err := callsDispatcher(t, g, store, o).Resume(t.Context(), run)
		rests(t, res, err, checkpoint.StatusFailed, "b")
		none("Resume that fails", checkpoint.StatusFailed, res)
		if err := state("State of what has failed otherwise", checkpoint.StatusFailed); err != nil {
			t.Error(err)
		}
		fails = false
		res, err = callsDispatcher(t, g, store, o).Resume(t.Context(), run)
		completes(t, res, err)
		none("Resume to the end", checkpoint.StatusCompleted, res)
	})
}
