//go:build rivals

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// rivalChildren are children as well.
var rivalChildren = map[string]func(args []string) error{"work": workToKill}

// killedForReal kills processes that do the work with a store of Badger. The work is done so many times.
func killedForReal(s session, works int) ([]row, error) {
	random := rand.New(rand.NewPCG(8, 8))
	hurt, kills, worst := 0, 0, 0.0 // runs of the work, processes, visits for each of those
	for range works {
		dir, err := os.MkdirTemp(s.dir, "work-")
		if err != nil {
			return nil, err
		}
		more, n, err := killedOften(dir, random)
		_ = os.RemoveAll(dir)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			hurt, kills, worst = hurt+1, kills+n, max(worst, float64(more)/float64(n))
		}
	}
	r := atMost("twice/again-by-SIGKILL", series{worst}, "visits", sideBySide,
		"visits executed again for each kill of a process with a store of Badger that had executed some, in the worst of %d runs of the work, killed %d times in all",
		hurt, kills)
	return []row{r.after(kills)}, nil // everyone may have been too quick to be killed
}

// killedOften has the work done in dir, and returns how many visits were executed more than were needed, and
// how many processes were killed that had executed some.
func killedOften(dir string, random *rand.Rand) (more, kills int, err error) {
	executed, before := filepath.Join(dir, "executed"), 0
	for range 3 { // processes, the last of which may end
		killed, err := killWork(dir, time.Duration(random.Int64N(int64(400*time.Millisecond))))
		if err != nil {
			return 0, 0, err
		}
		_, n, err := readVisits(executed)
		if err != nil {
			return 0, 0, err
		}
		if killed && n > before {
			kills++
		}
		before = n
	}
	if _, err := killWork(dir, time.Hour); err != nil {
		return 0, 0, err
	}
	known, n, err := readVisits(executed)
	if err == nil {
		err = known.all()
	}
	return n - visitsNeeded, kills, err
}

// sizeOfVisit is how many bytes the number of a visit takes.
const sizeOfVisit = 2

// readVisits returns what processes have written, and how many visits that are.
func readVisits(path string) (known seen, n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a process may have been killed before it made it
		return known, 0, err
	}
	if len(text)%sizeOfVisit != 0 {
		return known, 0, fmt.Errorf("%s has half a visit in %d bytes", path, len(text))
	}
	for number := range slices.Chunk(text, sizeOfVisit) {
		visit := binary.BigEndian.Uint16(number)
		if visit >= visitsNeeded {
			return known, 0, fmt.Errorf("%s has a visit %d", path, visit)
		}
		known[visit] = true
		n++
	}
	return known, n, nil
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

// workToKill is the process that is killed. It writes the number of each visit that it executes.
func workToKill(args []string) error {
	executed, err := os.OpenFile(filepath.Join(args[0], "executed"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	b, err := reopenBed(filepath.Join(args[0], "store"), true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	d := dispatch(workload(func(visit int) {
		if _, err := executed.Write(binary.BigEndian.AppendUint16(nil, uint16(visit))); err != nil {
			cancel(err)
		}
		time.Sleep(2 * time.Millisecond) // what the work takes
	}), checkpoint.Store(b.store), dispatcher.Options{})
	r, err := d.Run(ctx, "work", nil)
	if err == nil {
		err = countsTo(r, visitsNeeded)
	}
	return errors.Join(context.Cause(ctx), err, b.close())
}
