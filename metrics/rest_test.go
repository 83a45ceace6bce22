package metrics_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// An effect that somebody resolves while its run rests is counted, whether its visit waits for that
// or has failed, and not again by the call that goes on.
func TestResolvedAtRestIsCounted(t *testing.T) {
	for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		reg, m := newMetrics(t)
		b := dag.New[journey]("g")
		dag.Step(b, "toll", func(ctx context.Context, _ *journey) error {
			_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 0, errDisk }, dag.InDoubt(doubt))
			return err
		})
		d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), "r", nil); err == nil {
			t.Fatalf("%s: the effect is not in doubt", doubt)
		}
		if err := d.Resolve(t.Context(), "r", "toll", "pay", dispatcher.Happened(7)); err != nil {
			t.Fatal(err)
		}
		resolved := scrape{`pawl_effects_total{graph="g",node="toll",outcome="resolved"}`: 1, `pawl_runs_in_flight{graph="g"}`: 0}
		scraped(t, reg).check(t, resolved)
		if _, err := d.Resume(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		scraped(t, reg).check(t, resolved)
	}
}

// A run goes on with a changed graph once, be it a call that runs it or an edit that brings it
// there.
func TestMigrationsAreCounted(t *testing.T) {
	named := func(name string) *dag.Graph[journey] {
		b := dag.New[journey]("g")
		dag.Step(b, name, func(ctx context.Context, _ *journey) error { _, err := dag.Ask[bool](ctx, "k", "?"); return err })
		return graphOf(t, b)
	}
	for _, edits := range []bool{false, true} {
		reg, m := newMetrics(t)
		store, was := new(memory.Store), named("a")
		old, err := dispatcher.New(was, store, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := old.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		d, err := dispatcher.New(named("b"), store, dispatcher.Options{Observe: m.Observe, Migrations: []dispatcher.Migration{
			{Name: "renamed", From: was.Digest(), Nodes: map[string]string{"a": "b"}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if edits {
			if err := d.Edit(t.Context(), "r", func(j *journey) { j.Steps.Add(1) }, dispatcher.EditOptions{}); err != nil {
				t.Fatal(err)
			}
			scraped(t, reg).check(t, scrape{`pawl_migrations_total{graph="g"}`: 1})
		}
		if err := d.Answer(t.Context(), "r", "", true); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		scraped(t, reg).check(t, scrape{`pawl_migrations_total{graph="g"}`: 1, `pawl_runs_in_flight{graph="g"}`: 0})
	}
}

// What is done to a run at rest is no call in flight, and a cancel of it no rest.
func TestNothingIsInFlightAtRest(t *testing.T) {
	reg, m := newMetrics(t)
	b := dag.New[journey]("g")
	dag.Step(b, "home", func(ctx context.Context, _ *journey) error { _, err := dag.Ask[bool](ctx, "k", "?"); return err })
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	for _, err := range []error{
		d.Answer(t.Context(), "r", "", true), d.Note(t.Context(), "r", "a.b", 1), d.Cancel(t.Context(), "r", nil),
		d.Rewind(t.Context(), "r", "0", dispatcher.RewindOptions{}), d.Cancel(t.Context(), "r", nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := scraped(t, reg)
	s.check(t, scrape{`pawl_runs_in_flight{graph="g"}`: 0, `pawl_runs_rested_total{graph="g",status="interrupted"}`: 1})
	if n, ok := s[`pawl_runs_rested_total{graph="g",status="cancelled"}`]; ok {
		t.Errorf("%v cancelled rests are counted", n)
	}
}

// One call that takes turns from the queue counts a rest for each of them.
func TestQueuedTurnsCountARestEach(t *testing.T) {
	reg, m := newMetrics(t)
	b := dag.New[journey]("g")
	dag.Step(b, "walk", walk)
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Enqueue(t.Context(), "r", func(*journey) {}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	scraped(t, reg).check(t, scrape{
		`pawl_runs_started_total{graph="g"}`: 1, `pawl_turns_total{graph="g"}`: 2, `pawl_runs_in_flight{graph="g"}`: 0,
		`pawl_runs_rested_total{graph="g",status="completed"}`: 3,
	})
}

// A fork is no run that a call has opened and run: whoever first runs it goes on with it.
func TestForksAreResumed(t *testing.T) {
	reg, m := newMetrics(t)
	b := dag.New[journey]("g")
	dag.Step(b, "walk", walk)
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Fork(t.Context(), "r", "0", dispatcher.ForkOptions[journey]{Into: []string{"f"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "f", nil); err != nil {
		t.Fatal(err)
	}
	scraped(t, reg).check(t, scrape{
		`pawl_runs_started_total{graph="g"}`: 1, `pawl_runs_resumed_total{graph="g"}`: 1, `pawl_runs_in_flight{graph="g"}`: 0,
	})
}

// A run that is created is counted as one that was opened and rests pending, and whoever begins it
// goes on with it.
func TestCreatedRunsArePending(t *testing.T) {
	reg, m := newMetrics(t)
	b := dag.New[journey]("g")
	dag.Step(b, "walk", walk)
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Create(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	scraped(t, reg).check(t, scrape{
		`pawl_runs_started_total{graph="g"}`: 1, `pawl_runs_in_flight{graph="g"}`: 0,
		`pawl_runs_rested_total{graph="g",status="pending"}`: 1,
	})
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	scraped(t, reg).check(t, scrape{
		`pawl_runs_started_total{graph="g"}`: 1, `pawl_runs_resumed_total{graph="g"}`: 1, `pawl_runs_in_flight{graph="g"}`: 0,
		`pawl_runs_rested_total{graph="g",status="pending"}`: 1, `pawl_runs_rested_total{graph="g",status="completed"}`: 1,
	})
}

// A visit is denied by who rejects its effect, too.
func TestRejectedEffectIsADenial(t *testing.T) {
	reg, m := newMetrics(t)
	b := dag.New[journey]("g")
	dag.Step(b, "toll", func(ctx context.Context, _ *journey) error {
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 1, nil }, dag.Writes)
		return err
	})
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{
		Observe: m.Observe, Gates: dispatcher.Gates{Names: []string{"toll#pay"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), "r", "", dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); !errors.Is(err, dag.ErrDenied) {
		t.Fatal(err)
	}
	scraped(t, reg).check(t, scrape{`pawl_denials_total{graph="g",node="toll"}`: 1})
}
