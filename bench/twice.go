//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

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

// oftenKilled is how many kills there are in the time that the work takes.
var oftenKilled = []float64{0.5, 1, 2, 4, 8}

// twice counts how much of the same work is done again when the process that does it is killed at
// random moments, a thousand times in all, beside rivals and a loop that begins again from the start.
// The moments are of the same distribution for all: after so many visits, exponential. Most kills are
// of a life, in which nothing begins and nothing is stored any more from that moment on; some are of a
// process, by SIGKILL.
func twice(s session) ([]row, error) {
	ours := payer{line: "pawl", kills: s.scale(200, 5), begin: func() worker {
		return &pawlWork{pawltest.Mortal{Store: new(memory.Store)}}
	}}
	if err := ours.pay(s); err != nil {
		return nil, err
	}
	rows := []row{
		atMost("twice/again-after-one-kill", series{float64(ours.again)}, "visits", sideBySide,
			"the most that was executed again after one of %d kills; up to %d visits were in flight", ours.killed, sideBySide).after(ours.killed),
		shown("twice/executed-to-needed", series{ours.ratio}, "ratio", "8 kills in the time that the work takes: visits executed to %d needed", visitsNeeded),
	}
	theirs, err := paidByRivals(s)
	rows = append(rows, theirs...)
	if err != nil {
		return rows, err
	}
	rows = append(rows, beginAgain(s))
	real, err := killedForReal(s, s.scale(50, 2))
	return append(rows, real...), err
}

// after makes a row not ok if there were no kills: then it is easy to execute nothing again.
func (r row) after(kills int) row {
	if kills == 0 {
		r.OK, r.Note = false, "no kill counted; "+r.Note
	}
	return r
}

// beginAgain is the row of a loop that begins again from the start, and its line in the chart.
func beginAgain(s session) row {
	random := rand.New(rand.NewPCG(7, 7))
	var ratio float64
	for _, often := range oftenKilled {
		ratio = retried(s.scale(100, 5), moments(random, often))
		s.charts.twice.point("a loop that begins again", often, ratio)
	}
	return shown("twice/retry-loop", series{ratio}, "ratio", "the same for a loop that begins again from the start")
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

// moments draws how many visits a life has.
func moments(random *rand.Rand, often float64) func() int {
	mean := visitsNeeded / often
	return func() int { return 1 + int(random.ExpFloat64()*mean) }
}

// A worker does the work once, in one life after another.
type worker interface {
	// live goes on with the work where the last life left it, with nothing but what that stored.
	// It returns the visits that began, in their order, and whether the work is done: the life ends
	// with the one that begins as its end-th.
	live(end int) (began []int, done bool, err error)
}

// A payer is one whose work is killed.
type payer struct {
	line  string // in the chart
	kills int    // for each frequency
	begin func() worker

	again, killed int     // the most visits begun again in one life; kills in all
	ratio         float64 // visits executed to needed, where kills are most frequent
}

// pay does the work over and over at each frequency, until it has been killed often enough.
func (p *payer) pay(s session) error {
	random := rand.New(rand.NewPCG(7, 7))
	for _, often := range oftenKilled {
		var t tally
		for life := moments(random, often); t.kills < p.kills; {
			if err := t.survive(p.begin(), life); err != nil {
				return fmt.Errorf("%s: %w", p.line, err)
			}
		}
		p.again, p.killed = max(p.again, t.again), p.killed+t.kills
		p.ratio = float64(t.executed) / float64(t.works*visitsNeeded)
		s.charts.twice.point(p.line, often, p.ratio)
	}
	return nil
}

// A tally counts what work cost.
type tally struct {
	works, kills, executed int
	again                  int // the most visits of one life that had begun before
}

// survive has the work done once, through as many lives as it takes.
func (t *tally) survive(w worker, life func() int) error {
	t.works++
	var known seen
	for {
		began, done, err := w.live(life())
		if err != nil {
			return err
		}
		again := 0
		for _, visit := range began {
			if known[visit] {
				again++
			}
			known[visit] = true
		}
		t.executed += len(began)
		t.again = max(t.again, again)
		if !done {
			t.kills++
			continue
		}
		return known.all()
	}
}

// A seen says of each visit whether it has begun.
type seen [visitsNeeded]bool

// all returns an error if there is one that has not.
func (s *seen) all() error {
	for visit, is := range s {
		if !is {
			return fmt.Errorf("the work ended without visit %d", visit)
		}
	}
	return nil
}

// A life counts visits until it ends.
type life struct {
	die func() // called once, when it ends; may be nil

	mu    sync.Mutex
	end   int
	began []int
}

// begin is what each visit calls first. What begins after the end doesn't count: in a process that
// is dead nothing does.
func (l *life) begin(visit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.began) >= l.end {
		return
	}
	l.began = append(l.began, visit)
	if len(l.began) == l.end && l.die != nil {
		l.die()
	}
}

func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.began) >= l.end
}

// A pawlWork is the work as pawl does it. Its store refuses everything when a life is over.
type pawlWork struct{ store pawltest.Mortal }

func (w *pawlWork) live(end int) ([]int, bool, error) {
	ctx := context.Background()
	l := life{end: end, die: w.store.Kill}
	d := dispatch(workload(l.begin), checkpoint.Store(&w.store), dispatcher.Options{})
	r, err := d.Run(ctx, "work", nil)
	if errors.Is(err, pawltest.ErrDead) {
		return l.began, false, w.store.Revive(ctx)
	}
	if err == nil {
		err = countsTo(r, visitsNeeded)
	}
	return l.began, true, err
}

// workload is the work. Each of its visits calls begin with its number.
func workload(begin func(visit int)) *dag.Graph[Work] {
	b := dag.New[Work]("work")
	var last []dag.Edge[Work]
	for i := range stagesOfWork {
		next := make([]dag.Edge[Work], sideBySide)
		for k := range next {
			next[k] = dag.Step(b, fmt.Sprintf("stage-%d-%d", i+1, k+1), func(_ context.Context, w *Work) error {
				begin(i*sideBySide + k)
				w.Count.Add(1)
				return nil
			}, last...)
		}
		last = next
	}
	return build(b)
}
