package pawltest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// edgesGraph is a loop whose inner node, and another behind it, have these names.
func edgesGraph(t *testing.T, inner, last string, price int) *dag.Graph[Order] {
	t.Helper()
	body := dag.New[Order]("body")
	dag.Step(body, inner, func(_ context.Context, o *Order) error {
		o.Total.Add(price)
		return nil
	})
	round, err := body.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New[Order]("edges")
	loop := dag.Loop(b, "rounds", round, func(*Order) bool { return false }, 2)
	dag.Step(b, last, func(_ context.Context, o *Order) error {
		o.Receipt.Set("paid")
		return nil
	}, loop)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A run of an earlier version is replayed through the migrations of the program: under new
// names visits have to write what they wrote.
func TestEdgesReplayWithMigrations(t *testing.T) {
	file := export(t, edgesGraph(t, "price", "pay", 100), dispatcher.Options{})
	move := pawltest.Migrations(dispatcher.Migration{
		Name: "words", Nodes: map[string]string{"rounds/price": "rounds/cost", "pay": "settle"},
	})
	var without, with, other heard
	pawltest.Replay(&without, file, edgesGraph(t, "cost", "settle", 100))
	if len(without.all) == 0 {
		t.Error("without the migration the replay tells nothing")
	}
	pawltest.Replay(&with, file, edgesGraph(t, "cost", "settle", 100), move)
	if len(with.all) > 0 {
		t.Errorf("with the migration the replay tells %q", with.all)
	}
	pawltest.Replay(&other, file, edgesGraph(t, "cost", "settle", 110), move)
	if len(other.all) == 0 {
		t.Error("another price under the new name is not told")
	}
}

// An option that a call can't use is told, and nothing is tried.
func TestEdgesOptionsThatAreNotForTheCall(t *testing.T) {
	g := edgesGraph(t, "price", "pay", 100)
	var replay, crash heard
	pawltest.Replay(&replay, "no file", g, pawltest.World(func() any { return nil }))
	replay.expect(t, "pawltest: Replay takes Migrations and SinceChange alone")
	pawltest.Crash(&crash, g, nil, pawltest.Migrations(dispatcher.Migration{Name: "m"}))
	crash.expect(t, "pawltest: Migrations are for Replay")
}

// Dotted are cells whose names in JSON have dots, by themselves and where structs are nested.
type Dotted struct {
	Itself state.Value[int] `json:"a.b"`
	Nested struct {
		Deep state.Value[int] `json:"c.d"`
	} `json:"n"`
}

// A cell is looked at, however it is called in JSON.
func TestEdgesCellsWithDots(t *testing.T) {
	for name, set := range map[string]func(*Dotted, int){
		"a.b":   func(s *Dotted, n int) { s.Itself.Set(n) },
		"n.c.d": func(s *Dotted, n int) { s.Nested.Deep.Set(n) },
	} {
		var h heard
		pawltest.Crash(&h, counting(t, set), nil)
		h.expect(t, "two runs without a crash differ: cell "+name+" was 1, is 2")
	}
}

// A state that is one plain struct is compared as well.
func TestEdgesAWholeState(t *testing.T) {
	type plan struct{ Days int }
	var h heard
	pawltest.Crash(&h, counting(t, func(s *state.Whole[plan], n int) { s.Set(plan{n}) }), nil)
	h.expect(t, `two runs without a crash differ: cell state was {"Days":1}, is {"Days":2}`)
}

// A world that panics is told, and does not end the tests of a whole package: it is looked at in
// goroutines of the run.
func TestEdgesAWorldThatPanics(t *testing.T) {
	var h heard
	pawltest.Crash(&h, edgesGraph(t, "price", "pay", 100), nil, pawltest.World(func() any { panic("no connection") }))
	h.expect(t, "the world can't be told: panic: no connection")
}

// What is told of a long text ends with a whole letter.
func TestEdgesLongTextsAreUTF8(t *testing.T) {
	var h heard
	pawltest.Crash(&h, counting(t, func(o *Order, n int) { o.Receipt.Set(fmt.Sprint("r", n) + strings.Repeat("é", 150)) }), nil)
	h.expect(t, "two runs without a crash differ: cell Receipt was")
	if text := strings.Join(h.all, ""); !utf8.ValidString(text) {
		t.Errorf("told: %q", text)
	}
}

// Without a T nobody could be told what is wrong: the panic says what to give.
func TestEdgesNilT(t *testing.T) {
	g := edgesGraph(t, "price", "pay", 100)
	for call, try := range map[string]func(){
		"Crash":  func() { pawltest.Crash(nil, g, nil) },
		"Replay": func() { pawltest.Replay(nil, "no file", g) },
	} {
		func() {
			defer func() {
				if told := fmt.Sprint(recover()); told != "pawltest: "+call+": the T is nil: give it the *testing.T of the test" {
					t.Errorf("%s panicked with %s", call, told)
				}
			}()
			try()
		}()
	}
}

// counting is a graph of a node that no two runs agree about: set is told how often it has run.
func counting[S any](t *testing.T, set func(s *S, ran int)) *dag.Graph[S] {
	t.Helper()
	ran := 0
	b := dag.New[S]("counting")
	dag.Step(b, "count", func(_ context.Context, s *S) error {
		ran++
		set(s, ran)
		return nil
	})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}
