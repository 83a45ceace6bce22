package metrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type journey struct {
	Steps state.Sum[int]
}

func walk(_ context.Context, j *journey) error {
	j.Steps.Add(1)
	return nil
}

func graphOf(t *testing.T, b *dag.Builder[journey]) *dag.Graph[journey] {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What a run of every kind of node leaves, counted by hand.
func TestCountsOfARun(t *testing.T) {
	body := dag.New[journey]("lap")
	dag.Step(body, "stride", walk)
	b := dag.New[journey]("journey")
	failures := 2
	flaky := dag.Step(b, "flaky", func(ctx context.Context, j *journey) error {
		if failures--; failures >= 0 {
			return errors.New("rain")
		}
		return walk(ctx, j)
	}).With(dag.Policy{Attempts: 3})
	laps := dag.Loop(b, "laps", graphOf(t, body), func(j *journey) bool { return j.Steps.Get() == 4 }, 5, flaky)
	dag.Step(b, "home", func(ctx context.Context, j *journey) error {
		_, err := dag.Ask[bool](ctx, "open", "May I come in?")
		return err
	}, laps)

	reg, m := newMetrics(t)
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{
		Observe: m.Observe, InterruptBefore: []string{"laps/2/stride"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := d.Run(ctx, "r", nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	r, err := d.Resume(ctx, "r")
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	if err := d.Answer(ctx, "r", r.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(ctx, "r", nil); err != nil {
		t.Fatal(err)
	}

	s := scraped(t, reg)
	s.check(t, scrape{
		`pawl_runs_started_total{graph="journey"}`:                               1,
		`pawl_runs_resumed_total{graph="journey"}`:                               2,
		`pawl_runs_rested_total{graph="journey",status="interrupted"}`:           2,
		`pawl_runs_rested_total{graph="journey",status="completed"}`:             1,
		`pawl_runs_in_flight{graph="journey"}`:                                   0,
		`pawl_attempts_total{graph="journey",node="flaky",outcome="error"}`:      2,
		`pawl_attempts_total{graph="journey",node="flaky",outcome="done"}`:       1,
		`pawl_attempts_total{graph="journey",node="laps/stride",outcome="done"}`: 3,
		`pawl_attempts_total{graph="journey",node="home",outcome="done"}`:        1,
		`pawl_node_duration_seconds_count{graph="journey",node="flaky"}`:         3,
		`pawl_node_duration_seconds_count{graph="journey",node="laps/stride"}`:   3,
		`pawl_superstep_duration_seconds_count{graph="journey",node=""}`:         3,
		`pawl_superstep_duration_seconds_count{graph="journey",node="laps"}`:     3,
		`pawl_interrupts_total{graph="journey",kind="before"}`:                   1,
		`pawl_interrupts_total{graph="journey",kind="asked"}`:                    1,
	})
	for name := range s {
		if strings.Contains(name, `node="laps/1`) || strings.Contains(name, `node="laps",outcome`) {
			t.Errorf("%s: a label has iterations, or a loop has attempts", name)
		}
	}
}

// What takes two seconds is told as two seconds, retries and waits between them included
// in the superstep and not in the attempts.
func TestDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, m := newMetrics(t)
		b := dag.New[journey]("g")
		failures := 1
		dag.Step(b, "slow", func(context.Context, *journey) error {
			<-time.After(2 * time.Second)
			if failures--; failures >= 0 {
				return errors.New("again")
			}
			return nil
		}).With(dag.Policy{Attempts: 2, Backoff: dag.Constant(5 * time.Second)})
		d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Start(t.Context(), "r", nil); err != nil {
			t.Fatal(err)
		}
		scraped(t, reg).check(t, scrape{
			`pawl_node_duration_seconds_count{graph="g",node="slow"}`: 2,
			`pawl_node_duration_seconds_sum{graph="g",node="slow"}`:   4,
			`pawl_superstep_duration_seconds_sum{graph="g",node=""}`:  9,
			`pawl_append_duration_seconds_sum{graph="g"}`:             0,
		})
	})
}

// faulty is a store whose appends fail once some were made.
type faulty struct {
	memory.Store
	left int
}

var errDisk = errors.New("disk")

func (s *faulty) Append(ctx context.Context, l checkpoint.Lease, h checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if s.left--; s.left < 0 {
		return checkpoint.Head{}, errDisk
	}
	return s.Store.Append(ctx, l, h, entries)
}

// However a call ends, it is no longer in flight.
func TestInFlightReturnsToZero(t *testing.T) {
	type setting struct {
		t      *testing.T
		node   func(context.Context, *journey) error // of the second node
		store  checkpoint.Store
		before []string
		cancel context.CancelCauseFunc
	}
	tests := []struct {
		name   string
		set    func(*setting)
		want   error
		status string
	}{
		{"completed", func(s *setting) {}, nil, "completed"},
		{"interrupted before", func(s *setting) { s.before = []string{"second"} }, dispatcher.ErrInterrupted, "interrupted"},
		{"asked", func(s *setting) {
			s.node = func(ctx context.Context, _ *journey) error { _, err := dag.Ask[bool](ctx, "k", "?"); return err }
		}, dispatcher.ErrInterrupted, "interrupted"},
		{"failed", func(s *setting) {
			s.node = func(context.Context, *journey) error { return errDisk }
		}, errDisk, "failed"},
		{"panicked", func(s *setting) {
			s.node = func(context.Context, *journey) error { panic(errDisk) }
		}, errDisk, "failed"},
		{"cancelled", func(s *setting) {
			s.node = func(ctx context.Context, _ *journey) error { s.cancel(nil); <-ctx.Done(); return ctx.Err() }
		}, context.Canceled, "cancelled"},
		{"timed out", func(s *setting) {
			s.node = func(ctx context.Context, _ *journey) error { <-ctx.Done(); return ctx.Err() }
		}, context.DeadlineExceeded, "timed_out"},
		{"ignores its context", func(s *setting) {
			s.node = func(ctx context.Context, _ *journey) error { <-s.t.Context().Done(); return nil }
		}, context.DeadlineExceeded, "timed_out"},
		{"drained", func(s *setting) {
			s.node = func(ctx context.Context, _ *journey) error {
				s.cancel(dispatcher.ErrDrain)
				<-ctx.Done()
				return ctx.Err()
			}
		}, dispatcher.ErrDrain, "running"},
		{"store fails", func(s *setting) { s.store = &faulty{left: 1} }, errDisk, "running"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				s := &setting{t: t, node: walk, store: new(memory.Store), cancel: cancel}
				test.set(s)
				reg, m := newMetrics(t)
				b := dag.New[journey]("g")
				first := dag.Step(b, "first", func(ctx context.Context, j *journey) error {
					scraped(t, reg).check(t, scrape{`pawl_runs_in_flight{graph="g"}`: 1})
					return walk(ctx, j)
				})
				dag.Step(b, "second", s.node, first)
				d, err := dispatcher.New(graphOf(t, b), s.store, dispatcher.Options{Observe: m.Observe, InterruptBefore: s.before})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Run(ctx, "r", nil); !errors.Is(err, test.want) {
					t.Errorf("Run = %v, want %v", err, test.want)
				}
				scraped(t, reg).check(t, scrape{
					`pawl_runs_in_flight{graph="g"}`:                                 0,
					`pawl_runs_started_total{graph="g"}`:                             1,
					`pawl_runs_rested_total{graph="g",status="` + test.status + `"}`: 1,
				})
			})
		})
	}
}

// A call that is refused was never in flight.
func TestRefusedCallsAreNotCounted(t *testing.T) {
	reg, m := newMetrics(t)
	b := dag.New[journey]("g")
	dag.Step(b, "only", walk)
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(t.Context(), "r", nil); !errors.Is(err, dispatcher.ErrExists) {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), "r"); !errors.Is(err, dispatcher.ErrCompleted) {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	s := scraped(t, reg)
	s.check(t, scrape{`pawl_runs_started_total{graph="g"}`: 1, `pawl_runs_in_flight{graph="g"}`: 0})
	if v, ok := s[`pawl_runs_resumed_total{graph="g"}`]; ok {
		t.Errorf("resumes counted: %v, want none", v)
	}
}

// A turn is at work like the run that it goes on with.
func TestTurnsAreInFlight(t *testing.T) {
	b := dag.New[journey]("g")
	reg, m := newMetrics(t)
	during := func(_ context.Context, j *journey) error {
		scraped(t, reg).check(t, scrape{`pawl_runs_in_flight{graph="g"}`: 1})
		return walk(t.Context(), j)
	}
	dag.Step(b, "walk", during)
	d, err := dispatcher.New(graphOf(t, b), new(memory.Store), dispatcher.Options{Observe: m.Observe})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "run", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.Turn(t.Context(), "run", nil); err != nil {
			t.Fatal(err)
		}
	}
	scraped(t, reg).check(t, scrape{
		`pawl_runs_in_flight{graph="g"}`: 0, `pawl_runs_started_total{graph="g"}`: 1,
		`pawl_runs_rested_total{graph="g",status="completed"}`: 3,
	})
}
