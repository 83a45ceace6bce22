//go:build rivals

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Of a rival is told what it takes, and how many times as long as pawl that is; the rest of a
// window doesn't count.
func TestCompare(t *testing.T) {
	takes := func(d time.Duration) probe {
		return func(n int) (time.Duration, error) { return time.Duration(n) * d, nil }
	}
	rows, err := session{rounds: 3}.compare(0, comparison{
		name:  "chain-10",
		each:  "a node",
		per:   10,
		first: entrant{"pawl", "", takes(20 * time.Microsecond)},
		rest:  []entrant{{"other", "with a map", takes(300 * time.Microsecond)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []row{
		{"rivals/chain-10/pawl", 2, "µs", nil, true, "a node; 2 to 2 in the middle 60% of 3 rounds"},
		{"rivals/chain-10/other", 30, "µs", nil, true,
			"15 times pawl (15 to 15); with a map; 30 to 30 in the middle 60% of 3 rounds"},
	}
	for i, w := range want {
		if i >= len(rows) || rows[i] != w {
			t.Errorf("rows %+v, want %+v", rows, want)
		}
	}
}

func TestCompareNamesWhoFailed(t *testing.T) {
	broken := errors.New("broken")
	_, err := session{rounds: 3}.compare(0, comparison{
		name:  "fan",
		first: entrant{"pawl", "", func(int) (time.Duration, error) { return 0, broken }},
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "fan: pawl") {
		t.Errorf("compare = %v, want one that says fan and pawl", err)
	}
}

// Eino runs every node of what it is timed with once, also over interrupts.
func TestEinoCounts(t *testing.T) {
	for _, mode := range einoModes {
		t.Run(mode.name, func(t *testing.T) {
			chain, err := mode.chain(3)
			try(t, "chain", chain, err)
			fan, err := mode.fan(3)
			try(t, "fan", fan, err)
			store, err := openBare(session{dir: t.TempDir()}, 1, true)
			if err != nil {
				t.Fatal(err)
			}
			defer store.db.Close()
			durable, err := mode.durable(3)
			try(t, "durable", func(n int) error { return durable(store, n) }, err)
			question, err := mode.question(3)
			try(t, "question", func(n int) error {
				took, err := question(n)
				if err == nil && took <= 0 {
					t.Errorf("%d questions took %v", n, took)
				}
				return err
			}, err)
		})
	}
}

func try(t *testing.T, name string, c contender, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := c(2); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// Without what it needs LangGraph.js is absent by name, wherever it would have a row, and nobody
// takes part for it. Who asks for that row is told why there is none.
func TestLangGraphAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	l, err := startLangGraph(t.TempDir())
	if l != nil || err == nil {
		t.Fatalf("startLangGraph = %v, %v; want that node is not there", l, err)
	}
	s := session{rounds: 1, only: []string{"rivals/chain-10/langgraph"}}
	all := &table{session: s, gone: err, rows: l.absentSavers()}
	pawl := entrant{"pawl", "", func(n int) (time.Duration, error) { return time.Duration(n), nil }}
	for _, name := range []string{"chain-10", "fan-100"} {
		if err := all.add(0, comparison{name: name, per: 1, first: pawl}); err != nil {
			t.Fatal(err)
		}
	}
	if len(all.rows) != 2 || all.rows[0] != absent("rivals/chain-10/langgraph", "node is not there") {
		t.Errorf("rows %+v, want one that says that node is not there, and one of pawl", all.rows)
	}
	if err := s.found(all.rows); err != nil {
		t.Error(err)
	}
	if es := append(l.entrants(request{Graph: "chain"}, ""), l.durable(3)...); len(es) != 0 {
		t.Errorf("entrants %v, want none", es)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// Each saver whose checkpoints nothing keeps has a row, and does not take part.
func TestSaversAbsent(t *testing.T) {
	l := new(langGraph)
	l.there.Absent = map[string]string{"sqlite": "no library", "postgres": "no database"}
	var got []string
	for _, r := range l.absentSavers() {
		got = append(got, r.Name+": "+r.Note)
	}
	want := []string{
		"rivals/durable-step/langgraph-sqlite: no library",
		"rivals/durable-step/langgraph-sqlite-full: no library",
		"rivals/durable-step/langgraph-postgres: no database",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if es := l.durable(3); len(es) != 1 || es[0].name != "langgraph-memory" {
		t.Errorf("entrants %v, want langgraph-memory alone", es)
	}
}
