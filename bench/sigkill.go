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

// killedForReal kills processes that do the work with a store of Badger. The work is done so many
// times.
func killedForReal(s session, works int) ([]row, error) {
	random := rand.New(rand.NewPCG(8, 8))
	hurt, kills, worst := 0, 0, 0 // runs of the work, processes, visits
	for range works {
		dir, err := os.MkdirTemp(s.dir, "work-")
		if err != nil {
			return nil, err
		}
		t, err := killedOften(dir, random)
		_ = os.RemoveAll(dir)
		if err != nil {
			return nil, err
		}
		if t.died > 0 {
			hurt, kills, worst = hurt+1, kills+t.died, max(worst, t.again)
		}
	}
	r := atMost("twice/again-by-SIGKILL", series{float64(worst)}, "visits", sideBySide,
		"the most that one process with a store of Badger executed again behind a kill, in %d runs of the work, of which %d processes were killed that had executed some",
		hurt, kills)
	return []row{r.after(kills)}, nil // everyone may have been too quick to be killed
}

// killedOften has the work done in dir.
func killedOften(dir string, random *rand.Rand) (processes, error) {
	var p processes
	for n := 1; ; n++ {
		after := time.Hour // the fourth is let end
		if n < 4 {
			after = time.Duration(random.Int64N(int64(400 * time.Millisecond)))
		}
		killed, err := killWork(dir, after)
		if err != nil {
			return p, err
		}
		executed, err := readVisits(filepath.Join(dir, "executed"))
		if err != nil {
			return p, err
		}
		if err := p.add(executed, killed); err != nil {
			return p, err
		}
		if n == 4 {
			return p, p.known.all()
		}
	}
}

// processes are those that have done the work, one after the other.
type processes struct {
	known seen // what they have executed
	n     int  // how many visits that were
	again int  // the most that one of them had executed again
	died  int  // those that were killed and had executed some
}

// add adds a process, behind which so much has been executed by it and those before.
func (p *processes) add(executed []int, killed bool) error {
	again := p.known.add(executed[p.n:])
	if again > 0 && p.died == 0 {
		return fmt.Errorf("%d visits were executed again, and no process had been killed", again)
	}
	p.again = max(p.again, again)
	if killed && len(executed) > p.n {
		p.died++
	}
	p.n = len(executed)
	return nil
}

// sizeOfVisit is how many bytes the number of a visit takes.
const sizeOfVisit = 2

// readVisits returns what processes have executed, in the order in which they have written it.
func readVisits(path string) (executed []int, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a process may have been killed before it made it
		return nil, err
	}
	if len(text)%sizeOfVisit != 0 {
		return nil, fmt.Errorf("%s has half a visit in %d bytes", path, len(text))
	}
	for number := range slices.Chunk(text, sizeOfVisit) {
		visit := int(binary.BigEndian.Uint16(number))
		if visit >= visitsNeeded {
			return nil, fmt.Errorf("%s has a visit %d", path, visit)
		}
		executed = append(executed, visit)
	}
	return executed, nil
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
