//go:build rivals

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// rivalChildren are children as well.
var rivalChildren = map[string]func(args []string) error{"work": workToKill}

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
	d := dispatch(workload(func(int) {
		_, _ = executed.Write([]byte{'.'})
		time.Sleep(2 * time.Millisecond) // what the work takes
	}), checkpoint.Store(b.store), dispatcher.Options{})
	if _, err := d.Run(context.Background(), "work", nil); err != nil {
		return err
	}
	return b.close()
}
