package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A contender is one way of doing a thing. It does it n times.
type contender func(n int) error

// each is a contender that does it under a context that can be cancelled.
func each(do func(ctx context.Context) error) contender {
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range times {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// A stage makes all ready for doing a thing n times. Only do is timed; end, which may be nil,
// clears away. Contenders whose windows must not see what earlier ones left behind are stages.
type stage func(n int) (do func() error, end func(), err error)

// A probe does a thing n times and tells how long that took: what times itself.
type probe func(n int) (time.Duration, error)

// A session says how contests are held.
type session struct {
	quick  bool
	rounds int
	window time.Duration // of one contender in one round
	long   time.Duration // a window in which a disk writes back what it was given
	length int           // of the chains that go to disk
	dir    string        // for stores
	only   []string      // prefixes of rows; nil: all
	plot   string        // directory for charts; "" is none
	charts *charts
}

// newSession returns the session whose figures mean something, or a quick one that shows
// that all works. The caller removes its directory.
func newSession(quick bool, under string) (session, error) {
	s := session{rounds: 15, window: 20 * time.Millisecond, long: time.Second, length: 150}
	if quick {
		s = session{quick: true, rounds: 3, window: time.Millisecond, long: 10 * time.Millisecond, length: 10}
	}
	s.charts = new(charts)
	var err error
	s.dir, err = os.MkdirTemp(under, "pawl-bench-")
	return s, err
}

// wants reports whether rows are wanted whose names begin with prefix, or may be.
func (s session) wants(prefix string) bool {
	return s.only == nil || slices.ContainsFunc(s.only, func(word string) bool {
		return strings.HasPrefix(prefix, word) || strings.HasPrefix(word, prefix)
	})
}

// prints reports whether r was asked for: what is absent stands for all rows that it would have
// had.
func (s session) prints(r row) bool {
	if s.only == nil || r.Unit == unitAbsent {
		return s.wants(r.Name)
	}
	return slices.ContainsFunc(s.only, func(word string) bool { return strings.HasPrefix(r.Name, word) })
}

// known returns an error if there is a word for which none of parts can have a row.
func (s session) known(parts []part) error {
	for _, word := range s.only {
		if !slices.ContainsFunc(parts, func(p part) bool { return session{only: []string{word}}.wants(p.name) }) {
			return fmt.Errorf("-only %s: no name of a row begins so; they begin with one of %s", word, names())
		}
	}
	return nil
}

// found returns an error if there is a word that none of rows was printed for.
func (s session) found(rows []row) error {
	for _, word := range s.only {
		if !slices.ContainsFunc(rows, session{only: []string{word}}.prints) {
			return fmt.Errorf("-only %s: no row was measured whose name begins so", word)
		}
	}
	return nil
}

// scale returns how large a thing is in this session.
func (s session) scale(whole, quick int) int {
	if s.quick {
		return quick
	}
	return whole
}

// A series is what one contender took, in nanoseconds for each time, by round.
type series []float64

// contest lets contenders take turns: in every round each has one window, and the order is
// turned from round to round. So what disturbs the machine disturbs all of them, and the
// ratio of two series, round by round, means more than either.
func (s session) contest(contenders ...contender) ([]series, error) {
	stages := make([]stage, len(contenders))
	for i, c := range contenders {
		stages[i] = c.ready
	}
	return s.stages(s.window, stages...)
}

// ready makes a contender a stage.
func (c contender) ready(n int) (func() error, func(), error) {
	return func() error { return c(n) }, nil, nil
}

// stages is contest for stages, with windows of that length.
func (s session) stages(window time.Duration, stages ...stage) ([]series, error) {
	return s.filled(window, timed(stages)...)
}

// turns is stages for who knows how many times fill a window.
func (s session) turns(times []int, stages ...stage) ([]series, error) {
	return s.probes(times, timed(stages)...)
}

func timed(stages []stage) []probe {
	probes := make([]probe, len(stages))
	for i, c := range stages {
		probes[i] = c.timed
	}
	return probes
}

// filled is stages for what times itself: a window is what counts.
func (s session) filled(window time.Duration, probes ...probe) ([]series, error) {
	times, err := calibrated(window, probes)
	if err != nil {
		return nil, err
	}
	return s.probes(times, probes...)
}

// alike is stages for two that do a thing equally often, so that the quicker one fills a window,
// and for others beside them. In each round the two do it another number of times, from half as
// often to half as often again: once, twice or three times, if once fills a window already. What
// Badger has to merge goes up in steps with what was written: where they lie a ratio does not
// depend on.
func (s session) alike(window time.Duration, two [2]stage, others ...stage) ([]series, error) {
	probes := timed(append(two[:], others...))
	times, err := calibrated(window, probes)
	if err != nil {
		return nil, err
	}
	usual := max(times[0], times[1], 2)
	return s.rounded(func(round int) []int {
		n := s.amount(usual, round)
		return append([]int{n, n}, times[2:]...)
	}, probes...)
}

// amount is how often a thing is done in a round that is usually done so often: each number from
// half of that to half as much again in as many rounds as any other, as far as they go.
func (s session) amount(usual, round int) int {
	step := round / 2
	if round%2 > 0 { // small and large ones in turn: what drifts rises or falls
		step = s.rounds - 1 - step
	}
	return usual/2 + min(usual, (usual+1)*step/max(1, s.rounds-1))
}

// probes is turns for what times itself.
func (s session) probes(times []int, probes ...probe) ([]series, error) {
	return s.rounded(func(int) []int { return times }, probes...)
}

// rounded is probes that do it as many times as a round has.
func (s session) rounded(times func(round int) []int, probes ...probe) ([]series, error) {
	all := make([]series, len(probes))
	for round := range s.rounds {
		for k := range probes {
			i := (k + round) % len(probes)
			n := times(round)[i]
			took, err := probes[i](n)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], float64(took)/float64(n))
		}
	}
	return all, nil
}

// calibrated is calibrate of each.
func calibrated(window time.Duration, probes []probe) ([]int, error) {
	times := make([]int, len(probes))
	for i, p := range probes {
		n, err := calibrate(window, p)
		if err != nil {
			return nil, err
		}
		times[i] = n
	}
	return times, nil
}

// calibrate returns how many times fill a window. What it runs also warms up.
func calibrate(window time.Duration, p probe) (int, error) {
	for n := 1; ; n *= 2 {
		took, err := p(n)
		if err != nil {
			return 0, err
		}
		if took >= window/4 {
			return max(1, int(float64(n)*float64(window)/float64(took))), nil
		}
	}
}

// timed begins with a clean heap, so that nobody pays for the garbage of another.
func (c stage) timed(n int) (time.Duration, error) {
	do, end, err := c(n)
	if err != nil {
		return 0, err
	}
	if end != nil {
		defer end()
	}
	runtime.GC()
	began := time.Now()
	err = do()
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

// spread tells where the middle three fifths of the rounds lie, if there were several.
func (s series) spread() string {
	if len(s) == 1 {
		return ""
	}
	return fmt.Sprintf("; %.3g to %.3g in the middle 60%% of %d rounds", s.quantile(0.2), s.quantile(0.8), len(s))
}
