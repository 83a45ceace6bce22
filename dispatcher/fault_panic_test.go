package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Powder is a state whose own methods can blow up.
type Powder struct {
	Said state.List[string]
	Best state.Fold[Spark]
}

// A Spark merges to the brighter one, or blows up.
type Spark struct{ Bright int }

func (s Spark) Merge(o Spark) Spark {
	blow("merge")
	return Spark{max(s.Bright, o.Bright)}
}

func (p *Powder) Check() error {
	if p.Said.Len() >= 3 { // the second superstep
		blow("check")
	}
	return nil
}

// A bomb blows up at one place. Methods of the state can't be given one, so it lies here;
// no two tests that use it run at once.
var bomb atomic.Pointer[charge]

type charge struct {
	place string
	blast func()
}

func blow(place string) {
	if c := bomb.Load(); c != nil && c.place == place {
		c.blast()
	}
}

// errFire is an error that is panicked with; a Crack is one of its own type.
var errFire = errors.New("fire")

type Crack struct{ Width int }

func (c *Crack) Error() string { return fmt.Sprintf("a crack of %d", c.Width) }

// blasts are the ways in which user code blows up, with what has to be found in the error.
var blasts = []struct {
	name  string
	blast func()
	kind  dag.FailureKind
	found func(error) bool
}{
	{"error", func() { panic(errFire) }, dag.FailedPanic, func(err error) bool { return errors.Is(err, errFire) }},
	{"wrapped", func() { panic(fmt.Errorf("in the attic: %w", errFire)) }, dag.FailedPanic, func(err error) bool { return errors.Is(err, errFire) }},
	{"typed", func() { panic(&Crack{7}) }, dag.FailedPanic, func(err error) bool {
		var c *Crack
		return errors.As(err, &c) && c.Width == 7
	}},
	{"string", func() { panic("smoke") }, dag.FailedPanic, nil},
	{"struct", func() { panic(struct{ Word string }{"smoke"}) }, dag.FailedPanic, nil},
	{"nil", func() { panic(nil) }, dag.FailedPanic, func(err error) bool {
		var p *runtime.PanicNilError
		return errors.As(err, &p)
	}},
	//lint:ignore SA5000 the panic is what is tested
	{"runtime", func() { var m map[string]int; m["x"]++ }, dag.FailedPanic, func(err error) bool {
		var r runtime.Error
		return errors.As(err, &r)
	}},
	{"goexit", runtime.Goexit, dag.FailedGoexit, nil},
}

// powder returns
//
//	start → (one, two) → house { room } → rounds { turn } → choose → last
//
// where everything can blow up. last fails once by itself, for Policy.Retry to be asked.
func powder(t testing.TB, w *witness) *dag.Graph[Powder] {
	body := func(place string) func(context.Context, *Powder) error {
		return func(ctx context.Context, s *Powder) error {
			w.note(ctx)
			s.Said.Append(visitPath(ctx))
			s.Best.Merge(Spark{1})
			blow(place)
			return nil
		}
	}
	room, turn := dag.New[Powder]("room"), dag.New[Powder]("turn")
	dag.Step(room, "room", body("inside an embed"))
	dag.Step(turn, "turn", body("inside a loop"))

	b := dag.New[Powder]("powder")
	start := dag.Step(b, "start", body("alone"))
	one, two := dag.Step(b, "one", body("beside"), start), dag.Step(b, "two", body("nowhere"), start)
	house := dag.Embed(b, "house", frozen(t, room),
		func(_, _ *Powder) { blow("in") }, func(_, _ *Powder) { blow("out") }, one, two)
	rounds := dag.Loop(b, "rounds", frozen(t, turn), func(*Powder) bool { blow("until"); return true }, 2, house)
	choose := dag.Route(b, "choose", func(ctx context.Context, s *Powder) (way, error) {
		return left, body("route")(ctx, s)
	}, []way{left}, rounds)
	dag.Step(b, "last", func(ctx context.Context, s *Powder) error {
		if err := body("last")(ctx, s); err != nil || dag.Attempt(ctx) > 1 {
			return err
		}
		return errWeather
	}, choose.On(left)).With(dag.Policy{Attempts: 2, Retry: func(error) bool { blow("retry"); return true }})
	return frozen(t, b)
}

// powderOptions has a hook and an observer that can blow up.
var powderOptions = dispatcher.Options{
	InterruptIf: func(b dispatcher.Boundary) bool {
		if b.Path == "one" {
			blow(map[bool]string{false: "hook before", true: "hook after"}[b.After])
		}
		return false
	},
	Observe: func(dispatcher.Event) { blow("observer") },
}

// burnt is what an undisturbed run of powder runs.
var burnt = []string{"start", "one", "two", "house/room", "rounds/1/turn", "choose", "last", "last#2"}

// places are where powder blows up, with where the run then rests, and what runs before
// that and after a resume with the bomb gone.
var places = []struct {
	name     string
	path     string // of the NodeError; "" if it is a FaultError
	fault    string // kind of the FaultError
	cursor   []string
	finished []string
	before   int // of burnt
	after    []string
}{
	{name: "alone", path: "start", cursor: []string{"start"}, before: 1, after: []string{"start#2"}},
	{name: "beside", path: "one", cursor: []string{"one"}, finished: []string{"two"}, before: 3, after: []string{"one#2"}},
	{name: "hook before", path: "one", cursor: []string{"one"}, finished: []string{"two"}, before: 3, after: []string{"one"}},
	{name: "hook after", fault: "hook", finished: []string{"one", "two"}, before: 3},
	{name: "merge", fault: "merge", cursor: []string{"one", "two"}, before: 3, after: []string{"one", "two"}},
	{name: "check", fault: "check", cursor: []string{"one", "two"}, before: 3, after: []string{"one", "two"}},
	{name: "in", path: "house", cursor: []string{"house"}, before: 3},
	{name: "inside an embed", path: "house/room", cursor: []string{"house/room"}, before: 4, after: []string{"house/room#2"}},
	{name: "out", path: "house", cursor: []string{"house"}, before: 4},
	{name: "inside a loop", path: "rounds/1/turn", cursor: []string{"rounds/1/turn"}, before: 5, after: []string{"rounds/1/turn#2"}},
	{name: "until", path: "rounds", cursor: []string{"rounds"}, before: 5},
	{name: "route", path: "choose", cursor: []string{"choose"}, before: 6, after: []string{"choose#2"}},
	{name: "retry", path: "last", cursor: []string{"last"}, before: 7},
}

// A panic or a Goexit in user code is an error with its type, its value and its stack; what
// was finished is kept, and the run goes on once the code is mended.
func TestBlast(t *testing.T) {
	for _, p := range places {
		for _, k := range blasts {
			t.Run(p.name+"/"+k.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w witness
					var store memory.Store
					g := powder(t, &w)
					bomb.Store(&charge{p.name, k.blast})
					defer bomb.Store(nil)

					res, err := process(t, g, &store, powderOptions).Run(t.Context(), run, nil)
					rests(t, res, err, checkpoint.StatusFailed, p.cursor...)
					blamed(t, err, p.path, p.fault, k.kind)
					if k.found != nil && !k.found(err) {
						t.Errorf("what was panicked with is not found in %v", err)
					}
					if p.name == "retry" && !errors.Is(err, errWeather) {
						t.Errorf("what the node returned is not found in %v", err)
					}
					if got := strings.Join(res.Finished, " "); got != strings.Join(p.finished, " ") {
						t.Errorf("finished: %s, want %q", got, p.finished)
					}
					ran := burnt[:p.before]
					if p.name == "hook before" {
						ran = []string{"start", "two"}
					}
					w.expect(t, append([]string(nil), ran...)...)

					bomb.Store(nil)
					res, err = process(t, g, &store, powderOptions).Resume(t.Context(), run)
					completes(t, res, err)
					w.expect(t, append(append([]string(nil), p.after...), burnt[p.before:]...)...)
					if got := strings.Join(res.State.Said.Slice(), " "); got != "start one two rounds/1/turn choose last" {
						t.Errorf("the state says %s", got)
					}
				})
			})
		}
	}
}

// blamed checks that an error names who blew up, in which way, and where in the code.
func blamed(t *testing.T, err error, path, fault string, kind dag.FailureKind) {
	t.Helper()
	var stack []byte
	var node *dispatcher.NodeError
	var run *dispatcher.FaultError
	switch {
	case fault != "" && errors.As(err, &run):
		stack = run.Stack
		if run.Kind != fault {
			t.Errorf("the fault is of kind %s, want %s", run.Kind, fault)
		}
	case fault == "" && errors.As(err, &node):
		stack = node.Stack
		if node.Path != path || node.Kind != kind {
			t.Errorf("the error is of %s, kind %s, want %s, %s", node.Path, node.Kind, path, kind)
		}
	default:
		t.Fatalf("the error is %v, want a typed one", err)
	}
	if !strings.Contains(string(stack), "dispatcher_test.blow") {
		t.Errorf("the stack does not show who blew up:\n%s", stack)
	}
}
