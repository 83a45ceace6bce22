package metrics_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// What runs of a supervisor leave, with effects, emitted values, turns, settings and a visit
// that is denied, counted by hand; nothing is left at work or waiting.
func TestCountsOfASupervisor(t *testing.T) {
	b := dag.New[journey]("journey")
	dag.Step(b, "walk", func(ctx context.Context, j *journey) error {
		if err := dag.Emit(ctx, "step", 1); err != nil {
			return err
		}
		if _, err := dag.Effect(ctx, "ticket", 1, func(context.Context, int) (int, error) { return 2, nil }); err != nil {
			return err
		}
		return walk(ctx, j)
	})
	reg, m := newMetrics(t)
	store := new(memory.Store)
	d, err := dispatcher.New(graphOf(t, b), store, dispatcher.Options{
		Observe: m.Observe,
		Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{
			Name: "gate",
			Before: func(_ context.Context, c dispatcher.Call) dispatcher.Ruling {
				if c.Run == "denied" {
					return dispatcher.Deny("not today")
				}
				return dispatcher.Continue()
			},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := supervisor.New(store, supervisor.Options{Cap: 1, Observe: m.ObserveSupervisor}, d)
	if err != nil {
		t.Fatal(err)
	}
	for run, want := range map[string]bool{"one": true, "two": true, "denied": false} {
		task, err := supervisor.Submit(t.Context(), s, d, "", run, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := task.Wait(t.Context()); (err == nil) != want {
			t.Errorf("run %s: %v", run, err)
		}
	}
	if _, err := d.Turn(t.Context(), "one", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := supervisor.Submit(t.Context(), s, d, "", "late", nil); !errors.Is(err, supervisor.ErrDraining) {
		t.Fatal(err)
	}
	scraped(t, reg).check(t, scrape{
		`pawl_effects_total{graph="journey",node="walk",outcome="kept"}`:   3,
		`pawl_emitted_total{graph="journey",node="walk"}`:                  3,
		`pawl_denials_total{graph="journey",node="walk"}`:                  1,
		`pawl_turns_total{graph="journey"}`:                                1,
		`pawl_runs_in_flight{graph="journey"}`:                             0,
		`pawl_supervisor_working{graph="journey"}`:                         0,
		`pawl_supervisor_waiting{graph="journey"}`:                         0,
		`pawl_supervisor_wait_seconds_count{graph="journey"}`:              3,
		`pawl_supervisor_refused_total{graph="journey",reason="draining"}`: 1,
		`pawl_supervisor_drains_total{outcome="ended"}`:                    1,
	})
}

// The work on a run ends in one of four ways, or not yet: one that is put back waits.
func TestEndsOfWorkOfASupervisor(t *testing.T) {
	reg, m := newMetrics(t)
	for _, err := range []error{
		nil, &dispatcher.Rest{Status: checkpoint.StatusFailed, Cause: checkpoint.ErrFull},
		dispatcher.ErrDrain, &dispatcher.Rest{Status: checkpoint.StatusRunning, Cause: dispatcher.ErrDrain},
		checkpoint.ErrFull, checkpoint.ErrClosed,
	} {
		for _, e := range []supervisor.Event{
			{Kind: supervisor.Queued}, {Kind: supervisor.Began}, {Kind: supervisor.PutBack, Err: checkpoint.ErrFull},
			{Kind: supervisor.Began}, {Kind: supervisor.Ended, Err: err},
		} {
			e.Graph = "journey"
			m.ObserveSupervisor(e)
		}
	}
	scraped(t, reg).check(t, scrape{
		`pawl_supervisor_working{graph="journey"}`:                       0,
		`pawl_supervisor_waiting{graph="journey"}`:                       0,
		`pawl_supervisor_put_back_total{graph="journey"}`:                6,
		`pawl_supervisor_ended_total{graph="journey",outcome="rested"}`:  2,
		`pawl_supervisor_ended_total{graph="journey",outcome="drained"}`: 2,
		`pawl_supervisor_ended_total{graph="journey",outcome="full"}`:    1,
		`pawl_supervisor_ended_total{graph="journey",outcome="failed"}`:  1,
	})
}

// Of what a recovery comes to, and a drain, is counted whether it went well.
func TestWhatARecoveryAndADrainComeTo(t *testing.T) {
	reg, m := newMetrics(t)
	for _, kind := range []supervisor.EventKind{supervisor.Recovered, supervisor.Drained} {
		for _, err := range []error{nil, nil, checkpoint.ErrCorrupt} {
			m.ObserveSupervisor(supervisor.Event{Kind: kind, Graph: "journey", Err: err})
		}
	}
	scraped(t, reg).check(t, scrape{
		`pawl_supervisor_recovered_total{graph="journey",outcome="rested"}`: 2,
		`pawl_supervisor_recovered_total{graph="journey",outcome="failed"}`: 1,
		`pawl_supervisor_drains_total{outcome="ended"}`:                     2,
		`pawl_supervisor_drains_total{outcome="stuck"}`:                     1,
	})
}
