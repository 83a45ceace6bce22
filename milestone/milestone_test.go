package milestone_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
	"github.com/pawlgo/pawl/state"
)

// A Task is worked at in phases, with rising confidence.
type Task struct {
	Phase      state.Value[string]
	Confidence state.Value[float64]
	Rounds     state.Sum[int]
}

var errOffline = errors.New("offline")

// task is a graph that plans, works in rounds, charges once, and fails once. It calls visited in
// each visit.
func task(t *testing.T, visited func(path string)) *dag.Graph[Task] {
	t.Helper()
	offline := true
	round := dag.New[Task]("round")
	try := dag.Step(round, "try", func(ctx context.Context, s *Task) error {
		visited("try")
		s.Rounds.Add(1)
		s.Confidence.Set(float64(s.Rounds.Get()+1) * 0.3)
		return nil
	})
	dag.Step(round, "validate", func(ctx context.Context, s *Task) error {
		visited("validate")
		if s.Rounds.Get() == 2 {
			return dag.Decide(ctx, dag.Decision{ID: "accept", Description: "it will do"})
		}
		return nil
	}, try)
	b := dag.New[Task]("task")
	plan := dag.Step(b, "plan", func(ctx context.Context, s *Task) error {
		visited("plan")
		s.Phase.Set("planning")
		return nil
	})
	work := dag.Loop(b, "work", build(t, round), func(s *Task) bool { return s.Rounds.Get() == 3 }, 5, plan)
	pay := dag.Step(b, "pay", func(ctx context.Context, s *Task) error {
		visited("pay")
		s.Phase.Set("execution")
		if offline {
			offline = false
			return errOffline
		}
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) { return "receipt", nil }, dag.Operation("charge-card"))
		return err
	}, work).With(dag.Policy{Attempts: 2})
	dag.Step(b, "end", func(ctx context.Context, s *Task) error {
		visited("end")
		s.Confidence.Set(0.5)
		return nil
	}, pay)
	return build(t, b)
}

func build[S any](t *testing.T, b *dag.Builder[S]) *dag.Graph[S] {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func namer(t *testing.T, d milestone.Runs) *milestone.Namer {
	t.Helper()
	n, err := milestone.New(d, milestone.Every(2), milestone.Node("work/validate"), milestone.Change("Phase"),
		milestone.Rises("Confidence", 0.8), milestone.Decision(), milestone.Effect("charge-card"), milestone.Effect("other"),
		milestone.Recovery(), milestone.Fork())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tags are the tags of a run, each with its checkpoint.
func tags(t *testing.T, d *dispatcher.Dispatcher[Task], run string) []string {
	t.Helper()
	past, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range past {
		for _, tag := range p.Tags {
			all = append(all, fmt.Sprintf("%s is %s", tag[:strings.LastIndex(tag, " #")], p))
		}
	}
	slices.Sort(all)
	return all
}

var want = []string{
	"change Phase execution is @3", "change Phase planning is @1",
	"decision accept is work/2@2", "effect charge-card charge is @3", "every 2 is @2", "every 2 is @4",
	"node work/validate is work/1@2", "node work/validate is work/2@2", "node work/validate is work/3@2",
	"recovery pay is @3", "rises Confidence 0.8 1.2 is @2",
}

func dispatch(t *testing.T, g *dag.Graph[Task], store checkpoint.Store) *dispatcher.Dispatcher[Task] {
	t.Helper()
	d, err := dispatcher.New(g, store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Names follow from the log: whoever gives them, at the end or in between, gives the same ones.
func TestEachRule(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n := namer(t, d)
	found, err := n.Name(t.Context(), "r")
	if got := tags(t, d, "r"); err != nil || !slices.Equal(got, want) || len(found) != len(want) {
		t.Errorf("found %d, %v; the names are\n%s", len(found), err, strings.Join(got, "\n"))
	}
	for _, m := range found {
		if at, err := d.At(t.Context(), "r", "tag:"+m.Tag); err == nil && at.Cursor.Seq != m.Seq || err != nil && !errors.Is(err, dispatcher.ErrNested) {
			t.Errorf("%q is %v, %v", m.Tag, at, err)
		}
	}
	if again, err := n.Name(t.Context(), "r"); err != nil || len(again) > 0 {
		t.Errorf("again: %v, %v", again, err)
	}
	if _, err := namer(t, d).Name(t.Context(), "r"); err != nil { // another process
		t.Fatal(err)
	}
	if got := tags(t, d, "r"); !slices.Equal(got, want) {
		t.Errorf("named twice:\n%s", strings.Join(got, "\n"))
	}
}

// A program that is stopped in every second visit and names what it finds then, anew or from where
// it stopped, neither forgets a name nor gives one twice.
func TestRestartsNeitherRepeatNorForget(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		visits := 0
		d := dispatch(t, task(t, func(string) {
			if visits++; visits%2 == 1 {
				cancel()
			}
		}), new(memory.Store))
		n := namer(t, d)
		for range 50 {
			_, err := d.Run(ctx, "r", nil)
			if cancel(); fresh {
				n = namer(t, d)
			}
			if _, err := n.Name(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				break
			}
			ctx, cancel = context.WithCancel(t.Context())
		}
		cancel()
		if got := tags(t, d, "r"); !slices.Equal(got, want) {
			t.Errorf("fresh=%t: the names are\n%s", fresh, strings.Join(got, "\n"))
		}
	}
}

// Who follows a run names beside it.
func TestFollow(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Start(t.Context(), "r", nil, dispatcher.Labels(nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	named := make(chan error)
	go func() { named <- namer(t, d).Follow(ctx, "r") }()
	left := len(want)
	for e, err := range d.Events(t.Context(), "r", dispatcher.Listen{Tail: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == dispatcher.CheckpointTagged {
			if left--; left == 0 {
				break
			}
		}
	}
	cancel(over)
	if err := <-named; !errors.Is(err, over) {
		t.Errorf("Follow returned %v", err)
	}
	if got := tags(t, d, "r"); !slices.Equal(got, want) {
		t.Errorf("the names are\n%s", strings.Join(got, "\n"))
	}
}

// A fork compares with what its origin had, and is named where it begins; a run that was rewound
// with what it has gone back to.
func TestForksAndRewinds(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	ids, err := d.Fork(t.Context(), "r", "2", dispatcher.ForkOptions[Task]{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), ids[0], nil); err != nil {
		t.Fatal(err)
	}
	if _, err := namer(t, d).Name(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	forked := []string{"change Phase execution is @3", "effect charge-card charge is @3", "every 2 is @4", "fork is @2"}
	if got := tags(t, d, ids[0]); !slices.Equal(got, forked) {
		t.Errorf("the fork has the names\n%s", strings.Join(got, "\n"))
	}
	n := namer(t, d)
	if _, err := n.Name(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if err := d.Rewind(t.Context(), "r", "2", dispatcher.RewindOptions{Reason: "again"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	found, err := n.Name(t.Context(), "r")
	var rules []string
	for _, m := range found {
		rules = append(rules, m.Rule)
	}
	if slices.Sort(rules); err != nil || !slices.Equal(rules, []string{"change Phase", "effect charge-card", "every 2"}) {
		t.Errorf("behind the rewind %q, %v", rules, err)
	}
	if _, err := namer(t, d).Name(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if got := len(tags(t, d, "r")); got != len(want)+3 {
		t.Errorf("a reader from the beginning makes it %d names", got)
	}
}

// What was voided before its superstep ended is not named for it; what comes instead is.
func TestVoided(t *testing.T) {
	b := dag.New[Task]("void")
	times := 0
	dag.Step(b, "decide", func(ctx context.Context, s *Task) error {
		if times++; times == 1 {
			return dag.Decide(ctx, dag.Decision{ID: "first", Description: "one"})
		}
		return nil
	})
	dag.Step(b, "ask", func(ctx context.Context, s *Task) error {
		_, err := dag.Ask[string](ctx, "go", "on?")
		return err
	})
	d := dispatch(t, build(t, b), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Decision(), milestone.Node("decide"))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := n.Name(t.Context(), "r"); err != nil || len(found) > 0 {
		t.Fatalf("before the superstep has ended: %v, %v", found, err)
	}
	if err := d.Edit(t.Context(), "r", func(*Task) {}, dispatcher.EditOptions{Void: []string{"decide"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), "r", "", "yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if found, err := n.Name(t.Context(), "r"); err != nil || len(found) != 1 || found[0].Rule != "node decide" {
		t.Errorf("found %v, %v", found, err)
	}
}

// What was voided since two wrote to one cell is not named; what stands beside it is, once, also if
// its name begins alike. That the run goes on all the same is a recovery, where it does.
func TestVoidedByAConflict(t *testing.T) {
	first := true
	b := dag.New[Task]("conflict")
	var all []dag.Edge[Task]
	for _, name := range []string{"a", "ab", "abc"} {
		all = append(all, dag.Step(b, name, func(ctx context.Context, s *Task) error {
			if !first {
				return nil
			}
			if name != "abc" {
				s.Phase.Set(name)
			}
			err := dag.Decide(ctx, dag.Decision{ID: name, Description: "one"})
			return errors.Join(err, dag.Decide(ctx, dag.Decision{ID: name, Description: "another"}))
		}))
	}
	dag.Step(b, "end", func(context.Context, *Task) error { return nil }, all...)
	d := dispatch(t, build(t, b), new(memory.Store))
	n, err := milestone.New(d, milestone.Decision(), milestone.Recovery())
	if err != nil {
		t.Fatal(err)
	}
	var conflict *state.ConflictError
	if _, err := d.Run(t.Context(), "r", nil); !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	finds(t, n, "r")
	first = false
	if _, err := d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	finds(t, n, "r", "recovery", "decision")
	if got := tags(t, d, "r"); !slices.Equal(got, []string{"decision abc is @1", "recovery is @1"}) {
		t.Errorf("the names are %q", got)
	}
}

// What a rewind left behind before its superstep ended is not named.
func TestLeftBehind(t *testing.T) {
	first := true
	b := dag.New[Task]("behind")
	dag.Step(b, "decide", func(ctx context.Context, s *Task) error {
		if !first {
			return nil
		}
		return dag.Decide(ctx, dag.Decision{ID: "way", Description: "left"})
	})
	dag.Step(b, "ask", func(ctx context.Context, s *Task) error {
		_, err := dag.Ask[string](ctx, "go", "on?")
		return err
	})
	d := dispatch(t, build(t, b), new(memory.Store))
	n, err := milestone.New(d, milestone.Decision())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	finds(t, n, "r")
	first = false
	if err := d.Rewind(t.Context(), "r", "0", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), "r", "", "yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	finds(t, n, "r")
}

// What was done in a frame that failed is named with the superstep outside that took it over.
func TestFrameThatFailed(t *testing.T) {
	inner := dag.New[Task]("inner")
	dag.Step(inner, "works", func(context.Context, *Task) error { return nil })
	dag.Step(inner, "fails", func(context.Context, *Task) error { return errOffline })
	b := dag.New[Task]("outer")
	loop := dag.Loop(b, "loop", build(t, inner), func(*Task) bool { return true }, 1)
	dag.Step(b, "mend", func(context.Context, *Task) error { return nil }, loop.Failed())
	dag.Step(b, "end", func(context.Context, *Task) error { return nil }, loop)
	d := dispatch(t, build(t, b), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Node("loop/works"))
	if err != nil {
		t.Fatal(err)
	}
	finds(t, n, "r", "node loop/works")
	if got := tags(t, d, "r"); !slices.Equal(got, []string{"node loop/works is @1"}) {
		t.Errorf("the names are %q", got)
	}
}

// A run that had failed has recovered at the end of the next superstep, and not where a frame fails
// of which the rest is kept: that is no checkpoint.
func TestRecoveryBehindAFrameThatFails(t *testing.T) {
	inner := dag.New[Task]("inner")
	dag.Step(inner, "asks", func(ctx context.Context, s *Task) error {
		if err := asking("on")(ctx, s); err != nil {
			return err
		}
		return errOffline
	})
	b := dag.New[Task]("outer")
	loop := dag.Loop(b, "loop", build(t, inner), func(*Task) bool { return true }, 1)
	dag.Step(b, "mend", func(context.Context, *Task) error { return nil }, loop.Failed())
	dag.Step(b, "end", func(context.Context, *Task) error { return nil }, loop)
	offline := true
	dag.Step(b, "pay", func(context.Context, *Task) error {
		if offline {
			return errOffline
		}
		return nil
	})
	d := dispatch(t, build(t, b), new(memory.Store))
	if err := goesOn(t, d); !errors.Is(err, errOffline) {
		t.Fatalf("the run has not failed: %v", err)
	}
	offline = false
	if err := d.Answer(t.Context(), "r", "", "yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Recovery())
	if err != nil {
		t.Fatal(err)
	}
	finds(t, n, "r", "recovery", "recovery")
	if got := tags(t, d, "r"); !slices.Equal(got, []string{"recovery is @1", "recovery pay is @1"}) {
		t.Errorf("the names are %q", got)
	}
}

// Whatever a visit calls what it did, a tag says it, shortly.
func TestDetailsAreShort(t *testing.T) {
	b := dag.New[Task]("names")
	said := []string{"a@b", "bell\a", "lost\uFFFD", "two  spaces", "x" + strings.Repeat("é", 30)}
	dag.Step(b, "decide", func(ctx context.Context, s *Task) error {
		for _, id := range said {
			if err := dag.Decide(ctx, dag.Decision{ID: id, Description: "so"}); err != nil {
				return err
			}
		}
		return nil
	})
	d := dispatch(t, build(t, b), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Decision())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Name(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	want := []string{"decision a_b is @1", "decision bell_ is @1", "decision lost_ is @1", "decision two spaces is @1", "decision x" + strings.Repeat("é", 19) + " is @1"}
	if got := tags(t, d, "r"); !slices.Equal(got, want) {
		t.Errorf("the names are %q", got)
	}
}

// Naming begins where a trimmed log does, and takes what is there as given.
func TestTrimmed(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Trim(t.Context(), "r", dispatcher.Retention{Last: 2}); err != nil {
		t.Fatal(err)
	}
	found, err := namer(t, d).Name(t.Context(), "r")
	for _, m := range found {
		if m.Rule == "change Phase" || m.Rule == "rises Confidence 0.8" {
			t.Errorf("%s was named, and nobody knows what was before", m.Tag)
		}
	}
	if err != nil || len(found) == 0 {
		t.Errorf("found %v, %v", found, err)
	}
}

// What a trim keeps for its name is the checkpoint that was named, in the iteration in which it is.
func TestTrimmedMilestonesStay(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	found, err := namer(t, d).Name(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		t.Fatal(err)
	}
	if got := tags(t, d, "r"); !slices.Equal(got, want) {
		t.Errorf("the names are\n%s", strings.Join(got, "\n"))
	}
	for _, m := range found {
		if at, err := d.At(t.Context(), "r", m.Address()); m.Rule == "decision" && (err != nil || at.Frame != "work/2" || at.State.Rounds.Get() != 2) {
			t.Errorf("%s is superstep %d of %q, in round %d, %v", m.Tag, at.Superstep, at.Frame, at.State.Rounds.Get(), err)
		}
	}
}

// changes names the changes of the phase, and returns the names.
func changes(t *testing.T, d *dispatcher.Dispatcher[Task], run string) (all []string) {
	t.Helper()
	n, err := milestone.New(d, milestone.Change("Phase"))
	if err == nil {
		_, err = n.Name(t.Context(), run)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range tags(t, d, run) {
		if strings.HasPrefix(tag, "change ") {
			all = append(all, tag)
		}
	}
	return all
}

// forked is a fork of a run that has run to its end.
func forked(t *testing.T, d *dispatcher.Dispatcher[Task], run, at string, goOn bool) string {
	t.Helper()
	ids, err := d.Fork(t.Context(), run, at, dispatcher.ForkOptions[Task]{})
	if err == nil && goOn {
		_, err = d.Run(t.Context(), ids[0], nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// What a fork compares with is what its origin had, also once the fork was rewound, if the origin
// is a fork that has not gone on, if nothing had ended in it, and if it was rewound before.
func TestForksCompareWithTheirOrigins(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	rewound := forked(t, d, "r", "3", true)
	if err := d.Rewind(t.Context(), rewound, dispatcher.Checkpoint{Run: rewound, Seq: 1}.Address(), dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), rewound, nil); err != nil {
		t.Fatal(err)
	}
	if got := changes(t, d, rewound); len(got) > 0 {
		t.Errorf("a fork that was rewound has the names %q", got)
	}
	once := forked(t, d, "r", "2", false)
	twice := forked(t, d, once, dispatcher.Checkpoint{Run: once, Seq: 1}.Address(), true)
	if got := changes(t, d, twice); !slices.Equal(got, []string{"change Phase execution is @3"}) {
		t.Errorf("a fork of a fork has the names %q", got)
	}
	if got := changes(t, d, forked(t, d, "r", "0", true)); len(got) != 2 {
		t.Errorf("a fork of the beginning has the names %q", got)
	}
	if err := d.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	var inside uint64
	for p, err := range d.History(t.Context(), "r") {
		if err != nil {
			t.Fatal(err)
		}
		if p.Path == "work/1" && !p.Abandoned {
			inside = max(inside, p.Seq)
		}
	}
	at := dispatcher.Checkpoint{Run: "r", Seq: inside}.Address()
	if got := changes(t, d, forked(t, d, "r", at, true)); !slices.Equal(got, []string{"change Phase execution is @3"}) {
		t.Errorf("a fork of a run that was rewound has the names %q", got)
	}
}

// A run that was trimmed, and rewound to a checkpoint that was kept for its name, has no name for a
// change of which nobody knows what was before.
func TestTrimmedAndRewound(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	if err := d.Tag(t.Context(), "r", "1", "kept #0"); err != nil {
		t.Fatal(err)
	}
	if err := d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		t.Fatal(err)
	}
	if err := d.Rewind(t.Context(), "r", "tag:kept #0", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	if got := changes(t, d, "r"); len(got) != 1 || !strings.HasPrefix(got[0], "change Phase execution") {
		t.Errorf("the names are %q", got)
	}
}

// A run that was deleted, and begun again under its id, is another run: its names are those of its
// own log, though the Namer has read the other one further than it goes.
func TestRunThatIsBegunAgain(t *testing.T) {
	store := new(memory.Store)
	n := namer(t, dispatch(t, task(t, func(string) {}), store))
	for range 2 {
		d := dispatch(t, task(t, func(string) {}), store)
		if _, err := d.Run(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		found, err := n.Name(t.Context(), "r")
		if got := tags(t, d, "r"); err != nil || !slices.Equal(got, want) || len(found) != len(want) {
			t.Errorf("found %d, %v; the names are\n%s", len(found), err, strings.Join(got, "\n"))
		}
		if err := store.Delete(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
}

// finds names a run, and compares the rules of what is found.
func finds(t *testing.T, n *milestone.Namer, run string, want ...string) {
	t.Helper()
	found, err := n.Name(t.Context(), run)
	var got []string
	for _, m := range found {
		got = append(got, m.Rule)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("named %q, %v; want %q", got, err, want)
	}
}

// What a visit did before a checkpoint inside its superstep counts, though the run went back there.
func TestRewoundInsideASuperstep(t *testing.T) {
	ask := func(key string) func(context.Context, *Task) error {
		return func(ctx context.Context, _ *Task) error {
			_, err := dag.Ask[string](ctx, key, "on?")
			return err
		}
	}
	inner := dag.New[Task]("inner")
	dag.Step(inner, "second", ask("2"), dag.Step(inner, "first", ask("1")))
	b := dag.New[Task]("outer")
	dag.Step(b, "decide", func(ctx context.Context, s *Task) error {
		return dag.Decide(ctx, dag.Decision{ID: "way", Description: "left"})
	})
	dag.Loop(b, "loop", build(t, inner), func(*Task) bool { return true }, 1)
	d := dispatch(t, build(t, b), new(memory.Store))
	n, err := milestone.New(d, milestone.Decision(), milestone.Node("loop/first"))
	if err != nil {
		t.Fatal(err)
	}
	named := func(want ...string) { t.Helper(); finds(t, n, "r", want...) }
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	named()
	answer := func() error {
		if err := d.Answer(t.Context(), "r", "", "yes"); err != nil {
			t.Fatal(err)
		}
		_, err := d.Resume(t.Context(), "r")
		return err
	}
	if err := answer(); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	named("node loop/first")
	for p, err := range d.History(t.Context(), "r") {
		if err != nil {
			t.Fatal(err)
		}
		if p.Path == "loop/1" {
			if err := d.Rewind(t.Context(), "r", p.Address(), dispatcher.RewindOptions{}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if _, err := d.Resume(t.Context(), "r"); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	named("decision")
}

// A Namer keeps no states: what it holds of a run whose cell grows is a small part of what the cell
// had at all checkpoints together.
func TestNamerKeepsNoStates(t *testing.T) {
	const steps, size = 50, 20_000
	type growing struct{ Log state.List[string] }
	b := dag.New[growing]("growing")
	var after []dag.Edge[growing]
	for i := range steps {
		after = []dag.Edge[growing]{dag.Step(b, fmt.Sprint("step", i), func(_ context.Context, s *growing) error {
			s.Log.Append(strings.Repeat("x", size))
			return nil
		}, after...)}
	}
	d, err := dispatcher.New(build(t, b), new(memory.Store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Change("Log"))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	if found, err := n.Name(t.Context(), "r"); err != nil || len(found) != steps {
		t.Fatalf("found %d, %v", len(found), err)
	}
	if after := heap(); after > before+steps*steps*size/10 {
		t.Errorf("it holds %d bytes", after-before)
	}
	runtime.KeepAlive(n)
}

// A fork whose origin is gone takes what it begins with as given.
func TestForkWhoseOriginIsGone(t *testing.T) {
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	fork := forked(t, d, "r", "3", true)
	if err := d.Store().Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if got := changes(t, d, fork); len(got) > 0 {
		t.Errorf("the names are %q", got)
	}
}

// A fork does not compare with another run that has the id of its origin since that was deleted.
func TestForkWhoseOriginIsAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := dag.New[Task]("chain")
		nothing := func(context.Context, *Task) error { return nil }
		dag.Step(b, "second", nothing, dag.Step(b, "first", nothing))
		d := dispatch(t, build(t, b), new(memory.Store))
		begin := func(phase string) {
			t.Helper()
			if _, err := d.Run(t.Context(), "r", func(s *Task) { s.Phase.Set(phase) }); err != nil {
				t.Fatal(err)
			}
		}
		begin("mine")
		fork := forked(t, d, "r", "1", true)
		again := forked(t, d, fork, fork+"@1", true)
		if err := d.Store().Delete(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Millisecond) // of the bubble's clock: what begins now is younger than the fork
		begin("hers")
		for _, run := range []string{fork, again} {
			if got := changes(t, d, run); len(got) > 0 {
				t.Errorf("the names of %s are %q", run, got)
			}
		}
	})
}

// A Namer can be asked about one run from several sides, and remembers so many runs and no more.
func TestNamerOfMany(t *testing.T) {
	b := dag.New[Task]("small")
	dag.Step(b, "step", func(context.Context, *Task) error { return nil })
	d := dispatch(t, build(t, b), new(memory.Store))
	n, err := milestone.New(d, milestone.Every(1))
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for round := range 2 {
		for i := range 1100 {
			run := fmt.Sprint("r", i)
			if _, err := d.Run(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
			found, err := n.Name(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			again += round * len(found)
		}
	}
	if again == 0 {
		t.Error("it remembers more than 1024 runs")
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if _, err := n.Name(t.Context(), "r0"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// A value that has the form of a secret is in no name, and holds up none.
func TestSecretsAreNotNamed(t *testing.T) {
	b := dag.New[Task]("secret")
	dag.Step(b, "leak", func(_ context.Context, s *Task) error {
		s.Phase.Set("ghp_0123456789abcdef")
		return nil
	})
	d := dispatch(t, build(t, b), new(memory.Store))
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	if got := changes(t, d, "r"); !slices.Equal(got, []string{"change Phase is @1"}) {
		t.Errorf("the names are %q", got)
	}
}

// A rule that can't be followed is refused.
func TestRulesRefused(t *testing.T) {
	for _, rules := range [][]milestone.Rule{
		{milestone.Every(0)}, {milestone.Every(-1)}, {milestone.Node("")}, {milestone.Change("")}, {milestone.Rises("", 1)},
		{milestone.Fork(), milestone.Fork()}, {milestone.Node("a@b")}, {milestone.Node("a\nb")}, {milestone.Change("\xff")}, {milestone.Node(strings.Repeat("n", 70))},
	} {
		var bad *milestone.RuleError
		if n, err := milestone.New(&dispatcher.Dispatcher[Task]{}, rules...); n != nil || !errors.As(err, &bad) {
			t.Errorf("%s: %v", rules, err)
		}
	}
	var bad *milestone.RuleError
	for _, none := range []milestone.Runs{nil, (*dispatcher.Dispatcher[Task])(nil)} {
		if n, err := milestone.New(none, milestone.Every(1)); n != nil || !errors.As(err, &bad) {
			t.Errorf("a namer of no runs: %v", err)
		}
	}
	d := dispatch(t, task(t, func(string) {}), new(memory.Store))
	var option *dispatcher.OptionError
	var none context.Context
	if _, err := namer(t, d).Name(none, "r"); !errors.As(err, &option) {
		t.Errorf("without a context: %v", err)
	}
	if err := namer(t, d).Follow(none, "r"); !errors.As(err, &option) {
		t.Errorf("without a context: %v", err)
	}
	if _, err := namer(t, d).Name(t.Context(), "nobody"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("a run that is not there: %v", err)
	}
}

// A Journey has cells whose zero values are more than one word of JSON, and cells in a nested
// struct.
type Journey struct {
	From  state.Value[struct{ City, Country string }]
	Leave state.Value[time.Time]
	Seats state.Value[[2]int]
	Plan  struct {
		Phase state.Value[string]
		Days  state.Sum[int]
	}
}

// A cell has changed when it has another value, of whatever type that is and in whichever struct of
// the state it stands; and never before anybody has written to it.
func TestCellsOfEveryShape(t *testing.T) {
	b := dag.New[Journey]("journey")
	think := dag.Step(b, "think", func(_ context.Context, s *Journey) error { s.Plan.Phase.Set("<draft> & \"more\""); return nil })
	book := dag.Step(b, "book", func(_ context.Context, s *Journey) error {
		s.From.Set(struct{ City, Country string }{City: "Porto"})
		s.Leave.Set(time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC))
		s.Plan.Days.Add(7)
		return nil
	}, think)
	dag.Step(b, "sit", func(_ context.Context, s *Journey) error { s.Seats.Set([2]int{0, 4}); return nil }, book)
	d, err := dispatcher.New(build(t, b), new(memory.Store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, milestone.Change("From"), milestone.Change("Leave"), milestone.Change("Seats"),
		milestone.Change("Plan.Phase"), milestone.Rises("Plan.Days", 5), milestone.Change("Plan.Nobody"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := n.Name(t.Context(), "r")
	var got []string
	for _, m := range found {
		got = append(got, m.Tag)
	}
	want := []string{
		`change Plan.Phase <draft> & "more" #4`,
		`change From {"City":"Porto","Country":""} #6`, "change Leave 2030-01-02T00:00:00Z #6", "rises Plan.Days 5 7 #6",
		"change Seats [0,4] #8",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("named %q, %v; want %q", got, err, want)
	}
}

// What is no such thing is not named: a number at its threshold, or that stays over it, an effect
// that did not happen, a visit that goes well in a turn after one in which it had failed.
func TestWhatIsNotNamed(t *testing.T) {
	fails := true
	b := dag.New[Task]("twice")
	sure := dag.Step(b, "sure", func(_ context.Context, s *Task) error { s.Confidence.Set(0.9); return nil })
	surer := dag.Step(b, "surer", func(_ context.Context, s *Task) error { s.Confidence.Set(0.95); return nil }, sure)
	call := dag.Step(b, "call", func(ctx context.Context, _ *Task) error {
		_, err := dag.Effect(ctx, "ring", 1, func(context.Context, int) (int, error) {
			if fails {
				return 0, fmt.Errorf("%w: busy", dag.NotDone)
			}
			return 1, nil
		})
		return err
	}, surer)
	dag.Step(b, "write", func(context.Context, *Task) error { return nil }, call.Failed())
	dag.Step(b, "note", func(context.Context, *Task) error { return nil }, call)
	d := dispatch(t, build(t, b), new(memory.Store))
	n, err := milestone.New(d, milestone.Rises("Confidence", 0.8), milestone.Rises("Confidence", 0.95), milestone.Effect(), milestone.Recovery())
	if err != nil {
		t.Fatal(err)
	}
	named := func(want ...string) { t.Helper(); finds(t, n, "r", want...) }
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	named("rises Confidence 0.8")
	fails = false
	if _, err := d.Turn(t.Context(), "r", func(*Task) {}); err != nil {
		t.Fatal(err)
	}
	named("effect")
}

// A Namer that New has not made says so, and kills nobody.
func TestNamerThatNobodyMade(t *testing.T) {
	for _, n := range []*milestone.Namer{nil, {}} {
		var bad *dispatcher.OptionError
		if _, err := n.Name(t.Context(), "run"); !errors.As(err, &bad) || bad.Option != "Namer" {
			t.Errorf("Name: %v", err)
		}
		if err := n.Follow(t.Context(), "run"); !errors.As(err, &bad) || bad.Option != "Namer" {
			t.Errorf("Follow: %v", err)
		}
	}
}
