package milestone_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
)

// A pair are a Namer that follows a run step by step, and the rules by which others read it from
// its beginning.
type pair struct {
	*dispatcher.Dispatcher[Task]
	*milestone.Namer
	rules []milestone.Rule
	all   []string // tags that the Namer has found
}

func paired(t *testing.T, d *dispatcher.Dispatcher[Task], rules ...milestone.Rule) *pair {
	t.Helper()
	n, err := milestone.New(d, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{Dispatcher: d, Namer: n, rules: rules}
}

// found names the run, compares with what is wanted, by rules and details, and all so far with what
// one finds who reads at once.
func (p *pair) found(t *testing.T, want ...string) {
	t.Helper()
	found, err := p.Name(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		p.all = append(p.all, m.Tag)
		got = append(got, m.Tag[:strings.LastIndex(m.Tag, " #")])
	}
	if !slices.Equal(got, want) {
		t.Errorf("named %q, want %q", got, want)
	}
	fresh := paired(t, p.Dispatcher, p.rules...)
	again, err := fresh.Name(t.Context(), "r")
	var anew []string
	for _, m := range again {
		anew = append(anew, m.Tag)
	}
	if err != nil || !slices.Equal(anew, p.all) {
		t.Errorf("read at once the names are %q, %v; step by step %q", anew, err, p.all)
	}
}

func (p *pair) rewind(t *testing.T, to string) {
	t.Helper()
	if err := p.Rewind(t.Context(), "r", to, dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
}

// head is the address of the last entry, which has to be a checkpoint.
func (p *pair) head(t *testing.T) string {
	t.Helper()
	info, err := p.Store().Stat(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("r@", info.Head.Seq)
}

func decides(id string) func(context.Context, *Task) error {
	return func(ctx context.Context, _ *Task) error {
		return dag.Decide(ctx, dag.Decision{ID: id, Description: "left"})
	}
}

// halfway is a superstep in which somebody decides, somebody fails once, and a loop asks between
// its first and its second node.
func halfway(t *testing.T) *dispatcher.Dispatcher[Task] {
	t.Helper()
	inner := dag.New[Task]("inner")
	dag.Step(inner, "second", asking("on"), dag.Step(inner, "first", func(context.Context, *Task) error { return nil }))
	b := dag.New[Task]("outer")
	dag.Step(b, "decide", decides("way"))
	dag.Step(b, "retry", func(ctx context.Context, _ *Task) error {
		if dag.Attempt(ctx) == 1 {
			return errOffline
		}
		return nil
	}).With(dag.Policy{Attempts: 2})
	dag.Loop(b, "loop", build(t, inner), func(*Task) bool { return true }, 1)
	d, err := dispatcher.New(build(t, b), new(memory.Store), dispatcher.Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a void took back is named with the end of its superstep in a run that goes back to before
// the void, where it is done; and is not if the run goes from there to behind the void.
func TestRewoundToBeforeAVoid(t *testing.T) {
	p := paired(t, halfway(t), milestone.Decision(), milestone.Node("decide"))
	waits(t, goesOn(t, p.Dispatcher))
	p.found(t)
	edit := dispatcher.EditOptions{Void: []string{"decide"}}
	if err := p.Edit(t.Context(), "r", func(s *Task) { s.Phase.Set("hers") }, edit); err != nil {
		t.Fatal(err)
	}
	behind := p.head(t)
	p.found(t)
	for _, to := range []string{"loop/1@1", behind, "loop/1@1"} {
		p.rewind(t, to)
		p.found(t)
	}
	waits(t, goesOn(t, p.Dispatcher))
	if err := goesOn(t, p.Dispatcher, "on"); err != nil {
		t.Fatal(err)
	}
	p.found(t, "decision way", "node decide")
}

// What came about in a superstep is named with its new end in a run that goes back into it, though
// it had ended.
func TestRewoundIntoASuperstepThatHadEnded(t *testing.T) {
	p := paired(t, halfway(t), milestone.Decision(), milestone.Recovery())
	waits(t, goesOn(t, p.Dispatcher))
	if err := goesOn(t, p.Dispatcher, "on"); err != nil {
		t.Fatal(err)
	}
	p.found(t, "decision way", "recovery retry")
	p.rewind(t, "loop/1@1")
	waits(t, goesOn(t, p.Dispatcher))
	if err := goesOn(t, p.Dispatcher, "on"); err != nil {
		t.Fatal(err)
	}
	p.found(t, "decision way", "recovery retry")
}

// chain is four nodes, of which the second decides and writes.
func chain(t *testing.T) *dispatcher.Dispatcher[Task] {
	t.Helper()
	b := dag.New[Task]("chain")
	var after []dag.Edge[Task]
	for _, name := range []string{"a", "b", "c", "d"} {
		after = []dag.Edge[Task]{dag.Step(b, name, func(ctx context.Context, s *Task) error {
			if name != "b" {
				return nil
			}
			s.Phase.Set(name)
			s.Rounds.Add(7)
			return decides("way")(ctx, s)
		}, after...)}
	}
	return dispatch(t, build(t, b), new(memory.Store))
}

// superstep is the address of the last checkpoint behind a superstep of the run's own frame.
func (p *pair) superstep(t *testing.T, n int) (at string) {
	t.Helper()
	for c, err := range p.History(t.Context(), "r") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Path == "" && c.Superstep == n {
			at = c.Address()
		}
	}
	return at
}

// A run that goes on from a checkpoint that an earlier rewind has left behind compares with what it
// had there: what it does not change has no name.
func TestRewoundToWhatWasAbandoned(t *testing.T) {
	p := paired(t, chain(t), milestone.Decision(), milestone.Change("Rounds"), milestone.Rises("Rounds", 5))
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	p.found(t, "change Rounds 7", "rises Rounds 5 7", "decision way")
	third := p.superstep(t, 3)
	for range 2 { // the second time there is another side, on which the cell has risen as well
		p.rewind(t, "1")
		p.found(t)
		p.rewind(t, third)
		p.found(t)
		if err := goesOn(t, p.Dispatcher); err != nil {
			t.Fatal(err)
		}
		p.found(t)
		p.rewind(t, "1")
		if err := goesOn(t, p.Dispatcher); err != nil {
			t.Fatal(err)
		}
		p.found(t, "change Rounds 7", "rises Rounds 5 7", "decision way")
	}
}

// A fork from what a rewind has left behind compares with that, and so does what it goes back to.
func TestForkOfWhatWasAbandoned(t *testing.T) {
	p := paired(t, chain(t), milestone.Change("Rounds"))
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	second := p.superstep(t, 2)
	p.rewind(t, "1")
	for at, want := range map[string]int{second: 0, "1": 1} {
		fork := forked(t, p.Dispatcher, "r", at, true)
		if got := changes(t, p.Dispatcher, fork); len(got) != want {
			t.Errorf("the fork at %s has the names %q, want %d", at, got, want)
		}
		if err := p.Rewind(t.Context(), fork, fork+"@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(t.Context(), fork, nil); err != nil {
			t.Fatal(err)
		}
		if got := changes(t, p.Dispatcher, fork); len(got) != 2*want {
			t.Errorf("the fork at %s, back at its beginning, has the names %q, want %d", at, got, 2*want)
		}
	}
}

// Behind a rewind to a checkpoint that a trim has kept for its name alone, the names are the same
// ones, whether the Namer had read what was trimmed or not.
func TestRewoundToWhatWasTrimmed(t *testing.T) {
	p := paired(t, dispatch(t, task(t, func(string) {}), new(memory.Store)), milestone.Change("Phase"), milestone.Rises("Confidence", 0.8), milestone.Decision())
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	p.found(t, "change Phase planning", "decision accept", "rises Confidence 0.8 1.2", "change Phase execution")
	if err := p.Trim(t.Context(), "r", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		t.Fatal(err)
	}
	p.rewind(t, "1")
	behind, err := p.Store().Stat(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := goesOn(t, p.Dispatcher); err != nil {
		t.Fatal(err)
	}
	find := func(n *milestone.Namer) (all []milestone.Milestone) {
		found, err := n.Name(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			if m.Seq > behind.Head.Seq {
				all = append(all, m)
			}
		}
		return all
	}
	kept, fresh := find(p.Namer), find(paired(t, p.Dispatcher, p.rules...).Namer)
	if len(kept) == 0 || !slices.Equal(kept, fresh) {
		t.Errorf("who had read it names %v, who had not %v", kept, fresh)
	}
}
