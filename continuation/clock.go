package continuation

import (
	"maps"
	"math"
	"time"
)

// Whether the time of a wait is over says the wall clock, which everybody has who reads the log.
// One that is set back would have a wait last longer than it may; so whoever sweeps remembers since
// when he has seen a wait, on the clock that does not jump, and no wait lasts longer for him than
// it was to. A process that begins behind the jump sees it anew.

// A moment is one on both clocks.
type moment struct{ wall, steady time.Time }

func (r *Runtime) moment() moment { return moment{r.options.Now().Round(0), time.Now()} }

// see remembers the asks that are pending, and forgets those that no longer are. If err says that
// some runs could not be read, theirs are kept, unless that were far more than what is known to
// wait.
func (r *Runtime) see(live histories, err error) {
	now := r.moment()
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.seen
	r.seen = map[string]moment{}
	for _, h := range live {
		for _, w := range h.open {
			a := w.last()
			if !w.pends() || a.until.IsZero() {
				continue
			}
			first, known := was[a.id]
			if !known {
				first = now
				if a.begun.After(first.wall) { // the clock was set back: nothing is known to have passed
					first.wall = a.begun
				}
			}
			r.seen[a.id] = first
		}
	}
	if err != nil && len(was) <= 2*len(r.seen)+maxCache {
		maps.Copy(was, r.seen)
		r.seen = was
	}
}

// on is what the clocks say of an ask at a moment: the later one counts.
func (r *Runtime) on(a *ask, m moment) time.Time {
	r.mu.Lock()
	first, known := r.seen[a.id]
	r.mu.Unlock()
	if known {
		if t := first.wall.Add(m.steady.Sub(first.steady)); t.After(m.wall) {
			return t
		}
	}
	return m.wall
}

// now is what the clocks say of an ask.
func (r *Runtime) now(a *ask) time.Time { return r.on(a, r.moment()) }

// overdue reports whether it is too late for a trigger.
func (r *Runtime) overdue(a *ask) bool { return a.over(r.now(a)) }

// begun is when a question was asked that ends at until: so long before, if a duration can say
// that. Logs of old don't say asked.
func begun(asked, until time.Time, within time.Duration) time.Time {
	if !asked.IsZero() || until.IsZero() || within == math.MaxInt64 {
		return asked
	}
	return until.Add(-within)
}
