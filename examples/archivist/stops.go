package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// stops are the ways in which a person ends a run before it has ended: all of them end its context,
// and the dispatcher does the rest.
type stops struct {
	config  *config
	ctx     context.Context
	cancel  context.CancelCauseFunc
	reached bool // -cancel-at was
	signals chan os.Signal
	done    chan struct{} // closed when the goroutine that waits for signals has ended
}

func newStops(c *config) *stops {
	s := &stops{config: c, signals: make(chan os.Signal, 1), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM)
	go s.wait() // until close, which waits for it
	return s
}

// wait cancels the run at the first signal. The second one kills, because it is no longer ours.
func (s *stops) wait() {
	defer close(s.done)
	if sig, ok := <-s.signals; ok {
		signal.Stop(s.signals)
		s.cancel(fmt.Errorf("%s", sig))
	}
}

func (s *stops) close() error {
	signal.Stop(s.signals)
	close(s.signals)
	<-s.done
	s.cancel(context.Canceled)
	return nil
}

// begin returns the context of the run, from whose beginning -deadline and -cancel-after count.
func (s *stops) begin() (context.Context, context.CancelFunc) {
	ctx, end := s.ctx, context.CancelFunc(func() {})
	if d := s.config.deadline; d != nil {
		ctx, end = context.WithTimeout(ctx, *d)
	}
	if d := s.config.cancelAfter; d != nil {
		cancel := func() { s.cancel(errors.New("-cancel-after " + d.String())) }
		if *d == 0 { // before the run, which would be beside the timer
			cancel()
			return ctx, end
		}
		timer := time.AfterFunc(*d, cancel)
		endDeadline := end
		end = func() { timer.Stop(); endDeadline() }
	}
	return ctx, end
}

// before is asked about every visit before its body begins. The dispatcher reads the context after
// asking, so a body whose path is -cancel-at does not run.
func (s *stops) before(b dispatcher.Boundary) bool {
	if !b.After && b.Path == s.config.cancelAt {
		s.reached = true
		s.cancel(errors.New("-cancel-at " + b.Path))
	}
	return false
}

// isVisit reports whether a run of the graph can visit path.
func isVisit(plan *dag.Plan, path string) bool {
	for v := range visits(plan, "") {
		if v == path {
			return true
		}
	}
	return false
}

// visits yields the paths of all visits that a run of the graph can make.
func visits(plan *dag.Plan, prefix string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, n := range plan.Nodes {
			path := prefix + n.Name
			if !yield(path) {
				return
			}
			for _, frame := range frames(n, path) {
				for inner := range visits(n.Body, frame+"/") {
					if !yield(inner) {
						return
					}
				}
			}
		}
	}
}

// frames are the paths of the frames that a visit of node n at path can open.
func frames(n dag.PlanNode, path string) []string {
	var all []string
	switch n.Kind {
	case dag.KindEmbed:
		all = append(all, path)
	case dag.KindLoop:
		for k := 1; k <= n.Most; k++ {
			all = append(all, path+"/"+strconv.Itoa(k))
		}
	}
	return all
}
