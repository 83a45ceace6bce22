package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/pawlgo/pawl/internal/lacking"
)

// A drive is a small file system in memory.
type drive struct {
	t     *testing.T
	mount string
}

// newDrive makes a drive of so many bytes, or skips the test where that can't be done.
func newDrive(t *testing.T, bytes int) *drive {
	t.Helper()
	d := &drive{t, t.TempDir()}
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a small file system")
	}
	if err := syscall.Mount("pawl", d.mount, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		lacking.Skip(t, "mounting a small file system: ", err)
	}
	t.Cleanup(d.remove)
	return d
}

func (d *drive) remove() { _ = syscall.Unmount(d.mount, syscall.MNT_DETACH) }

// patient returns a run whose store is on the drive.
func (d *drive) patient(graph string) *patient {
	return newPatient(d.t, filepath.Join(d.mount, "store"), "run", graph, 1)
}

// fill writes a file beside the store until no byte is left.
func (d *drive) fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.mount, "ballast"))
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Error("filling the drive: ", err)
	}
	_ = f.Close()
}

// grow makes room.
func (d *drive) grow() {
	d.t.Helper()
	if err := syscall.Mount("pawl", d.mount, "tmpfs", syscall.MS_REMOUNT, "size=160m"); err != nil {
		d.t.Fatal(err)
	}
}

// full holds an end against what a full disk allows: a typed error, and the run as it was
// acknowledged.
func (p *patient) full(e end) {
	p.t.Helper()
	other := func(kind string) bool { return kind != "full" }
	if e.status != 1 || len(e.kinds) == 0 || slices.ContainsFunc(e.kinds, other) {
		p.t.Errorf("%v: exit status %d, %q, want 1 and full: %s", p, e.status, e.kinds, e.stderr)
	}
	if e.at < p.acked {
		p.t.Errorf("%v: the full store is at %d, and acknowledged %d", p, e.at, p.acked)
	}
}

// completed holds the end of a process that has said that its run is completed: it has closed the
// store, or could not, for want of room, and the run is there.
func (p *patient) completed(d *drive, e end) {
	p.t.Helper()
	if e.at = p.acked; e.status != 0 || len(e.kinds) > 0 {
		p.full(e)
	}
	d.grow()
	if err := p.examine(p.t.Context()); err != nil || !p.done() {
		p.t.Errorf("%v: completed, and then it is %s: %v", p, p.status, err)
	}
}

// On a disk of any size that is full at some moment the process lives and says so, the run can be
// read as it was acknowledged, and is completed when there is room. PAWL_EACH=1 tries each size
// from 4 to 40 MiB in steps of 64 KiB, PAWL_EACH=2 every second one.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	sizes := []int{4 << 20, 12 << 20, 16 << 20, 20 << 20, 24 << 20, 27 << 20, 40 << 20}
	if each := count("PAWL_EACH", 0); each > 0 {
		sizes = nil
		for size := 4 << 20; size <= 40<<20; size += each * 64 << 10 {
			sizes = append(sizes, size)
		}
	}
	want := reference("big", 1)
	ends := make(map[string]int)
	for _, size := range sizes {
		if ends[fillDrive(t, size, want)]++; t.Failed() {
			t.Fatalf("on a disk of %d bytes", size)
		}
	}
	t.Logf("%d sizes: %v", len(sizes), ends)
	if ends["full at work"] == 0 || ends["refused"] == 0 || ends["completed"] == 0 {
		t.Errorf("no disk was full at work, none refused, or none large enough: %v", ends)
	}
}

// fillDrive runs a run on a drive of that size, and tells what came of it there.
func fillDrive(t *testing.T, size int, want []string) string {
	d := newDrive(t, size)
	defer d.remove()
	p := d.patient("big")
	p.want = want
	e := p.watch(p.command("start"), nil)
	if e.done {
		p.completed(d, e)
		return "completed"
	}
	how := "full at work"
	if e.at < 0 && p.acked == 0 {
		e.at, how = 0, "refused"
	}
	p.full(e)
	d.fill()
	e = p.watch(p.command("verify"), nil)
	e.at = p.acked // nothing can be read where nothing can be opened
	p.full(e)
	d.grow()
	if err := p.examine(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if how != "refused" {
		p.heal()
	}
	return how
}

// Somebody else fills the disk to the last byte while a run is at work: the process lives and says
// that it is full, closing the store included, and the run goes on from what was acknowledged when
// there is room.
func TestDiskFilledBySomebodyElse(t *testing.T) {
	t.Parallel()
	d := newDrive(t, 64<<20)
	p := d.patient("slow")
	p.flags = append(p.flags, "-hold", "4")
	cmd, release := p.held("start") // else it may have ended before the disk is full
	e, _ := p.strike(cmd, moment{lines: 4, after: time.Minute}, func(*exec.Cmd) {
		d.fill()
		release()
	})
	p.full(e)
	d.grow()
	if err := p.examine(t.Context()); err != nil {
		t.Errorf("with room again: %v", err)
	}
	p.heal()
}
