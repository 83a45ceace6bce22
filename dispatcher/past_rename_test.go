package dispatcher_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A spin is a program in a test of the past: loops behind each other, and in each of them a loop of
// two nodes x and y. Who runs it goes on with the run up to before a node, if stop says so, or
// edits it, and voids what void says.
type spin struct {
	nodes map[string]string // of its migration
	loops [][2]string       // the names of the one around and the one inside, which may be "": there is none
	stop  string
	at    string
	void  string
}

func (p *spin) program(t *testing.T, store checkpoint.Store) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	once := func(*Tale) bool { return true }
	b := dag.New[Tale]("spins")
	after := []dag.Edge[Tale]{dag.Step(b, "s", nothing[Tale])}
	for _, names := range p.loops {
		out := dag.New[Tale]("out")
		begin := dag.Step(out, "begin", nothing[Tale])
		if names[1] != "" {
			in := dag.New[Tale]("in")
			dag.Step(in, "y", nothing[Tale], dag.Step(in, "x", nothing[Tale]))
			dag.Loop(out, names[1], frozen(t, in), once, 3, begin)
		}
		after = []dag.Edge[Tale]{dag.Loop(b, names[0], frozen(t, out), once, 3, after...)}
	}
	var o dispatcher.Options
	if p.nodes != nil {
		o = migrating(dispatcher.Migration{Name: "m", Nodes: p.nodes})
	}
	if p.stop != "" {
		o.InterruptBefore = []string{p.stop}
	}
	return process(t, frozen(t, b), store, o)
}

// spinKeeps gives every checkpoint of a run a name, and trims it but for these.
func spinKeeps(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
	t.Helper()
	all, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{})
	for _, p := range all {
		err = errors.Join(err, d.Tag(t.Context(), run, p.Address(), fmt.Sprint("entry ", p.Seq)))
	}
	if err = errors.Join(err, d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true})); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint that stands in a frame which is voided is abandoned, under whatever name: its
// address finds it no more. One that stood in a frame whose name another one has, which is voided,
// is not. That is so as well of checkpoints that were kept for their names.
func TestVoidedUnderAnotherName(t *testing.T) {
	quiet(t)
	loops := func(names ...string) (all [][2]string) {
		for pair := range slices.Chunk(names, 2) {
			all = append(all, [2]string(pair))
		}
		return all
	}
	first := spin{nil, loops("loop", "turn"), "loop/turn/y", "loop/1/turn/1/y", ""}
	for name, c := range map[string]struct {
		programs  []spin
		abandoned []string
		found     []string // among others
	}{
		"the frame around": {
			[]spin{first, {map[string]string{"loop": "lap"}, loops("lap", "turn"), "", "", "lap"}},
			[]string{"loop/1@1", "loop/1/turn/1@1"}, []string{"lap/1@1", "lap/1/turn/1@1"},
		},
		"the frame inside": {
			[]spin{first, {map[string]string{"loop/turn": "loop/tour"}, loops("loop", "tour"), "", "", "loop/1/tour"}},
			[]string{"loop/1/turn/1@1"}, []string{"loop/1@1", "loop/1/tour/1@1"},
		},
		"behind two migrations": {
			[]spin{
				first,
				{map[string]string{"loop": "lap"}, loops("lap", "turn"), "", "", ""},
				{map[string]string{"lap": "round", "lap/turn": "round/tour"}, loops("round", "tour"), "", "", "round"},
			},
			[]string{"loop/1@1", "loop/1/turn/1@1"}, []string{"round/1@1"},
		},
		"around what was forgotten": {
			[]spin{first, {map[string]string{"loop": "lap", "loop/turn": ""}, loops("lap", ""), "", "", "lap"}},
			[]string{"loop/1@1", "loop/1/turn/1@1"}, []string{"lap/1@1"},
		},
		"another frame that has the name": {
			[]spin{first, {map[string]string{"loop": "lap"}, loops("lap", "turn", "loop", "tour"), "loop/tour/y", "loop/1/tour/1/y", "loop"}},
			[]string{"loop/1@1", "loop/1/tour/1@1"}, []string{"loop/1@1", "loop/1/turn/1@1"},
		},
		"before it had another name": {
			[]spin{
				{nil, loops("loop", "turn"), "loop/turn/y", "loop/1/turn/1/y", "loop/1/turn"},
				{nil, loops("loop", "turn"), "loop/turn/y", "loop/1/turn/1/y", ""},
				{map[string]string{"loop/turn": "loop/tour"}, loops("loop", "tour"), "", "", ""},
			},
			[]string{"loop/1/turn/1@1"}, []string{"loop/1@1", "loop/1/turn/1@1"},
		},
	} {
		holds := func(t *testing.T, trimmed bool) {
			var store memory.Store
			var last func() *dispatcher.Dispatcher[Tale]
			for i, p := range c.programs {
				d := p.program(t, &store)
				switch {
				case i == 0:
					res, err := d.Run(t.Context(), run, nil)
					rests(t, res, err, checkpoint.StatusInterrupted, p.at)
				case p.stop != "":
					res, err := d.Resume(t.Context(), run)
					rests(t, res, err, checkpoint.StatusInterrupted, p.at)
				}
				if trimmed {
					spinKeeps(t, d)
				}
				var o dispatcher.EditOptions
				if p.void != "" {
					o.Void = []string{p.void}
				}
				if p.void != "" || p.stop == "" {
					if err := d.Edit(t.Context(), run, func(s *Tale) { s.Count.Add(1) }, o); err != nil {
						t.Fatal(err)
					}
				}
				p.stop = ""
				last = func() *dispatcher.Dispatcher[Tale] { return p.program(t, &store) }
			}
			res, err := last().Resume(t.Context(), run)
			completes(t, res, err)
			all, err := last().HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Limit: math.MaxInt})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := pastLines(pastPages(t, last, run, 1)), pastLines(all); !slices.Equal(got, want) {
				t.Errorf("in pages the past is %q, and it is %q", got, want)
			}
			var abandoned []string
			for _, p := range all {
				if p.Abandoned {
					abandoned = append(abandoned, p.String())
				}
			}
			if !slices.Equal(abandoned, c.abandoned) {
				t.Errorf("abandoned are %q, want %q", abandoned, c.abandoned)
			}
			for _, at := range c.found {
				if _, err := last().At(t.Context(), run, at); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
		}
		t.Run(name, func(t *testing.T) { holds(t, false) })
		t.Run(name+", trimmed", func(t *testing.T) { holds(t, true) })
	}
}
