package dispatcher

import (
	"context"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A thawed is a state of several kinds of cells.
type thawed struct {
	List state.List[string]
	Map  state.Map[string, int]
	Sum  state.Sum[int]
}

// thawGraph nests all kinds of frames.
func thawGraph(t testing.TB) *dag.Plan {
	step := func(context.Context, *thawed) error { return nil }
	inner := dag.New[thawed]("inner")
	a := dag.Step(inner, "a", step)
	dag.Step(inner, "b", step, a)
	body, err := inner.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New[thawed]("thaw")
	first := dag.Step(b, "first", step)
	dag.Loop(b, "loop", body, func(*thawed) bool { return false }, 3, first)
	dag.Embed(b, "embed", body, func(*thawed, *thawed) {}, func(*thawed, *thawed) {}, first)
	dag.Each(b, "each", func(*thawed) []int { return nil }, func(context.Context, *thawed, int) error { return nil }, first)
	dag.EachGraph(b, "graphs", func(*thawed) []int { return nil }, body, func(*thawed, int, *thawed) {}, func(*thawed, int, *thawed) {}, first)
	graph, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return graph.Plan()
}

// What no machine can have frozen is an error, and never a panic: the entry of a changed
// graph may come from a file that somebody else has written.
func TestThawRefuses(t *testing.T) {
	plan := thawGraph(t)
	for _, c := range []string{
		`{}`,
		`{"step":-1,"view":{}}`,
		`{"iteration":1,"view":{}}`,
		`{"items":{"count":1},"view":{}}`,
		`{"view":{"List":1}}`,
		`{"view":{},"open":[5]}`,
		`{"view":{},"open":[-1]}`,
		`{"view":{},"open":[0,0],"tasks":[{"node":0,"phase":1}]}`,
		`{"view":{},"next":[7]}`,
		`{"view":{},"done":[0]}`,
		`{"view":{},"done":[3,9]}`,
		`{"view":{},"open":[0],"done":[0,0]}`,
		`{"view":{},"tasks":[{"node":0,"phase":1}]}`,
		`{"view":{},"open":[0],"tasks":[{"node":9,"phase":1}]}`,
		`{"view":{},"open":[0],"tasks":[{"node":0,"phase":99}]}`,
		`{"view":{},"open":[0],"tasks":[{"node":0,"phase":1,"answers":{"sure":null}}]}`,
		`{"view":{},"open":[0],"tasks":[{"node":0,"phase":3}]}`,
		`{"view":{},"open":[0],"tasks":[{"node":0,"phase":6}]}`,
		`{"view":{},"open":[1],"tasks":[{"node":1,"phase":5}]}`,
		`{"view":{},"open":[1],"tasks":[{"node":1,"phase":5,"inner":{"step":1,"view":{},"outer":{}}}]}`,
		`{"view":{},"open":[1],"tasks":[{"node":1,"phase":5,"inner":{"iteration":1,"view":{},"outer":{}}}]}`,
		`{"view":{},"open":[1],"tasks":[{"node":1,"phase":1,"inner":{"iteration":1,"step":1,"view":{},"outer":{}}}]}`,
		`{"view":{},"open":[3],"tasks":[{"node":3,"phase":5,"inner":{"step":1,"items":{"count":-1}}}]}`,
		`{"view":{},"open":[3],"tasks":[{"node":3,"phase":5,"inner":{"step":1,"items":{"count":99999999999}}}]}`,
		`{"view":{},"open":[3],"tasks":[{"node":3,"phase":5,"inner":{"step":1,"view":{}}}]}`,
		`{"view":{},"open":[2],"tasks":[{"node":2,"phase":5,"inner":{"step":1,"items":{"count":1}}}]}`,
		`{"view":{},"open":[0],"tasks":[{"node":0,"phase":7,"delta":{"None":{}}}]}`,
		`{"view":{},"after":[{"id":"i","node":0,"ask":{}}]}`,
		`{"view":{},"after":[{"id":"i","node":9,"ask":{}}]}`,
	} {
		z, err := parseMachine([]byte(`{"graph":"` + plan.Digest + `","root":` + c + `}`))
		if err == nil {
			err = newMachine(plan).thawAll(z)
		}
		if err == nil {
			t.Errorf("%s was thawed", c)
		}
	}
}

// The state of a machine is put into what is encoded of the rest, and that makes the same bytes as
// encoding all of it.
func TestASnapshotIsWhatEncodeWrites(t *testing.T) {
	plan := thawGraph(t)
	for _, view := range []string{"{}", `{"List":["<b> & \"view\":0 größer\u2028"],"Sum":1}`} {
		z, err := parseMachine([]byte(`{"graph":"` + plan.Digest + `","status":"failed","fault":{"kind":"\"view\":0","message":"\"root\":{\"view\":0"},` +
			`"root":{"step":2,"view":` + view + `,"open":[1],"done":[0,0],"tasks":[{"node":1,"phase":5,"inner":{"path":"loop/2","iteration":2,"step":1,"view":{"Sum":2},"outer":{"Sum":{"add":2}},"open":[0],"tasks":[{"node":0,"phase":1}]}}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(plan)
		m.replaying = true
		if err := m.thawAll(z); err != nil {
			t.Fatal(err)
		}
		same(t, m.encode(), encode(m.frozen()))
		if read, err := parseMachine(m.encode()); err != nil || string(read.Root.View) != view {
			t.Errorf("the state %s is %s in the snapshot, %v", view, read.Root.View, err)
		}
	}
}

// Whatever is thawed freezes to what can be thawed again.
func FuzzThaw(f *testing.F) {
	plan := thawGraph(f)
	head := `{"graph":"` + plan.Digest + `","status":"cancelled","root":{"step":2,"view":{"List":["x"],"Sum":1},`
	for _, rest := range []string{
		`"next":[1,2],"done":[0,0]}}`,
		`"open":[1,2,3,4],"done":[0,0],"tasks":[{"node":1,"phase":5,"inner":{"path":"loop/2","iteration":2,"step":1,"view":{},"outer":{"Sum":{"add":2}},"open":[0],"tasks":[{"node":0,"phase":1}]}},{"node":2,"phase":7,"delta":{"List":{"append":["y"]}}},{"node":3,"phase":5,"inner":{"path":"each","step":1,"items":{"count":3,"digest":"d","open":true},"ready":[0,0],"tasks":[{"node":1,"phase":7,"delta":{}},{"node":2,"phase":2,"attempts":1,"not_before":5,"wait":3}]}},{"node":4,"phase":1}]}}`,
		`"open":[1],"done":[0,0],"tasks":[{"node":1,"phase":3,"asks":[{"id":"i","node":1,"ask":{"kind":"before"}}]}],"after":[{"id":"j","node":0,"ask":{"kind":"after"}}],"refused":{"path":"first"}},"effects":{"first":{"k":{"digest":"d","state":1}}}}`,
	} {
		f.Add([]byte(head + rest))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := parseMachine(data)
		if err != nil {
			return
		}
		m := newMachine(plan)
		m.replaying = true
		if m.thawAll(z) != nil {
			return
		}
		again := newMachine(plan)
		again.replaying = true
		if z, err := parseMachine(m.encode()); err != nil || again.thawAll(z) != nil {
			t.Errorf("%s was thawed, and what it froze to was not", data)
		}
		again.report("run", 1)
		again.rescan()
		again.take()
	})
}

// The number of the last answer that was drained is known wherever a machine goes on. A fork has
// drained none.
func TestAnsweredWhereverAMachineGoesOn(t *testing.T) {
	plan := thawGraph(t)
	thawed := func(seen ...string) *machine {
		m := newMachine(plan)
		if err := m.thawAll(&frozenMachine{Graph: plan.Digest, Seen: seen, Root: &frozenFrame{View: []byte(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	now := thawed("answer:000000000007", "answer:1000000000000", "given:answer:9000000000000", "note:11")
	if n := now.answered; n != 1e12 {
		t.Errorf("thawed: %d, want 1000000000000", n)
	}
	now.see("answer:1000000000001")
	now.see("answer:000000000008")
	if n := now.answered; n != 1e12+1 {
		t.Errorf("behind a later one: %d, want 1000000000001", n)
	}
	old := thawed("answer:000000000003")
	if old.rewound(ancestor{}, now); old.answered != 1e12+1 {
		t.Errorf("rewound: %d, want 1000000000001", old.answered)
	}
	if now.calm(); now.answered != 0 {
		t.Errorf("a fork: %d, want 0", now.answered)
	}
}
