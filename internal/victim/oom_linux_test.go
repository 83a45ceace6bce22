package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A pen is a memory cgroup: when what runs in it takes more than its bound the kernel kills it.
type pen struct {
	dir    string
	bound  string // the files: of how much it may have, and of how often the kernel has killed
	killed string
}

// newPen makes a cgroup, or skips the test where that can't be done.
func newPen(t *testing.T) *pen {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make a memory cgroup")
	}
	var errs []error
	for _, p := range []pen{ // of either version
		{bound: "memory.max", killed: "memory.events", dir: "/sys/fs/cgroup"},
		{bound: "memory.limit_in_bytes", killed: "memory.oom_control", dir: "/sys/fs/cgroup/memory"},
	} {
		dir, err := os.MkdirTemp(p.dir, "pawl-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // nobody is in it any more
		p.dir = dir
		if err = p.hold(1 << 30); err == nil {
			_, err = p.kills()
		}
		if err == nil {
			_ = p.write("memory.swap.max", "0") // there may be no swap
			return &p
		}
		errs = append(errs, err)
	}
	t.Skip("making a memory cgroup: ", errors.Join(errs...)) // also if all else is there: root in a container has none
	return nil
}

func (p *pen) write(file, text string) error {
	return os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0)
}

// hold bounds what runs in the pen.
func (p *pen) hold(bytes int) error { return p.write(p.bound, strconv.Itoa(bytes)) }

// kills is how often the kernel has killed somebody in the pen.
func (p *pen) kills() (n int, err error) {
	b, err := os.ReadFile(filepath.Join(p.dir, p.killed))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if number, is := strings.CutPrefix(line, "oom_kill "); is {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, fmt.Errorf("%s does not tell of kills", p.killed)
}

// inside is what a command is to be run with: a shell that goes into the pen and becomes the
// program.
func (p *pen) inside() []string {
	return []string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(p.dir, "cgroup.procs")}
}

// A process that takes more memory than it may have is killed by the kernel, wherever it is, again
// and again: it is as if anybody had killed it. Of PAWL_KILLS=1000 a tenth are such kills: near its
// bound a process takes long.
func TestKilledForWantOfMemory(t *testing.T) {
	t.Parallel()
	in, r, dir := newPen(t), dice(t), filepath.Join(t.TempDir(), "store")
	var p *patient
	var completed, killed, acks int
	for kills := max(1, count("PAWL_KILLS", 40)/10); killed < kills; {
		if p == nil || p.done() {
			p = newPatient(t, dir, fmt.Sprintf("run-%d", completed), "big", r.Int64N(1<<32))
		}
		if err := in.hold(8<<20 + r.IntN(152<<20)); err != nil {
			t.Fatal(err)
		}
		before, _ := in.kills()
		command := p.next()
		e := p.watch(p.command(command, in.inside()...), nil)
		now, err := in.kills()
		if err != nil {
			t.Fatal(err)
		}
		if now > before {
			killed++
		}
		p.ended(command, now > before)
		if !e.well(now > before) {
			t.Errorf("%v: %s: exit status %d, %q: %s", p, command, e.status, e.kinds, e.stderr)
		}
		if err := p.examine(t.Context()); err != nil || t.Failed() {
			t.Fatalf("after %d kills: %v: %v", killed, p, err)
		}
		if p.done() {
			completed, acks = completed+1, acks+p.acks
		}
	}
	acks += p.acks
	p.heal()
	t.Logf("%d kills: %d runs, %d checkpoints acknowledged by who was in the pen", killed, completed+1, acks)
	if acks == 0 {
		t.Error("nothing was acknowledged before a kill")
	}
}
