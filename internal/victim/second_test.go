package main

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A second process is refused while the first has the store, and does not wait for it. It can open
// the store as soon as the first has died, whose run it goes on with.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	p := newPatient(t, t.TempDir(), "run", "slow", 1, "-hold", "4")
	first, release := p.held("start") // else it may have ended before all this has been tried
	defer release()
	p.strike(first, moment{lines: 4, after: time.Minute}, func(cmd *exec.Cmd) {
		defer kill(cmd)
		refused := time.Hour // the fastest: the machine may have other work
		for range 3 {
			began := time.Now()
			if _, err := badgerstore.Open(t.Context(), p.dir, badgerstore.Options{}); !errors.Is(err, checkpoint.ErrLocked) {
				t.Errorf("Open beside a process that has the store open = %v, want ErrLocked", err)
			}
			refused = min(refused, time.Since(began))
		}
		if refused > 10*time.Second {
			t.Errorf("to be refused took %v: it waits", refused)
		}
		if e := p.watch(p.command("verify"), nil); e.status != 1 || len(e.kinds) != 1 || e.kinds[0] != "locked" {
			t.Errorf("a second process: exit status %d, %q: %s", e.status, e.kinds, e.stderr)
		}
	})
	if err := p.examine(t.Context()); err != nil {
		t.Error(err)
	}
	p.heal()
}
