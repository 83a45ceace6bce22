//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
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

// oftenKilled is how many kills there are in the time that the work takes.
var oftenKilled = []float64{0.5, 1, 2, 4, 8}

// twice counts how much of the same work is done again when the process that does it is killed at
// random moments, a thousand times in all, beside rivals and a loop that begins again from the
// start. The moments are of the same distribution for all: after so many visits, exponential, with
// some of a stage behind them and the rest in flight. Most kills are of a life, in which nothing
// begins and nothing is stored any more from that moment on; some are of a process, by SIGKILL.
func twice(s session) ([]row, error) {
	ours := payer{line: "pawl", kills: s.scale(200, 5), begin: func() worker {
		return &pawlWork{pawltest.Mortal{Store: new(memory.Store)}}
	}}
	if err := ours.pay(s); err != nil {
		return nil, err
	}
	rows := []row{
		ours.afterOneKill(),
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
			executed += (end + sideBySide - 1) / sideBySide * sideBySide // those beside it have begun as well
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
	// The life ends soon after its end-th visit has begun.
	live(end int) (lived, error)
}

// A lived is what came of a life.
type lived struct {
	began []int // visits, in their order
	done  bool  // the work is; or else the life has ended
	// durable are the visits, of all lives, that were stored as finished when the life ended: all
	// others that had begun were in flight. It is nil if the worker can't tell.
	durable []int
}

// A payer is one whose work is killed.
type payer struct {
	line  string // in the chart
	kills int    // for each frequency
	begin func() worker

	tally         // of all frequencies
	ratio float64 // visits executed to needed, where kills are most frequent
}

// pay does the work over and over at each frequency, until it has been killed often enough.
func (p *payer) pay(s session) error {
	random := rand.New(rand.NewPCG(7, 7))
	for _, often := range oftenKilled {
		var t tally
		for life := moments(random, often); t.died < p.kills; {
			if err := t.survive(p.begin(), life); err != nil {
				return fmt.Errorf("%s: %w", p.line, err)
			}
		}
		p.add(t)
		p.ratio = float64(t.executed) / float64(t.works*visitsNeeded)
		s.charts.twice.point(p.line, often, p.ratio)
	}
	return nil
}

// afterOneKill is the row of what is executed again. It is not ok either if any of that was
// durable, or if there was no kill at which a worker that forgets the durable visits of a stage
// could have been seen.
func (p *payer) afterOneKill() row {
	r := atMost("twice/again-after-one-kill", series{float64(p.again)}, "visits", sideBySide,
		"the most that was executed again after one of %d kills, %d of them with a part of a stage durable; %d visits were executed again that were durable",
		p.died, p.amid, p.forgot)
	r.OK = r.OK && p.forgot == 0
	return r.after(p.amid)
}

// A tally counts what work cost.
type tally struct {
	works, died, executed int // died: lives that ended before the work
	again                 int // the most visits of one life that had begun before

	amid   int // lives that ended with some visits of a stage durable, and not all
	forgot int // visits that began although they were durable, or twice in a life
}

// survive has the work done once, through as many lives as it takes.
func (t *tally) survive(w worker, life func() int) error {
	t.works++
	var known, durable seen
	for {
		l, err := w.live(life())
		if err != nil {
			return err
		}
		t.executed += len(l.began)
		t.again = max(t.again, known.add(l.began))
		t.forgot += durable.add(l.began) // if it is none, what began again was in flight
		if l.done {
			return known.all()
		}
		t.died++
		if len(l.durable)%sideBySide != 0 {
			t.amid++
		}
		durable = seen{}
		durable.add(l.durable)
	}
}

// add adds what another one counted.
func (t *tally) add(o tally) {
	t.works, t.died, t.executed = t.works+o.works, t.died+o.died, t.executed+o.executed
	t.again = max(t.again, o.again)
	t.amid, t.forgot = t.amid+o.amid, t.forgot+o.forgot
}

// A seen says of each visit whether it has begun, or is durable.
type seen [visitsNeeded]bool

// add adds visits, and returns how many of them were there already.
func (s *seen) add(visits []int) (again int) {
	for _, visit := range visits {
		if s[visit] {
			again++
		}
		s[visit] = true
	}
	return again
}

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
	ended bool
}

// slowVisit is how long visits take that are in flight when a life ends. Those beside them that
// take no time are finished, and stored, long before.
const slowVisit = 2 * time.Millisecond

// begin is what each visit calls first. It takes no time before the end-th, which and those behind
// it take slowVisit: the life ends just before the first of them does. What begins then doesn't
// count: in a process that is dead nothing does.
func (l *life) begin(visit int) {
	if l.count(visit) < l.end {
		return
	}
	time.Sleep(slowVisit)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended && l.die != nil {
		l.die()
	}
	l.ended = true
}

// count counts a visit, unless the life has ended, and returns how many there are.
func (l *life) count(visit int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.began = append(l.began, visit)
	}
	return len(l.began)
}

func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// A pawlWork is the work as pawl does it. Its store refuses everything when a life is over.
type pawlWork struct{ store pawltest.Mortal }

func (w *pawlWork) live(end int) (lived, error) {
	ctx := context.Background()
	l := life{end: end, die: w.store.Kill}
	d := dispatch(workload(l.begin), checkpoint.Store(&w.store), dispatcher.Options{})
	r, err := d.Run(ctx, "work", nil)
	if errors.Is(err, pawltest.ErrDead) {
		durable, err := w.durable(ctx)
		return lived{began: l.began, durable: durable}, errors.Join(err, w.store.Revive(ctx))
	}
	if err == nil {
		err = countsTo(r, visitsNeeded)
	}
	return lived{began: l.began, done: true}, err
}

// durable reads which visits are stored as finished, from the store that outlives the lives.
func (w *pawlWork) durable(ctx context.Context) (visits []int, err error) {
	for e, err := range w.store.Store.Read(ctx, "work", 0, 0) {
		if err != nil {
			return nil, err
		}
		if e.Kind != checkpoint.Done {
			continue
		}
		var stage, side int
		if _, err := fmt.Sscanf(e.Path, nameOfVisit, &stage, &side); err != nil {
			return nil, fmt.Errorf("visit %q: %w", e.Path, err)
		}
		visits = append(visits, (stage-1)*sideBySide+side-1)
	}
	return visits, nil
}

// nameOfVisit has its stage and its number in that, each counted from 1.
const nameOfVisit = "stage-%d-%d"

// workload is the work. Each of its visits calls begin with its number.
func workload(begin func(visit int)) *dag.Graph[Work] {
	b := dag.New[Work]("work")
	var last []dag.Edge[Work]
	for i := range stagesOfWork {
		next := make([]dag.Edge[Work], sideBySide)
		for k := range next {
			next[k] = dag.Step(b, fmt.Sprintf(nameOfVisit, i+1, k+1), func(_ context.Context, w *Work) error {
				begin(i*sideBySide + k)
				w.Count.Add(1)
				return nil
			}, last...)
		}
		last = next
	}
	return build(b)
}
