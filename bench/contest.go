package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"
)

// A contender is one way of doing a thing. It does it n times.
type contender func(n int) error

// A session says how contests are held.
type session struct {
	rounds int
	window time.Duration // of one contender in one round
	length int           // of the chains that go to disk
	dir    string        // for stores
}

// newSession returns the session whose figures mean something, or a quick one that shows
// that all works. The caller removes its directory.
func newSession(quick bool, under string) (session, error) {
	s := session{rounds: 15, window: 20 * time.Millisecond, length: 150}
	if quick {
		s = session{rounds: 3, window: time.Millisecond, length: 10}
	}
	var err error
	s.dir, err = os.MkdirTemp(under, "pawl-bench-")
	return s, err
}

// A series is what one contender took, in nanoseconds for each time, by round.
type series []float64

// contest lets contenders take turns: in every round each has one window, and the order is
// turned from round to round. So what disturbs the machine disturbs all of them, and the
// ratio of two series, round by round, means more than either.
func (s session) contest(contenders ...contender) ([]series, error) {
	times := make([]int, len(contenders))
	for i, c := range contenders {
		n, err := s.calibrate(c)
		if err != nil {
			return nil, err
		}
		times[i] = n
	}
	all := make([]series, len(contenders))
	for round := range s.rounds {
		for k := range contenders {
			i := (k + round) % len(contenders)
			took, err := timed(contenders[i], times[i])
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], float64(took)/float64(times[i]))
		}
	}
	return all, nil
}

// calibrate returns how many times fill a window. What it runs also warms up.
func (s session) calibrate(c contender) (int, error) {
	for n := 1; ; n *= 2 {
		took, err := timed(c, n)
		if err != nil {
			return 0, err
		}
		if took >= s.window/4 {
			return max(1, int(float64(n)*float64(s.window)/float64(took))), nil
		}
	}
}

// timed begins with a clean heap, so that nobody pays for the garbage of another.
func timed(c contender, n int) (time.Duration, error) {
	runtime.GC()
	began := time.Now()
	err := c(n)
	return time.Since(began), err
}

// per divides what grows from one series to a longer one by how much longer it is: what
// each further node costs.
func (longer series) per(shorter series, further int) series {
	out := make(series, len(longer))
	for i := range out {
		out[i] = (longer[i] - shorter[i]) / float64(further)
	}
	return out
}

// over divides round by round.
func (s series) over(by series) series {
	out := make(series, len(s))
	for i := range out {
		out[i] = s[i] / by[i]
	}
	return out
}

// times multiplies by a constant.
func (s series) times(f float64) series {
	out := make(series, len(s))
	for i := range out {
		out[i] = s[i] * f
	}
	return out
}

func (s series) median() float64 { return s.quantile(0.5) }

// quantile interpolates between the two rounds that stand around it.
func (s series) quantile(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}

// spread tells where the middle three fifths of the rounds lie.
func (s series) spread() string {
	return fmt.Sprintf("%.3g to %.3g in the middle 60%% of %d rounds", s.quantile(0.2), s.quantile(0.8), len(s))
}
