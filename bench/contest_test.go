package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every contender has its window in every round, and the one that begins changes.
func TestContestTakesTurns(t *testing.T) {
	var order []string
	turn := func(name string) contender {
		return func(int) error {
			order = append(order, name)
			return nil
		}
	}
	// No window at all: calibration runs each contender once.
	s := session{rounds: 3}
	all, err := s.contest(turn("a"), turn("b"))
	if err != nil {
		t.Fatal(err)
	}
	want := "a b | a b | b a | a b"
	if got := strings.Join(order, " "); got != strings.ReplaceAll(want, "| ", "") {
		t.Errorf("order %s, want %s", got, want)
	}
	if len(all) != 2 || len(all[0]) != 3 || len(all[1]) != 3 {
		t.Errorf("series %v, want two of three rounds", all)
	}
}

func TestContestStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	s := session{rounds: 3}
	if _, err := s.contest(func(int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("contest = %v, want %v", err, broken)
	}
}

// A thing that takes long is done once in a window, one that is quick as often as fits.
func TestCalibrate(t *testing.T) {
	busy := func(d time.Duration) stage {
		return func(n int) (func() error, func(), error) {
			return func() error {
				for end := time.Now().Add(time.Duration(n) * d); time.Now().Before(end); {
				}
				return nil
			}, nil, nil
		}
	}
	for _, test := range []struct {
		one         time.Duration
		least, most int
	}{{20 * time.Millisecond, 1, 1}, {10 * time.Microsecond, 1, 800}} {
		n, err := calibrate(8*time.Millisecond, busy(test.one).timed)
		if err != nil || n < test.least || n > test.most {
			t.Errorf("calibrate(%v each) = %d, %v; want %d to %d", test.one, n, err, test.least, test.most)
		}
	}
}

// In each round two that write alike write another amount, also where once fills a window. What is
// beside them does not.
func TestAlikeAmounts(t *testing.T) {
	var wrote [3][]int
	stages := make([]stage, len(wrote))
	for i := range wrote {
		stages[i] = contender(func(n int) error {
			wrote[i] = append(wrote[i], n)
			return nil
		}).ready
	}
	s := session{rounds: 6}
	if _, err := s.alike(0, [2]stage(stages[:2]), stages[2]); err != nil { // no window at all: calibration runs each once
		t.Fatal(err)
	}
	for i, want := range [][]int{{1, 1, 3, 1, 3, 2, 2}, {1, 1, 3, 1, 3, 2, 2}, {1, 1, 1, 1, 1, 1, 1}} {
		if !slices.Equal(wrote[i], want) {
			t.Errorf("amounts of %d are %v, want %v", i, wrote[i], want)
		}
	}
}

// Amounts are spread evenly, from half of the usual one to half as much again.
func TestAmounts(t *testing.T) {
	for _, test := range []struct{ rounds, usual, least, most int }{
		{15, 2, 1, 3}, {15, 4, 2, 6}, {15, 28, 14, 42}, {15, 201, 100, 301}, {3, 2, 1, 3}, {1, 2, 1, 1},
	} {
		s := session{rounds: test.rounds}
		often := map[int]int{}
		for round := range s.rounds {
			often[s.amount(test.usual, round)]++
		}
		amounts := slices.Collect(maps.Keys(often))
		counts := slices.Collect(maps.Values(often))
		if slices.Min(amounts) != test.least || slices.Max(amounts) != test.most || slices.Max(counts)-slices.Min(counts) > 1 {
			t.Errorf("of %d rounds, usually %d: %v, want %d to %d", test.rounds, test.usual, often, test.least, test.most)
		}
	}
}

func TestSeries(t *testing.T) {
	long, short := series{110, 220, 330, 440}, series{10, 20, 30, 40}
	if got, want := long.per(short, 10), (series{10, 20, 30, 40}); !slices.Equal(got, want) {
		t.Errorf("per = %v, want %v", got, want)
	}
	if got, want := long.over(short), (series{11, 11, 11, 11}); !slices.Equal(got, want) {
		t.Errorf("over = %v, want %v", got, want)
	}
	if got, want := short.times(0.5), (series{5, 10, 15, 20}); !slices.Equal(got, want) {
		t.Errorf("times = %v, want %v", got, want)
	}
	for q, want := range map[float64]float64{0: 10, 0.5: 25, 0.2: 16, 1: 40} {
		if got := (series{40, 10, 30, 20}).quantile(q); got != want {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if got := (series{7}).median(); got != 7 {
		t.Errorf("median of one = %v, want 7", got)
	}
}

// A missed target says so, whichever side of it is the good one.
func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		row  row
		want bool
	}{
		{atMost("r", series{1}, "ratio", 1, ""), true},
		{atMost("r", series{1.01}, "ratio", 1, ""), false},
		{atLeast("r", series{1}, "ratio", 1, ""), true},
		{atLeast("r", series{0.99}, "ratio", 1, ""), false},
		{shown("r", series{7}, "µs", ""), true},
	} {
		if test.row.OK != test.want {
			t.Errorf("%+v: ok should be %v", test.row, test.want)
		}
	}
}

// The names of the members are what other programs read.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	rows := []row{atMost("chain-10/node", series{0.1, 0.2, 0.3}, "µs", 0.25, "a further node")}
	if err := printJSON(&b, rows); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "chain-10/node", "value": 0.2, "unit": "µs", "target": 0.25, "ok": true}
	for member, v := range want {
		if got[0][member] != v {
			t.Errorf("%s = %v, want %v", member, got[0][member], v)
		}
	}
	if note, _ := got[0]["note"].(string); len(got[0]) != 6 || !strings.Contains(note, "of 3 rounds") {
		t.Errorf("note %q of %d members, want the spread in one of 6", note, len(got[0]))
	}
}

// Only rows whose names begin with a word are measured, and groups that may have such rows.
func TestOnly(t *testing.T) {
	for _, test := range []struct {
		only, name string
		want       bool
	}{
		{"", "chain", true},
		{"chain", "chain-10/node", true},
		{"chain-10", "chain", true},
		{"fan,chain-10", "chain-10/node", true},
		{"chain-10", "chain-100/node", true},
		{"chain-10/", "chain-100/node", false},
		{"fan,memory", "chain", false},
	} {
		var s session
		if test.only != "" {
			s.only = strings.Split(test.only, ",")
		}
		if got := s.wants(test.name); got != test.want {
			t.Errorf("-only %q wants %s: %v", test.only, test.name, got)
		}
	}
}

// A stage is made ready and cleared away outside the clock, for every window anew.
func TestStagesAreFresh(t *testing.T) {
	var told []string
	tell := func(word string) { told = append(told, word) }
	s := session{rounds: 2}
	_, err := s.turns([]int{1}, func(int) (func() error, func(), error) {
		tell("ready")
		return func() error { tell("do"); return nil }, func() { tell("end") }, nil
	})
	if got, want := strings.Join(told, " "), "ready do end ready do end"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// A row is printed if its name begins with a word, though more has to be measured for it. What is
// absent stands for rows whose names are longer.
func TestPrints(t *testing.T) {
	for _, test := range []struct {
		only string
		row  row
		want bool
	}{
		{"memory/superstep-1KB", row{Name: "memory/superstep"}, false},
		{"memory/superstep-1KB", row{Name: "memory/superstep-1KB"}, true},
		{"memory/superstep", row{Name: "memory/superstep-1KB"}, true},
		{"fan,memory", row{Name: "memory/superstep"}, true},
		{"twice/eino", absent("twice", "no go"), true},
		{"twice/eino", absent("rivals", "no go"), false},
	} {
		s := session{only: strings.Split(test.only, ",")}
		if got := s.prints(test.row); got != test.want {
			t.Errorf("-only %q prints %s: %v", test.only, test.row.Name, got)
		}
	}
	if !(session{}).prints(row{Name: "memory/superstep"}) {
		t.Error("a row is not printed, though all are wanted")
	}
}

// A word is wrong if no part can have a row for it, which is told before anything is measured, or
// none had.
func TestWrongWords(t *testing.T) {
	rows := []row{{Name: "chain-10/node"}, absent("twice", "no go")}
	for _, test := range []struct {
		only         string
		known, found bool
	}{
		{"chain", true, true},
		{"chain-10/node,twice/eino", true, true},
		{"chain,chian", false, false},
		{"chain-10/nodes", true, false},
		{"chain,fan", true, false},
	} {
		s := session{only: strings.Split(test.only, ",")}
		if err := s.known(parts); (err == nil) != test.known {
			t.Errorf("-only %s: before measuring %v, want none: %v", test.only, err, test.known)
		}
		if err := s.found(rows); (err == nil) != test.found {
			t.Errorf("-only %s: after measuring %v, want none: %v", test.only, err, test.found)
		}
	}
}

// What a part measured until it failed is not lost, nor what the parts around it do. All errors are
// told.
func TestRowsBesideAnError(t *testing.T) {
	broken, torn := errors.New("broken"), errors.New("torn")
	rows, err := session{quick: true}.measure([]part{
		{"a", func(session) ([]row, error) { return []row{{Name: "a/1"}}, nil }},
		{"b", func(session) ([]row, error) { return []row{{Name: "b/1"}}, broken }},
		{"c", func(session) ([]row, error) { return []row{{Name: "c/1"}}, nil }},
		{"d", func(session) ([]row, error) { return []row{{Name: "e/1"}, {Name: "d/1"}}, nil }},
		{"f", func(session) ([]row, error) { return nil, torn }},
	})
	if want := "b: broken\nd: the name of row \"e/1\" should begin so\nf: torn"; !errors.Is(err, broken) || err.Error() != want {
		t.Errorf("measure = %v, want %s", err, want)
	}
	if want := []row{{Name: "a/1"}, {Name: "b/1"}, {Name: "c/1"}, {Name: "d/1"}}; !slices.Equal(rows, want) {
		t.Errorf("rows %+v, want %+v", rows, want)
	}
}
