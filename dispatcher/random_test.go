package dispatcher_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A randomCase is a random graph, and what the reference makes of it.
type randomCase struct {
	seed  uint64
	spec  *graphSpec
	graph *dag.Graph[cells]
	rules func(path string) rule
	want  *reference
	asked func() int64
}

// randomCases are the graphs that the properties are tested with, and how many others
// Build refused. PAWL_RANDOM asks for another number of graphs, and gets other ones.
var randomCases = sync.OnceValues(func() (cases []*randomCase, refused int) {
	count, seed := randomCount, uint64(1)
	if asked, err := strconv.Atoi(os.Getenv("PAWL_RANDOM")); err == nil {
		count, seed = asked, 1_000_000
	}
	return casesFrom(seed, count)
})

// casesFrom makes count cases of the graphs of seeds from a first one on.
func casesFrom(seed uint64, count int) (cases []*randomCase, refused int) {
	for ; len(cases) < count; seed++ {
		r := newGenerator(seed)
		switch c := newCase(seed, r, r.graph("random", 1)); {
		case c == nil:
			refused++
		case len(c.want.done) <= longest:
			cases = append(cases, c)
		}
	}
	return cases, refused
}

// longest is how many visits the run of a graph may have: each is killed and cancelled at all
// its appends, which takes a time that grows with the square of their number.
const longest = 40

// newCase makes the case of a graph; nil if Build refuses it.
func newCase(seed uint64, r *generator, spec *graphSpec) *randomCase {
	graph, err := assemble(spec, itself)
	if err != nil {
		return nil
	}
	rules := rulesOf(seed, spec)
	return &randomCase{seed, spec, graph, rules, newReference(spec, rules, fill(input, "input", "")).run(), r.asked.Load}
}

// eachCase runs f as a subtest with every case, so that one can be run again by its seed.
func eachCase(t *testing.T, f func(t *testing.T, c *randomCase)) {
	cases, _ := randomCases()
	for _, c := range cases {
		t.Run(fmt.Sprintf("seed=%d", c.seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("seed %d:\n%s", c.seed, c.spec)
				}
			})
			f(t, c)
		})
	}
}

// A rest is where a run stands, in a form that can be compared.
type rest struct {
	status checkpoint.Status
	state  string
	cursor string
}

func (r rest) String() string {
	return fmt.Sprintf("%s\n\tat %s\n\twith %s", r.status, r.cursor, padding.ReplaceAllString(r.state, "…"))
}

// padding is what makes values big, and is no help in a message.
var padding = regexp.MustCompile(`x{100,}`)

func (r *reference) rest() rest {
	return rest{r.status, r.root.state.json(), r.root.rests()}
}

func restOf(res *dispatcher.Result[cells]) rest {
	return rest{res.Status, res.State.json(), strings.Join(res.Cursor.Visits, ",")}
}

// sameRest compares where a run stands with what the reference says. What a call returns
// has to agree with the error beside it.
func sameRest(t *testing.T, what string, res *dispatcher.Result[cells], err error, want rest) {
	t.Helper()
	if got := restOf(res); got != want {
		t.Errorf("%s: the run is %v\nthe reference is %v", what, got, want)
	}
	var r *dispatcher.Rest
	switch {
	case res.Status == checkpoint.StatusCompleted:
		if err != nil {
			t.Errorf("%s: a completed run returns %v", what, err)
		}
	case !errors.As(err, &r):
		t.Errorf("%s: a run that is %s returns %v", what, res.Status, err)
	case r.Status != res.Status || !slices.Equal(r.Cursor.Visits, res.Cursor.Visits):
		t.Errorf("%s: the error says %s at %v, the result %s at %v", what,
			r.Status, r.Cursor.Visits, res.Status, res.Cursor.Visits)
	}
}

// newDispatcher makes a dispatcher for the graph of c.
func (c *randomCase) newDispatcher(t *testing.T, store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[cells] {
	t.Helper()
	o.Hooks.Intercept = c.interceptors()
	d, err := dispatcher.New(c.graph, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const runID = "random run"

// Rules 1 to 5: what a run does is what the reference does, whether deltas are folded from
// memory or from their encoded bytes.
func TestRandomGraphsAgreeWithReference(t *testing.T) {
	eachCase(t, func(t *testing.T, c *randomCase) {
		for _, paranoid := range []bool{false, true} {
			var store memory.Store
			var attempts, done []string
			d := c.newDispatcher(t, &store, dispatcher.Options{Paranoid: paranoid, Observe: func(e dispatcher.Event) {
				switch e.Kind {
				case dispatcher.VisitStarted:
					attempts = append(attempts, fmt.Sprintf("%s@%d#%d", e.Path, e.Step, e.Attempt))
				case dispatcher.VisitDone:
					done = append(done, fmt.Sprintf("%s@%d", e.Path, e.Step))
				}
			}})
			asked := c.asked()
			b := &bench{run: runID, spec: c.spec}
			res, err := d.Run(b.context(t.Context()), runID, inputs)
			what := fmt.Sprintf("paranoid=%t", paranoid)
			sameRest(t, what, res, err, c.want.rest())
			sameList(t, what+": attempts", c.want.firm(attempts), c.want.firm(c.want.attempts))
			sameList(t, what+": visits done", c.want.firm(done), c.want.firm(c.want.done))
			b.narrow(t)
			if asked := int(c.asked() - asked); asked != c.want.asked {
				t.Errorf("%s: until, in and out were called %d times, want %d", what, asked, c.want.asked)
			}
			c.sameCheckpoints(t, d)
			again, err := d.State(t.Context(), runID)
			if err != nil || restOf(again) != c.want.rest() {
				t.Errorf("%s: State reads %v (%v)", what, restOf(again), err)
			}
		}
	})
}

// sameList compares two lists, whose order is timing.
func sameList(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v\nthe reference: %v", what, got, want)
	}
}

// sameCheckpoints reads every checkpoint of a run: the state of its frame, and what its
// frame has still to run, are those of the reference.
func (c *randomCase) sameCheckpoints(t *testing.T, d *dispatcher.Dispatcher[cells]) {
	t.Helper()
	seen := map[string]bool{}
	for p, err := range d.History(t.Context(), runID) {
		if err != nil {
			t.Fatal(err)
		}
		name := p.String()
		seen[name] = true
		at, err := d.At(t.Context(), runID, p.Address())
		if c.spec.grouped(p.Path) {
			if !errors.Is(err, dispatcher.ErrNested) {
				t.Errorf("checkpoint %s is of another state type: At returns %v", name, err)
			}
			c.sameNested(t, d, p)
			continue
		}
		if err != nil {
			t.Errorf("checkpoint %s: %v", name, err)
			continue
		}
		if got, want := at.State.json(), c.want.states[name]; got != want {
			t.Errorf("checkpoint %s is %s\nthe reference: %s", name, got, want)
		}
		if got, want := partOf(at.Cursor.Visits, p.Path), c.want.ready[name]; got != want {
			t.Errorf("checkpoint %s: its frame has still to run %q, the reference says %q", name, got, want)
		}
	}
	for name := range maps.Keys(c.want.states) {
		if !seen[name] {
			t.Errorf("checkpoint %s is missing", name)
		}
	}
}

// sameNested reads a checkpoint of a frame whose state is of another type.
func (c *randomCase) sameNested(t *testing.T, d *dispatcher.Dispatcher[cells], p dispatcher.Checkpoint) {
	t.Helper()
	name := p.String()
	at, err := dispatcher.StateOf[grouped](t.Context(), d, runID, p.Address())
	if err != nil {
		t.Errorf("checkpoint %s: %v", name, err)
		return
	}
	if got, want := at.State.Group.json(), c.want.states[name]; got != want {
		t.Errorf("checkpoint %s is %s\nthe reference: %s", name, got, want)
	}
	if got, want := partOf(at.Cursor.Visits, p.Path), c.want.ready[name]; got != want || at.Superstep != p.Superstep {
		t.Errorf("checkpoint %s: its frame has still to run %q behind superstep %d, the reference says %q", name, got, at.Superstep, want)
	}
	if _, err := dispatcher.StateOf[cells](t.Context(), d, runID, p.Address()); !errors.Is(err, dispatcher.ErrNested) {
		t.Errorf("checkpoint %s is of another state type: StateOf returns %v", name, err)
	}
}

// part is that part of a cursor that lies in the frame at path: the visits of the frame
// itself, each once, without what is open inside of them.
func partOf(cursor []string, path string) string {
	var visits []string
	for _, v := range cursor {
		if path != "" {
			rest, inside := strings.CutPrefix(v, path+"/")
			if !inside {
				continue
			}
			v = rest
		}
		v, _, _ = strings.Cut(v, "/")
		if v = under(path, v); !slices.Contains(visits, v) {
			visits = append(visits, v)
		}
	}
	return strings.Join(visits, ",")
}
