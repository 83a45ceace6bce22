package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/internal/lacking"
)

// A disk is a file system of its own, in an image file, whose power can be cut.
type disk struct {
	t            *testing.T
	image, mount string
}

// newDisk makes a disk. The test is skipped where that can't be done.
func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		lacking.Skip(t, "only root can mount a file system whose power can be cut")
	}
	dir := t.TempDir()
	d := &disk{t: t, image: filepath.Join(dir, "image"), mount: filepath.Join(dir, "mount")}
	if err := errors.Join(os.WriteFile(d.image, nil, 0o600), os.Truncate(d.image, 512<<20), os.Mkdir(d.mount, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		lacking.Skip(t, "a file system whose power can be cut needs loop devices: ", err)
	}
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", d.image).CombinedOutput(); err != nil {
		lacking.Skip(t, fmt.Sprintf("a file system whose power can be cut needs mkfs.ext4: %v: %s", err, out))
	}
	if err := d.attach(); err != nil {
		lacking.Skip(t, "a file system whose power can be cut: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(d.mount, syscall.MNT_DETACH) })
	return d
}

// attach mounts the disk. It tries for a minute: the kernel lets go of a loop device some time
// after it was unmounted.
func (d *disk) attach() error {
	for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
		out, err := exec.CommandContext(d.t.Context(), "mount", "-o", "loop", d.image, d.mount).CombinedOutput()
		if err == nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("mounting: %w: %s", err, out)
		}
	}
}

// cut ends the file system as the end of its power would: nothing that is not on the disk gets
// there.
func (d *disk) cut() error {
	const shutdown, noFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH
	f, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	flag := uint32(noFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&flag))); errno != 0 {
		return errno
	}
	return nil
}

// restart mounts the disk anew, after a cut.
func (d *disk) restart() {
	d.t.Helper()
	err := syscall.Unmount(d.mount, 0)
	for began := time.Now(); errors.Is(err, syscall.EBUSY) && time.Since(began) < time.Minute; {
		<-time.After(10 * time.Millisecond) // what this process forks has its files until it runs its program
		err = syscall.Unmount(d.mount, 0)
	}
	if err != nil {
		d.t.Fatal("unmounting: ", err)
	}
	if err := d.attach(); err != nil {
		d.t.Fatal(err)
	}
}

// The power is cut at some moment, again and again. A synced store opens, and nothing that was
// acknowledged is lost. One that is not comes back at an earlier checkpoint, or is refused as
// damaged; it is never another one. PAWL_CUTS=200 cuts so often.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	for mode, flags := range map[string][]string{
		"synced": nil, "synced, ahead of the disk": {"-lag", "8"}, "unsynced": {"-unsynced"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cutAgainAndAgain(t, newDisk(t), count("PAWL_CUTS", 3), mode != "unsynced", flags)
		})
	}
}

func cutAgainAndAgain(t *testing.T, d *disk, cuts int, synced bool, flags []string) {
	r := dice(t)
	graphs := []string{"line50", "big", "fan200", "loop1000", "slow"}
	var p *patient
	var cut, runs, stores, earlier, refused, acks int
	for cut < cuts {
		if p == nil || p.done() {
			p = newPatient(t, filepath.Join(d.mount, fmt.Sprint("store-", stores)), fmt.Sprint("run-", runs),
				graphs[runs%len(graphs)], r.Int64N(1<<32), flags...)
			runs++
		}
		before := p.acks
		e, struck := p.strike(p.command(p.next()), someMoment(r), func(cmd *exec.Cmd) {
			if err := d.cut(); err != nil {
				t.Errorf("cutting the power: %v", err)
			}
			kill(cmd)
		})
		acks += p.acks - before
		if struck {
			cut++
			d.restart()
		} else if !e.well(false) {
			t.Errorf("%v: exit status %d, %q: %s", p, e.status, e.kinds, e.stderr)
		}
		err := p.examine(t.Context())
		if !synced && isLate(err) {
			earlier++ // it has to go on from there
			p.acked = 0
			err = p.examine(t.Context())
		}
		if !synced && errors.Is(err, checkpoint.ErrCorrupt) {
			refused++
			stores++
			p, err = nil, nil
		}
		if err != nil || t.Failed() {
			t.Fatalf("after %d cuts: %v: %v", cut, p, err)
		}
	}
	if p != nil {
		p.heal()
	}
	t.Logf("%d cuts: %d runs, %d acknowledged checkpoints held; %d times it came back earlier, %d times it was refused",
		cut, runs, acks, earlier, refused)
}
