package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// crashes is how often the run is killed: PAWL_CRASHES times, by default 25.
func crashes(t *testing.T) int {
	text := os.Getenv("PAWL_CRASHES")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PAWL_CRASHES is %q, not a number", text)
	}
	return n
}

// killed are the questions of runs that are killed: one for each way through the graph.
var killed = []string{
	labyrinth, labyrinth, labyrinth, "What is Dune about?", "books by Jorge Luis Borges", "books like Dune",
	"the best books about the sea", "What did I ask before?", "a book about zzyzx",
}

// A run that is killed at any moment goes on: it comes to the same answer, and no visit that was
// durable runs again.
func TestKilledAtRandomMoments(t *testing.T) {
	began := time.Now()
	wants := map[string]report{}
	for _, question := range killed {
		if _, ok := wants[question]; !ok {
			wants[question] = archivist(t, "-store", t.TempDir(), "-json", "-slow", "20ms", question).exits(t, 0).report(t)
		}
	}
	opening := time.Since(began) / time.Duration(2*len(wants))
	seed := uint64(began.UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	stages := map[string]int{}
	for range crashes(t) {
		question := killed[random.IntN(len(killed))]
		want := wants[question]
		var m instant
		if random.IntN(5) == 0 { // the store is no older than the run: it is killed while it is made too
			m.after = time.Duration(random.Int64N(int64(opening)))
		} else {
			m.line = `^  ` + want.Nodes[random.IntN(len(want.Nodes))].Path + ` +done`
			m.after = time.Duration(random.Int64N(int64(25 * time.Millisecond)))
		}
		stages[testKilled(t, m, question, random.IntN(2) == 0, want)]++
	}
	for _, stage := range slices.Sorted(maps.Keys(stages)) {
		t.Logf("%3d times killed while the run was %s", stages[stage], stage)
	}
}

// An instant says when a program is killed: some time after a line of its progress, or after it
// began.
type instant struct {
	line  string
	after time.Duration
}

// testKilled kills a run, has it go on, strictly if it can be, and tells where it was when it was
// killed.
func testKilled(t *testing.T, m instant, question string, strict bool, want report) (stage string) {
	t.Helper()
	store := t.TempDir()
	kill(t, m, "-store", store, "-slow", "20ms", "-run", "r", question)
	before, status := durable(t, store, "r")

	args := []string{"-store", store, "-json", "-run", "r", question}
	if strict && status != "" && status != checkpoint.StatusCompleted {
		args = []string{"-store", store, "-json", "-run", "r", "-resume"}
	}
	r := archivist(t, args...).exits(t, 0).report(t)
	if r.Answer != want.Answer || !slices.Equal(r.Citations, want.Citations) {
		t.Errorf("%q killed at %v: the answer is\n%s\nwant\n%s", question, m, r.Answer, want.Answer)
	}
	executed := paths(r.Nodes)
	for _, path := range before {
		if slices.Contains(executed, path) {
			t.Errorf("killed at %v: %s was durable and ran again", m, path)
		}
	}
	if all, status := durable(t, store, "r"); !sameSet(all, paths(want.Nodes)) || status != checkpoint.StatusCompleted {
		t.Errorf("killed at %v: the log of the %s run has %q, want each visit once", m, status, all)
	}
	if status == "" {
		return "absent"
	}
	return fmt.Sprintf("%s with %2d of %d visits done", status, len(before), len(want.Nodes))
}

// kill runs the program and kills it, as kill -9 does, unless it ends before.
func kill(t *testing.T, m instant, args ...string) {
	t.Helper()
	r := start(t, command(t, args...))
	if m.line != "" {
		r.until(t, m.line)
	}
	ended := make(chan outcome, 1)
	go func() { ended <- r.end() }() // received below
	select {
	case <-time.After(m.after):
		_ = r.Process.Kill() // it may have ended just now
		<-ended
	case o := <-ended:
		o.exits(t, 0)
	}
}
