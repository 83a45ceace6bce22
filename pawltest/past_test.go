package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A pastNode is a step that adds a price to the total; with a body it is a loop of one round
// around a step of that name.
type pastNode struct {
	name  string
	price int
	body  string
}

// pastGraph is a chain of nodes.
func pastGraph(t testing.TB, nodes ...pastNode) *dag.Graph[Order] {
	t.Helper()
	b := dag.New[Order]("past")
	var after []dag.Edge[Order]
	for _, n := range nodes {
		add := func(_ context.Context, o *Order) error {
			o.Total.Add(n.price)
			return nil
		}
		if n.body == "" {
			after = []dag.Edge[Order]{dag.Step(b, n.name, add, after...)}
			continue
		}
		body := dag.New[Order]("body")
		dag.Step(body, n.body, add)
		round := built(t, body)
		after = []dag.Edge[Order]{dag.Loop(b, n.name, round, func(*Order) bool { return true }, 2, after...)}
	}
	return built(t, b)
}

// pastExport runs graphs as pastRun does, and exports the run.
func pastExport(t testing.TB, waits []string, moves []dispatcher.Migration, graphs ...*dag.Graph[Order]) string {
	t.Helper()
	return written(t, pastRun(t, waits, moves, graphs...))
}

// pastRun runs the first graph until it waits before a visit, and lets the others go on as far
// as their own.
func pastRun(t testing.TB, waits []string, moves []dispatcher.Migration, graphs ...*dag.Graph[Order]) *memory.Store {
	t.Helper()
	var store memory.Store
	for i, g := range graphs {
		o := dispatcher.Options{}
		if i > 0 {
			o.Migrations = moves
		}
		if i < len(waits) {
			o.InterruptBefore = []string{waits[i]}
		}
		d, err := dispatcher.New(g, &store, o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			_, err = d.Start(t.Context(), "order/7", input)
		} else {
			_, err = d.Resume(t.Context(), "order/7")
		}
		if i < len(waits) && !errors.Is(err, dispatcher.ErrInterrupted) || i == len(waits) && err != nil {
			t.Fatalf("graph %d comes to %v", i, err)
		}
	}
	return &store
}

// pastLogger is told of findings, and of what was left out.
type pastLogger struct {
	heard
	logged []string
}

func (l *pastLogger) Logf(format string, args ...any) {
	l.logged = append(l.logged, fmt.Sprintf(format, args...))
}

// What was done before a change of graph that was accepted is tried too, and after it.
func TestReplayBeforeAnAcceptedChange(t *testing.T) {
	a, b, c, d := pastNode{name: "a", price: 1}, pastNode{name: "b", price: 2}, pastNode{name: "c", price: 3}, pastNode{name: "d", price: 4}
	file := pastExport(t, []string{"b", "c"}, nil, pastGraph(t, a, b), pastGraph(t, a, b, c), pastGraph(t, a, b, c, d))
	pawltest.Replay(t, file, pastGraph(t, a, b, c, d))
	for i, want := range []string{
		`visit a: cell Total wrote {"add":1}, now {"add":10}`,
		`visit b: cell Total wrote {"add":2}, now {"add":10}`,
		`visit c: cell Total wrote {"add":3}, now {"add":10}`,
		`visit d: cell Total wrote {"add":4}, now {"add":10}`,
	} {
		nodes := []pastNode{a, b, c, d}
		nodes[i].price = 10
		var all heard
		pawltest.Replay(&all, file, pastGraph(t, nodes...))
		all.expect(t, want)

		var since pastLogger
		pawltest.Replay(&since, file, pastGraph(t, nodes...), pawltest.SinceChange())
		if i < 2 {
			since.expect(t)
		} else {
			since.expect(t, want)
		}
		out := heard{all: since.logged}
		out.expect(t, `run "order/7": left out, from before the change of graph at entry …: visit a, …visit b`)
	}
	var none heard // a T without Logf
	pawltest.Replay(&none, file, pastGraph(t, a, b, c, d), pawltest.SinceChange())
	none.expect(t)
}

// What was done before a migration is tried under the names that the migration gives. Without
// it, what can't be tried is told.
func TestReplayBeforeAMigration(t *testing.T) {
	move := dispatcher.Migration{Name: "words", Nodes: map[string]string{"write": "draft"}}
	old := pastGraph(t, pastNode{name: "write", price: 1}, pastNode{name: "send", price: 2})
	now := func(price int) *dag.Graph[Order] {
		return pastGraph(t, pastNode{name: "draft", price: price}, pastNode{name: "send", price: 2})
	}
	file := pastExport(t, []string{"send"}, []dispatcher.Migration{move}, old, now(1))
	pawltest.Replay(t, file, now(1), pawltest.Migrations(move))

	var other heard
	pawltest.Replay(&other, file, now(10), pawltest.Migrations(move))
	other.expect(t, `visit draft: cell Total wrote {"add":1}, now {"add":10}`)

	var without heard
	pawltest.Replay(&without, file, now(1))
	without.expect(t, "run \"order/7\": not tried, because the graph changed at entry …: visit write…: "+
		"visit write is done, and its node is gone: SinceChange leaves out what was before")
	pawltest.Replay(t, file, now(1), pawltest.SinceChange())
}

// A past frame may be another graph's: what was done in it can't be tried, and is told.
func TestReplayOfAFrameThatIsGone(t *testing.T) {
	loop, last := pastNode{name: "loop", price: 1, body: "inner"}, pastNode{name: "last", price: 2}
	now := loop
	now.body = "other"
	file := pastExport(t, []string{"last"}, nil, pastGraph(t, loop, last), pastGraph(t, now, last))
	var h heard
	pawltest.Replay(&h, file, pastGraph(t, now, last))
	h.expect(t, "not tried, because the graph changed at entry …visit loop/1/inner…: visit loop/1/inner is done, and its node is gone")
	last.price = 3
	h = heard{}
	pawltest.Replay(&h, file, pastGraph(t, now, last), pawltest.SinceChange())
	h.expect(t, `visit last: cell Total wrote {"add":2}, now {"add":3}`)
}

// A visit that is done is told to be done, although it was open where it was to be tried.
func TestReplayTellsWhatIsDone(t *testing.T) {
	file := pastExport(t, nil, nil, pastGraph(t, pastNode{name: "write", price: 1}))
	var h heard
	pawltest.Replay(&h, file, pastGraph(t, pastNode{name: "draft", price: 1}))
	h.expect(t, `the past has changed: visit write is done, and its node is gone`)
}

// An option that says nothing, or is not for the call, is told, and so is an answer that
// nobody asks for.
func TestPastOptionsThatSayNothing(t *testing.T) {
	g := pastGraph(t, pastNode{name: "a", price: 1})
	for want, o := range map[string]pawltest.Option{
		"pawltest: Rebuild needs a function, and got nil": pawltest.Rebuild[Order](nil),
		"pawltest: World needs a function, and got nil":   pawltest.World(nil),
		"pawltest: Reset needs a function, and got nil":   pawltest.Reset(nil),
		"pawltest: Doubts needs a function, and got nil":  pawltest.Doubts(nil),
		"pawltest: Migrations are for Replay":             pawltest.Migrations(),
		"pawltest: SinceChange is for Replay":             pawltest.SinceChange(),
		`pawltest: Answers have "sure", and no visit asks`: pawltest.Answers(map[string]any{
			"sure": true,
		}),
	} {
		var crash heard
		pawltest.Crash(&crash, g, input, o)
		crash.expect(t, want)
	}
	for _, o := range []pawltest.Option{
		pawltest.Rebuild[Order](nil), pawltest.World(nil), pawltest.Reset(nil), pawltest.Run(), pawltest.Answers(nil),
		pawltest.Approvals(dispatcher.Gates{}, nil), pawltest.Doubts(func(dispatcher.OpenEffect) dispatcher.Resolution {
			return dispatcher.NotHappened("")
		}),
	} {
		var replay heard
		pawltest.Replay(&replay, "no file", g, o)
		if len(replay.all) != 1 || strings.Contains(replay.all[0], "no file") {
			t.Errorf("Replay tells %q", replay.all)
		}
	}
	both := pawltest.Answers(map[string]any{"received": true, "recieved": true})
	var h heard
	pawltest.Crash(&h, mails(t, &shop{careful: true}), input, both)
	h.expect(t, `Answers have "recieved", and no visit asks that`)
}

// A completed run may come to any graph with its next turn: what was done in the turns before
// is told not to be tried, and the turn is tried.
func TestReplayOfATurnOfAnotherGraph(t *testing.T) {
	var store memory.Store
	old, now := pastNode{name: "old", price: 1}, pastNode{name: "now", price: 2}
	for turn, n := range []pastNode{old, now} {
		d, err := dispatcher.New(pastGraph(t, n), &store, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if turn == 0 {
			_, err = d.Run(t.Context(), "order/7", input)
		} else {
			_, err = d.Turn(t.Context(), "order/7", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := written(t, &store)
	var all, since heard
	pawltest.Replay(&all, file, pastGraph(t, now))
	all.expect(t, "not tried, because the graph changed at entry …visit old…: visit old is done, and its node is gone")
	now.price = 3
	pawltest.Replay(&since, file, pastGraph(t, now), pawltest.SinceChange())
	since.expect(t, `visit now: cell Total wrote {"add":2}, now {"add":3}`)
}

// A visit whose node a migration forgets is not tried.
func TestReplayOfANodeThatIsForgotten(t *testing.T) {
	was := pastGraph(t, pastNode{name: "write", price: 1}, pastNode{name: "send", price: 2}, pastNode{name: "last", price: 3})
	is := pastGraph(t, pastNode{name: "write", price: 1}, pastNode{name: "last", price: 3})
	move := dispatcher.Migration{Name: "no sending", From: was.Digest(), Nodes: map[string]string{"send": ""}}
	file := pastExport(t, []string{"last"}, []dispatcher.Migration{move}, was, is)
	var h heard
	pawltest.Replay(&h, file, is, pawltest.Migrations(move))
	h.expect(t)
}
