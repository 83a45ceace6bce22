package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// A process is killed at some moment, again and again, while the store writes its tables: the store
// opens, what was acknowledged is there, nothing is torn, no visit whose entry is durable begins
// again, and what comes of each run is what comes of the reference. PAWL_KILLS=1000 kills so often.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	modes := map[string][]string{"synced": nil, "unsynced": {"-unsynced"}, "ahead of the disk": {"-lag", "8"}}
	for mode, flags := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			killAgainAndAgain(t, max(1, count("PAWL_KILLS", 30)/len(modes)), flags)
		})
	}
}

// killsOfStore are the kills of one store: enough for many tables, compactions and values
// collected, and few enough that opening, which checks every table, leaves time for killing.
const killsOfStore = 100

func killAgainAndAgain(t *testing.T, kills int, flags []string) {
	r := dice(t)
	for from := 0; from < kills; from += killsOfStore {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(from))
		killStore(t, r, dir, min(killsOfStore, kills-from), flags)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// killStore kills the processes that run one run after another in one store.
func killStore(t *testing.T, r *rand.Rand, dir string, kills int, flags []string) {
	killable := []string{"big", "line50", "diamond", "fan200", "loop1000", "hitl", "slow"}
	var p *patient
	var completed, killed, opens, acks, nodes, written int
	for killed < kills {
		if p == nil || p.done() {
			p = newPatient(t, dir, fmt.Sprintf("run-%d", completed), killable[completed%len(killable)], r.Int64N(1<<32), flags...)
		}
		_, before := tables(t, dir)
		command := p.next()
		e, struck := p.strike(p.command(command), someMoment(r), kill)
		if struck {
			killed++
			_, behind := tables(t, dir)
			written += behind - before
		}
		p.ended(command, struck)
		if !e.well(struck) {
			t.Errorf("%v: %s: exit status %d, %q: %s", p, command, e.status, e.kinds, e.stderr)
		}
		opens++
		if err := p.examine(t.Context()); err != nil || t.Failed() {
			t.Fatalf("after %d kills: %v: %v", killed, p, err)
		}
		if p.done() {
			completed, acks, nodes = completed+1, acks+p.acks, nodes+p.nodes
		}
	}
	p.heal()
	n, last := tables(t, dir)
	t.Logf("%d kills, %d times opened: %d runs, %d acknowledged checkpoints and %d visits held; %d tables of %d, %d written by who was killed",
		killed, opens, completed+1, acks+p.acks, nodes+p.nodes, n, last, written)
	if kills == killsOfStore && written == 0 { // of few it may be that none has
		t.Error("nobody who was killed has written a table")
	}
}

// well reports whether a process that may have been killed had nothing to say against it: it has
// ended as the run rests, and not in a panic either, of which it says nothing but to standard
// error.
func (e *end) well(killed bool) bool {
	if len(e.kinds) > 0 && e.kinds[0] != "interrupted" {
		return false
	}
	return e.status == 0 || e.status == rests || killed && e.status == -1
}
