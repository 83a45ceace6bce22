package dispatcher

import "time"

// A lag is what quick items have done that waits for the append that they share: else ten
// thousand items that take no time would be ten thousand appends. It waits for no longer
// than an append takes, and only while the work it stands for is less than that: so at most
// one append's worth of work is done again after a crash. What is anything else than an item
// that is done is never waited with.
type lag struct {
	facts int           // of the run, each of them an item that is done
	took  time.Duration // by their bodies together
	bytes int           // that they wrote
	since time.Time     // when the first of them landed
	unit  time.Duration // how long the last append took in which there were such facts
}

// itemDone counts the fact that was added last.
func (l *lag) itemDone(bytes int, took time.Duration) {
	if l.facts == 0 {
		l.since = time.Now()
	}
	l.facts++
	l.bytes += bytes
	l.took += took
}

// flushed says that the facts are durable. began is when their append did.
func (l *lag) flushed(began time.Time) {
	if l.facts > 0 {
		*l = lag{unit: time.Since(began)}
	}
}

// lags reports whether the facts may wait for more of their kind, which are about to come.
func (r *run) lags() bool {
	l := &r.lag
	if r.c.opts.eager {
		return false
	}
	return l.facts > 0 && l.facts == len(r.facts) && len(r.m.ready)+len(r.flight) > 0 && !r.halting && !r.limited() &&
		l.facts < landingVisits && l.took < l.unit && l.bytes < landingBytes && time.Since(l.since) < l.unit
}
