package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// What every graph comes to is what the same work in a plain loop comes to.
func TestGraphsEndAsTheirReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, graph := range []string{"line50", "diamond", "fan200", "loop1000", "hitl"} {
		p := newPatient(t, dir, graph, graph, 7)
		p.heal()
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
	p := newPatient(t, t.TempDir(), "run", "stubborn", 1, "-grace", "300ms")
	e, struck := p.strike(p.command("start"), moment{lines: 3, after: time.Minute}, func(cmd *exec.Cmd) {
		_ = cmd.Process.Signal(syscall.SIGTERM) // if it does not come there is no end
	})
	if !struck || e.status != rests || !slices.Equal(e.kinds, []string{"cancelled"}) || e.at != 1 {
		t.Errorf("exit status %d, %q, at superstep %d, want %d, cancelled, 1: %s", e.status, e.kinds, e.at, rests, e.stderr)
	}
	if err := p.examine(t.Context()); err != nil {
		t.Error(err)
	}
}
