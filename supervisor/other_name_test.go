package supervisor_test

import (
	"context"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// Runs of a graph of another name that a migration of a runner brings are recovered, and gone on
// with, by that runner; if there is one of that name, by it.
func TestRunsOfAGraphThatIsCalledAnewAreTheRunners(t *testing.T) {
	quiet(t)
	for name, both := range map[string]bool{"by the migration": false, "by the name": true} {
		t.Run(name, func(t *testing.T) {
			var store memory.Store
			left(t, "was", 3, &store, "a-left", "b-left")
			was := line(t, "was", 3, nil)
			moves := []dispatcher.Migration{{Name: "called anew", From: was.Digest()}}
			is := process(t, line(t, "is", 3, nil), &store, dispatcher.Options{Migrations: moves})
			runners, graph := []supervisor.Runner{process(t, line(t, "other", 1, nil), &store, dispatcher.Options{}), is}, "is"
			if both {
				runners, graph = append(runners, process(t, was, &store, dispatcher.Options{})), "was"
			}
			s := supervise(t, &store, supervisor.Options{}, runners...)
			task, err := s.Continue(t.Context(), "", "b-left")
			if err != nil {
				t.Fatal(err)
			}
			if res, err := task.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
				t.Errorf("continued it is %s, %v", res.Status, err)
			}
			if r, err := s.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"a-left"}) || len(r.Failed) > 0 {
				t.Errorf("Recover = %+v, %v", r, err)
			}
			page, err := store.List(t.Context(), checkpoint.Filter{Graph: graph, Status: []checkpoint.Status{checkpoint.StatusCompleted}})
			if err != nil || len(page) != 2 {
				t.Errorf("of graph %s are completed %+v, %v; want two runs", graph, page, err)
			}
		})
	}
}

// A submission to the runner joins what is gone on with so.
func TestASubmissionJoinsARunThatIsCalledAnew(t *testing.T) {
	quiet(t)
	var store memory.Store
	left(t, "was", 2, &store, "a-left")
	at, free := make(chan struct{}), make(chan struct{})
	is := process(t, line(t, "is", 2, func(context.Context, int) error { close(at); <-free; return nil }), &store,
		dispatcher.Options{Migrations: []dispatcher.Migration{{Name: "called anew", From: line(t, "was", 2, nil).Digest()}}})
	s := supervise(t, &store, supervisor.Options{}, is)
	first, err := s.Continue(t.Context(), "", "a-left")
	if err != nil {
		t.Fatal(err)
	}
	<-at
	second, err := supervisor.Submit(t.Context(), s, is, "", "a-left", nil)
	close(free)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := second.Wait(t.Context()); err != nil || res.Status != checkpoint.StatusCompleted {
		t.Errorf("joined it is %s, %v", res.Status, err)
	}
	<-first.Done()
}
