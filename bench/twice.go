package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// The work that is killed: stages, one after the other, of so many visits side by side.
const (
	stagesOfWork = 40
	sideBySide   = 8
	visitsNeeded = stagesOfWork * sideBySide
)

// twice counts how much of the same work is done again when the process that does it is killed at
// random moments, a thousand times in all, beside a loop that begins again from the start. The
// moments are the same for both: after so many visits, by an exponential distribution. Most kills are
// of a store that refuses everything from that moment on; some are of a process, by SIGKILL.
func twice(s session) ([]row, error) {
	kills := s.scale(200, 5) // for each frequency
	random := rand.New(rand.NewPCG(7, 7))
	worst, total := 0, 0
	var ours, theirs float64
	for _, often := range []float64{0.5, 1, 2, 4, 8} {
		mean := visitsNeeded / often
		var t tally
		for t.kills < kills {
			if err := t.survive(func() int { return 1 + int(random.ExpFloat64()*mean) }); err != nil {
				return nil, err
			}
		}
		worst, total = max(worst, t.again), total+t.kills
		ours = float64(t.executed) / float64(t.works*visitsNeeded)
		theirs = retried(s.scale(100, 5), func() int { return 1 + int(random.ExpFloat64()*mean) })
		s.charts.twice.point("pawl", often, ours)
		s.charts.twice.point("a loop that begins again", often, theirs)
	}
	rows := []row{
		atMost("twice/again-after-one-kill", series{float64(worst)}, "visits", sideBySide,
			"the most that was executed again after one of %d kills; up to %d visits were in flight", total, sideBySide),
		shown("twice/executed-to-needed", series{ours}, "ratio", "8 kills in the time that the work takes: visits executed to %d needed", visitsNeeded),
		shown("twice/retry-loop", series{theirs}, "ratio", "the same for a loop that begins again from the start"),
	}
	real, err := killedForReal(s, s.scale(50, 2))
	return append(rows, real...), err
}

// A tally counts what work cost.
type tally struct {
	works, kills, executed int
	again                  int // the most visits executed in vain in one life
}

// survive does the work once, through as many lives as it takes. A process dies when it has begun
// as many visits as life says.
func (t *tally) survive(life func() int) error {
	ctx := context.Background()
	store := &pawltest.Mortal{Store: new(memory.Store)}
	t.works++
	for durable := 0; ; {
		var began atomic.Int64
		end := int64(life())
		d := dispatch(workload(func() {
			if began.Add(1) == end {
				store.Kill()
			}
		}), checkpoint.Store(store), dispatcher.Options{})
		_, err := d.Run(ctx, "work", nil)
		t.executed += int(began.Load())
		if err == nil {
			return nil
		}
		if !errors.Is(err, pawltest.ErrDead) {
			return err
		}
		t.kills++
		if err := store.Revive(ctx); err != nil {
			return err
		}
		now, err := visitsDone(ctx, store)
		if err != nil {
			return err
		}
		t.again = max(t.again, int(began.Load())-(now-durable))
		durable = now
	}
}

// workload is the work. Each of its visits calls begin.
func workload(begin func()) *dag.Graph[Work] {
	b := dag.New[Work]("work")
	var last []dag.Edge[Work]
	for i := range stagesOfWork {
		next := make([]dag.Edge[Work], sideBySide)
		for k := range next {
			next[k] = dag.Step(b, fmt.Sprintf("stage-%d-%d", i+1, k+1), func(_ context.Context, w *Work) error {
				begin()
				w.Count.Add(1)
				return nil
			}, last...)
		}
		last = next
	}
	return build(b)
}

// visitsDone counts those that the log has.
func visitsDone(ctx context.Context, store checkpoint.Store) (n int, err error) {
	for e, err := range store.Read(ctx, "work", 1, 0) {
		if errors.Is(err, checkpoint.ErrNotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if e.Kind == checkpoint.Done {
			n++
		}
	}
	return n, nil
}

// retried does the work so many times, from the start after each kill, and returns how many visits
// it executes for each that was needed.
func retried(works int, life func() int) float64 {
	executed := 0
	for range works {
		for {
			end := life()
			if end > visitsNeeded {
				executed += visitsNeeded
				break
			}
			executed += end
		}
	}
	return float64(executed) / float64(works*visitsNeeded)
}

// killedForReal kills processes that do the work with a store of Badger, so many times.
func killedForReal(s session, kills int) ([]row, error) {
	random := rand.New(rand.NewPCG(8, 8))
	var again series
	for range kills {
		dir, err := os.MkdirTemp(s.dir, "work-")
		if err != nil {
			return nil, err
		}
		hurt := 0
		for range 3 { // processes, the last of which may end
			if killed, err := killWork(dir, time.Duration(random.Int64N(int64(400*time.Millisecond)))); err != nil {
				return nil, err
			} else if killed {
				hurt++
			}
		}
		if _, err := killWork(dir, time.Hour); err != nil {
			return nil, err
		}
		executed, err := sizeOfFiles(filepath.Join(dir, "executed"))
		_ = os.RemoveAll(dir)
		if err != nil {
			return nil, err
		}
		if hurt > 0 {
			again = append(again, float64(executed-visitsNeeded)/float64(hurt))
		}
	}
	if again == nil {
		return nil, nil // everyone was too quick
	}
	worst := series{again.quantile(1)}
	return []row{atMost("twice/again-by-SIGKILL", worst, "visits", sideBySide,
		"visits executed again for each kill of a process with a store of Badger, in the worst of %d runs of the work, each killed up to 3 times", len(again))}, nil
}

// killWork starts a process that does the work, and kills it after that time, unless it has ended.
func killWork(dir string, after time.Duration) (killed bool, err error) {
	c, err := childOf("work", dir)
	if err != nil {
		return false, err
	}
	if err := c.Start(); err != nil {
		return false, err
	}
	alarm := time.AfterFunc(after, func() { _ = c.Process.Kill() })
	err = c.Wait()
	if alarm.Stop() {
		return false, err
	}
	return err != nil, nil // it was killed, or had just ended
}

// workToKill is the process that is killed. It writes a byte for each visit that it executes.
func workToKill(args []string) error {
	executed, err := os.OpenFile(filepath.Join(args[0], "executed"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	b, err := reopenBed(filepath.Join(args[0], "store"), true)
	if err != nil {
		return err
	}
	d := dispatch(workload(func() {
		_, _ = executed.Write([]byte{'.'})
		time.Sleep(2 * time.Millisecond) // what the work takes
	}), checkpoint.Store(b.store), dispatcher.Options{})
	if _, err := d.Run(context.Background(), "work", nil); err != nil {
		return err
	}
	return b.close()
}
