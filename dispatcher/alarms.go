package dispatcher

import "time"

// Alarms are the instants at which what waits may go on. However much waits, nothing is looked
// through before the first of them has come. A nil one has none.
type alarms[K comparable] struct {
	at    map[K]time.Time
	first time.Time // none is earlier
}

// set adds the instant of k, and returns the alarms, which it makes if there were none.
func (a *alarms[K]) set(k K, at time.Time) *alarms[K] {
	if a == nil {
		a = &alarms[K]{at: map[K]time.Time{}}
	}
	if len(a.at) == 0 || at.Before(a.first) {
		a.first = at
	}
	a.at[k] = at
	return a
}

func (a *alarms[K]) none() bool { return a == nil || len(a.at) == 0 }

// next is when to look again. What waited for it may have ended meanwhile.
func (a *alarms[K]) next() (at time.Time, ok bool) {
	if a.none() {
		return at, false
	}
	return a.first, true
}

// come reports whether an instant has come, and what time it is.
func (a *alarms[K]) come() (now time.Time, ok bool) {
	if a.none() {
		return now, false
	}
	now = time.Now()
	return now, !a.first.After(now)
}

// rung reports whether that of k has.
func (a *alarms[K]) rung(k K, now time.Time) bool {
	at, ok := a.at[k]
	return ok && !at.After(now)
}

// drop takes out what over reports, and finds the first of the others.
func (a *alarms[K]) drop(over func(k K, at time.Time) bool) {
	a.first = time.Time{}
	for k, at := range a.at {
		if over(k, at) {
			delete(a.at, k)
		} else if a.first.IsZero() || at.Before(a.first) {
			a.first = at
		}
	}
}
