package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// What every graph comes to is what the same work in a plain loop comes to.
func TestGraphsEndAsTheirReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, graph := range []string{"line50", "diamond", "fan200", "loop1000", "hitl"} {
		p := newPatient(t, dir, graph, graph, 7)
		p.heal()
		if p.acks != len(p.want)-1 {
			t.Errorf("%v: %d checkpoints were acknowledged, want %d", p, p.acks, len(p.want)-1)
		}
		e := p.watch(p.command("verify"), nil)
		if e.status != 0 || e.at != len(p.want)-1 {
			t.Errorf("verify of %v: exit status %d, superstep %d: %s", p, e.status, e.at, e.stderr)
		}
		if e := p.watch(p.command("resume"), nil); e.status != 0 || !e.done {
			t.Errorf("resume of %v, which is completed: exit status %d: %s", p, e.status, e.stderr)
		}
	}
}

// The word and the exit status tell how a call has ended.
func TestEndsOfTheVictim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	panics, asks := newPatient(t, dir, "panics", "panic", 1), newPatient(t, dir, "asks", "hitl", 1)
	for _, c := range []struct {
		p       *patient
		command string
		status  int
		kinds   []string
	}{
		{panics, "resume", 1, []string{"not-found"}},
		{panics, "start", rests, []string{"panic"}},
		{panics, "start", 1, []string{"exists"}},
		{panics, "resume", rests, []string{"panic"}},
		{panics, "answer", 1, []string{"not-awaited"}},
		{asks, "start", rests, []string{"interrupted"}},
		{asks, "cancel", 0, nil},
		{asks, "answer", 0, nil},
		{asks, "resume", 0, nil},
		{asks, "cancel", 1, []string{"completed"}},
		{asks, "jump", usage, nil},
	} {
		if e := c.p.watch(c.p.command(c.command), nil); e.status != c.status || !slices.Equal(e.kinds, c.kinds) {
			t.Errorf("%s %v: exit status %d, %q, want %d, %q: %s", c.command, c.p, e.status, e.kinds, c.status, c.kinds, e.stderr)
		}
	}
	if e := panics.watch(panics.command("resume"), nil); !slices.Equal(e.attempts, []int{3}) {
		t.Errorf("the third attempt is called %v", e.attempts)
	}
}

// verify says wrong, and no more, of a run that is not as its reference is.
func TestVerifyOfAnotherSeed(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir(), "run", "diamond", 1)
	p.heal()
	another := newPatient(t, p.dir, p.run, p.graph, 2)
	another.want = p.want
	if e := another.watch(another.command("verify"), nil); e.status != 1 || !slices.Equal(e.kinds, []string{"wrong"}) || e.at != 3 {
		t.Errorf("exit status %d, %q, at superstep %d, want 1, wrong, 3: %s", e.status, e.kinds, e.at, e.stderr)
	}
}

// Whatever of a run differs from its reference is told.
func TestReadingsThatAreWrong(t *testing.T) {
	want := reference("diamond", 1)
	for what, spoil := range map[string]func(*reading){
		"wrong: a finding":                     func(r *reading) { r.Findings = []string{"a finding"} },
		"wrong: 4 supersteps":                  func(r *reading) { r.Checkpoints = append(r.Checkpoints, want[3]) },
		"wrong: superstep 2 has":               func(r *reading) { r.Checkpoints[1] = want[1] },
		"wrong: the run is at superstep 2":     func(r *reading) { r.Superstep = 2 },
		"wrong: the state has the digest":      func(r *reading) { r.Digest = want[2] },
		"wrong: completed at superstep 2 of 3": func(r *reading) { r.Checkpoints, r.Superstep, r.Digest = r.Checkpoints[:2], 2, want[2] },
		"":                                     func(*reading) {},
	} {
		r := reading{Status: checkpoint.StatusCompleted, Superstep: 3, Digest: want[3], Checkpoints: slices.Clone(want[1:])}
		spoil(&r)
		if err := r.check(want); (err == nil) != (what == "") || err != nil && !strings.HasPrefix(err.Error(), what) {
			t.Errorf("check = %v, want %q", err, what)
		}
	}
}

// A command line as it can't be is told, opens nothing, and is status 2.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := "badger:" + filepath.Join(dir, "store")
	for want, args := range map[string][]string{
		`"" is no command`:      nil,
		`"jump" is no command`:  {"jump", "-store", store, "-graph", "line50"},
		`-store "": use badger`: {"start", "-graph", "line50"},
		`-store "pebble:x"`:     {"start", "-store", "pebble:x", "-graph", "line50"},
		`-graph "line51"`:       {"start", "-store", store, "-graph", "line51"},
		`"more" is too much`:    {"start", "-store", store, "-graph", "line50", "more"},
		"not defined: -sead":    {"start", "-store", store, "-graph", "line50", "-sead", "7"},
	} {
		var stdout, stderr strings.Builder
		if status := run(t.Context(), args, &stdout, &stderr); status != usage || stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit status %d, %q, want %d, %q", args, status, stderr.String(), usage, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
}

// A dump tells the digest of every checkpoint, and what is not done again.
func TestDump(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir(), "run", "diamond", 3)
	p.heal()
	text, err := p.command("dump").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r reading
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Status != checkpoint.StatusCompleted || !slices.Equal(r.Checkpoints, p.want[1:]) || len(r.Done) != 4 ||
		!strings.HasPrefix(string(r.State), "{\n    \"Seed\": 3,\n    \"Steps\": 4,") {
		t.Errorf("dump tells %s", text)
	}
}

// A signal cancels, and the call returns in time though the node that is at work does not heed it.
func TestStubbornNodeIsLeft(t *testing.T) {
	t.Parallel()
	var p *patient
	var e end
	var struck bool
	for range 3 { // what the call has for the disk at the end of its grace period is a quarter of a second
		p = newPatient(t, t.TempDir(), "run", "stubborn", 1, "-grace", "2s", "-unsynced")
		e, struck = p.strike(p.command("start"), moment{lines: 3, after: time.Minute}, func(cmd *exec.Cmd) {
			_ = cmd.Process.Signal(syscall.SIGTERM) // if it does not come there is no end
		})
		if !slices.Equal(e.kinds, []string{"stuck"}) {
			break
		}
	}
	if !struck || e.status != rests || !slices.Equal(e.kinds, []string{"cancelled"}) || e.at != 1 {
		t.Errorf("exit status %d, %q, at superstep %d, want %d, cancelled, 1: %s", e.status, e.kinds, e.at, rests, e.stderr)
	}
	if err := p.examine(t.Context()); err != nil {
		t.Error(err)
	}
}

// What checkpoint.Verify finds is told by dump, and is wrong for verify, though every checkpoint is
// as the reference has it: here a graph that is not the one that the run names.
func TestFindingsAreWrong(t *testing.T) {
	t.Parallel()
	healed := newPatient(t, filepath.Join(t.TempDir(), "from"), "run", "diamond", 1)
	healed.heal()
	p := newPatient(t, filepath.Join(t.TempDir(), "to"), "run", "diamond", 1)
	p.acked = len(p.want) - 1
	transplant(t, healed, p.dir)
	if e := p.watch(p.command("verify"), nil); e.status != 1 || !slices.Equal(e.kinds, []string{"wrong"}) || e.at != p.acked {
		t.Errorf("verify: exit status %d, %q, at superstep %d, want 1, wrong, %d: %s", e.status, e.kinds, e.at, p.acked, e.stderr)
	}
	text, err := p.command("dump").Output()
	var r reading
	if err := errors.Join(err, json.Unmarshal(text, &r)); err != nil || len(r.Findings) != 1 || !slices.Equal(r.Checkpoints, p.want[1:]) {
		t.Errorf("dump tells the findings %q, %v, want one, in %s", r.Findings, err, text)
	}
	if err := p.examine(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "wrong: ") {
		t.Errorf("examine = %v, want what is wrong", err)
	}
}

// transplant restores a run in a store of another directory, which has another graph under the name
// of the run's.
func transplant(t *testing.T, p *patient, dir string) {
	t.Helper()
	ctx := t.Context()
	from, err := badgerstore.Open(ctx, p.dir, badgerstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to, err := badgerstore.Open(ctx, dir, badgerstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := to.Acquire(ctx, p.run, "surgeon")
	if err != nil {
		t.Fatal(err)
	}
	info, err := to.Restore(ctx, l, checkpoint.Archive{Envelopes: from.Envelopes(ctx, p.run)})
	if err := errors.Join(err, to.PutGraph(ctx, info.Digest, []byte(`{}`)), from.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
}

// Behind a kill the next command is one that can't be refused for what the process that was killed
// has posted, however many are killed.
func TestTheNextCommandBehindKills(t *testing.T) {
	t.Parallel()
	p := &patient{status: checkpoint.StatusInterrupted, waits: 1}
	for i, c := range []struct {
		command string
		killed  bool
	}{
		{"answer", true}, {"resume", true}, {"resume", true}, {"resume", false}, // nothing was posted
		{"answer", true}, {"resume", false}, {"answer", false},
	} {
		if got := p.next(); got != c.command {
			t.Fatalf("command %d is %s, want %s", i, got, c.command)
		}
		p.ended(c.command, c.killed)
	}
}

// A process that was to be killed and has ended otherwise is looked at: a panic says nothing but to
// standard error.
func TestHowAProcessMayEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e            end
		killed, well bool
	}{
		{end{status: 0}, false, true},
		{end{status: rests, kinds: []string{"interrupted"}}, false, true},
		{end{status: -1}, true, true},
		{end{status: -1}, false, false}, // by a signal of its own
		{end{status: 2}, false, false},  // a panic
		{end{status: 2}, true, false},
		{end{status: rests, kinds: []string{"failed"}}, false, false},
		{end{status: 1, kinds: []string{"interrupted", "full"}}, false, false},
	} {
		if got := c.e.well(c.killed); got != c.well {
			t.Errorf("%+v: it is well: %t", c, got)
		}
	}
}
