//go:build rivals

package main

import (
	"fmt"
	"slices"
	"time"
)

// A stopwatch does a thing n times and tells how long what counts of it took.
type stopwatch func(n int) (time.Duration, error)

// watch counts everything.
func watch(c contender) stopwatch {
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
	run  stopwatch
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
// as long as the first one the others take.
func (s session) compare(window time.Duration, c comparison) ([]row, error) {
	entrants := append([]entrant{c.first}, c.rest...)
	all, err := s.alternate(window, entrants)
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

// alternate is stages for stopwatches.
func (s session) alternate(window time.Duration, entrants []entrant) ([]series, error) {
	counted := make([]series, len(entrants))
	stages := make([]stage, len(entrants))
	times := make([]int, len(entrants))
	for i, e := range entrants {
		stages[i] = contender(func(n int) error {
			took, err := e.run(n)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			counted[i] = append(counted[i], float64(took)/float64(n))
			return nil
		}).ready
		var err error
		if times[i], err = calibrate(window, stages[i]); err != nil {
			return nil, err
		}
		counted[i] = nil // what calibration took
	}
	_, err := s.turns(times, stages...)
	return counted, err
}

// sizes leaves out of a quick session what takes some rivals seconds.
func (s session) sizes(all ...int) []int {
	if !s.quick {
		return all
	}
	return slices.DeleteFunc(all, func(n int) bool { return n > 100 })
}
