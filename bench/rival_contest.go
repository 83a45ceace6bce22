//go:build rivals

package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// watch counts everything.
func watch(c contender) probe {
	return func(n int) (time.Duration, error) {
		began := time.Now()
		err := c(n)
		return time.Since(began), err
	}
}

// An entrant is one of those that are compared.
type entrant struct {
	name string
	note string // what is done, and what survives what
	run  probe
}

// timed begins with a clean heap, as that of a stage, and says who failed.
func (e entrant) timed(n int) (time.Duration, error) {
	runtime.GC()
	took, err := e.run(n)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", e.name, err)
	}
	return took, nil
}

// warm does it for so long. LangGraph.js is compiled while it runs: a node of its first runs takes
// three to ten times as long as one of the hundredth run.
func (e entrant) warm(long time.Duration) error {
	n := 1
	for end := time.Now().Add(long); time.Now().Before(end); {
		began := time.Now()
		if _, err := e.timed(n); err != nil {
			return err
		}
		if time.Since(began) < long/8 {
			n *= 2
		}
	}
	return nil
}

// A comparison holds an entrant against those after it, which take turns as contest says.
type comparison struct {
	name  string
	each  string  // what a value is the time of
	per   float64 // how many of those there are in one time
	first entrant // pawl
	rest  []entrant
}

// compare makes a row of each entrant. None has a target: what is shown is how many times
// as long as the first one the others take. All are warm before anything of them counts.
func (s session) compare(window time.Duration, c comparison) ([]row, error) {
	entrants := append([]entrant{c.first}, c.rest...)
	probes := make([]probe, len(entrants))
	for i, e := range entrants {
		if err := e.warm(2 * s.long); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		probes[i] = e.timed
	}
	all, err := s.filled(window, probes...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	rows := make([]row, len(entrants))
	for i, e := range entrants {
		note := c.each
		if i > 0 {
			ratio := all[i].over(all[0])
			note = fmt.Sprintf("%.3g times %s (%.3g to %.3g)",
				ratio.median(), c.first.name, ratio.quantile(0.2), ratio.quantile(0.8))
		}
		if e.note != "" {
			note += "; " + e.note
		}
		rows[i] = shown("rivals/"+c.name+"/"+e.name, all[i].times(1e-3/c.per), "µs", "%s", note)
	}
	return rows, nil
}

// sizes leaves out of a quick session what takes some rivals seconds.
func (s session) sizes(all ...int) []int {
	if !s.quick {
		return all
	}
	return slices.DeleteFunc(all, func(n int) bool { return n > 100 })
}
