package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A tally counts events by their kinds.
type tally struct {
	mu sync.Mutex
	of map[supervisor.EventKind]int
}

func (c *tally) observe(e supervisor.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[supervisor.EventKind]int{}
	}
	c.of[e.Kind]++
}

// expect checks that each of runs runs was recovered once, and that nobody was told of a
// submission.
func (c *tally) expect(t *testing.T, runs int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[supervisor.Recovered] != runs || c.of[supervisor.Joined]+c.of[supervisor.Refused] > 0 {
		t.Errorf("of %d runs that were left the observer was told %v", runs, c.of)
	}
}

// lefts leaves n runs of the line, all for the tenant a.
func lefts(t *testing.T, store checkpoint.Store, n int) {
	t.Helper()
	var runs []string
	for i := range n {
		runs = append(runs, fmt.Sprintf("a-%02d", i))
	}
	left(t, "line", 2, store, runs...)
}

// Runs that are brought back wait for room in the queue. Nobody has submitted them, and none is
// refused.
func TestRecoverIsNoSubmission(t *testing.T) {
	quiet(t)
	var store memory.Store
	var told tally
	lefts(t, &store, 60)
	d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{Cap: 1, PerKey: 1, Label: "tenant", Observe: told.observe}, d)
	if r, err := s.Recover(t.Context()); err != nil || len(r.Rested) != 60 {
		t.Errorf("Recover = %+v, %v", r, err)
	}
	told.expect(t, 60)
	if told.of[supervisor.Queued] != 60 {
		t.Errorf("the observer was told %v", told.of)
	}
}

// Of a run that two calls of Recover wait for both report, and the observer is told once; also if
// it can't go on.
func TestRecoverTwiceAtOnce(t *testing.T) {
	for name, lost := range map[string]error{"rests": nil, "can't go on": errLost} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var store memory.Store
				var told tally
				lefts(t, &store, 20)
				hold := make(chan struct{})
				o := dispatcher.Options{}
				o.Hooks.OnStart = func(context.Context, dispatcher.Start) error { return lost }
				d := process(t, line(t, "line", 2, nil), &store, o)
				s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: told.observe}, d)
				gate := gated(t, s, d, hold)
				recovered := make(chan supervisor.Recovery)
				for range 2 {
					go func() { // ends when the test receives from recovered
						r, err := s.Recover(t.Context())
						if err != nil {
							t.Error(err)
						}
						recovered <- r
					}()
				}
				synctest.Wait()
				close(hold)
				for range 2 {
					if r := <-recovered; len(r.Rested)+len(r.Failed) != 20 || (lost == nil) != (len(r.Failed) == 0) {
						t.Errorf("Recover = %+v", r)
					}
				}
				<-gate.Done()
				told.expect(t, 20)
			})
		})
	}
}

// gated has the supervisor work on a run of its own until hold is closed.
func gated(t *testing.T, s *supervisor.Supervisor, d *dispatcher.Dispatcher[parcel], hold chan struct{}) *supervisor.Task[parcel] {
	t.Helper()
	task, err := supervisor.Go(t.Context(), s, d, "", "gate",
		func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			<-hold
			return nil, errLost
		})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// Who recovers runs hears of each as soon as it rests, also while one that was queued before it
// goes on. It is at work no more then.
func TestRecoveredIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "quick", "long") // newest first
		var told diary
		hold := make(chan struct{})
		o := dispatcher.Options{}
		o.Hooks.OnStart = func(_ context.Context, s dispatcher.Start) error {
			if s.Run == "long" {
				<-hold
			}
			return nil
		}
		var s *supervisor.Supervisor
		s = supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Recovered {
				working, _ := s.Load()
				told.note(fmt.Sprint(e.Run, " beside ", working))
			}
		}}, process(t, line(t, "line", 2, nil), &store, o))
		recovered := recovering(t, s)
		synctest.Wait()
		told.expect(t, "quick beside 1")
		close(hold)
		if r := <-recovered; len(r.Rested) != 2 {
			t.Errorf("Recover = %+v", r)
		}
		told.expect(t, "long beside 0")
	})
}

// Who observes may drain when a run was brought back, though another one has its turn by then.
func TestDrainWhereRecoveredIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		lefts(t, &store, 3)
		queued := make(chan string, 3)
		var once sync.Once
		o := dispatcher.Options{}
		o.Hooks.OnStart = func(context.Context, dispatcher.Start) error {
			once.Do(func() { // none begins before all are queued
				for range cap(queued) {
					<-queued
				}
			})
			return nil
		}
		var drain sync.Once
		var s *supervisor.Supervisor
		s = supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
			switch e.Kind {
			case supervisor.Queued:
				queued <- e.Run
			case supervisor.Recovered:
				drain.Do(func() {
					if _, err := s.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}}, process(t, line(t, "line", 2, nil), &store, o))
		r, err := s.Recover(t.Context())
		if err != nil || len(r.Rested)+len(r.Left) != 3 {
			t.Errorf("Recover = %+v, %v", r, err)
		}
	})
}

// A drain ends a Recover that has not come to every run: it says so, and what it had not come to is
// in the store as it was.
func TestDrainBeforeAllAreQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		lefts(t, &store, 4)
		queued, drained := 0, make(chan error, 1)
		var s *supervisor.Supervisor
		s = supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
			if e.Kind != supervisor.Queued { // which is told by Recover
				return
			}
			if queued++; queued == 2 {
				go func() { // received below
					_, err := s.Drain(t.Context())
					drained <- err
				}()
				synctest.Wait()
			}
		}}, process(t, line(t, "line", 2, nil), &store, dispatcher.Options{}))
		r, err := s.Recover(t.Context())
		if !errors.Is(err, supervisor.ErrDraining) || len(r.Rested)+len(r.Left) != 3 {
			t.Errorf("Recover = %+v, %v, want three of four", r, err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		for run, now := range statuses(t, &store) {
			rests, live := slices.Contains(r.Rested, run), now == checkpoint.StatusPending || now == checkpoint.StatusRunning
			if rests == live || rests != (now == checkpoint.StatusCompleted) {
				t.Errorf("%s is %v, Recover = %+v", run, now, r)
			}
		}
	})
}

// A run that is at work at once, since another one has ended, is told of as queued before it is
// told of as begun.
func TestQueuedIsToldBeforeBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var told diary
		busy, slow := make(chan struct{}), make(chan struct{})
		d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: func(e supervisor.Event) {
			if e.Run == "next" {
				if e.Kind == supervisor.Queued {
					<-slow
				}
				told.note(e.Kind.String())
			}
		}}, d)
		gate := gated(t, s, d, busy)
		next := make(chan *supervisor.Task[parcel])
		go func() { next <- submit(t, s, d, "", "next") }() // received below
		synctest.Wait()
		close(busy)
		<-gate.Done()
		synctest.Wait()
		close(slow)
		completes(t, <-next)
		synctest.Wait()
		told.expect(t, "queued", "began", "ended")
	})
}

// Of a run that another process has brought to its end meanwhile, or that a person has cancelled,
// nobody is told that it went on.
func TestRecoverOfARunThatSomebodyElseHasBroughtBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		var told, toldOther tally
		lefts(t, &store, 3)
		hold := make(chan struct{})
		d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, Observe: told.observe}, d)
		gate := gated(t, s, d, hold)
		recovered := recovering(t, s)
		synctest.Wait()
		if err := d.Cancel(t.Context(), "a-00", errLost); err != nil {
			t.Fatal(err)
		}
		other := supervise(t, &store, supervisor.Options{Observe: toldOther.observe}, d)
		if r, err := other.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"a-01", "a-02"}) {
			t.Errorf("Recover of the other = %+v, %v", r, err)
		}
		close(hold)
		if r := <-recovered; !slices.Equal(r.Rested, []string{"a-00", "a-01", "a-02"}) {
			t.Errorf("Recover = %+v", r)
		}
		<-gate.Done()
		told.expect(t, 0)
		toldOther.expect(t, 2)
	})
}

// Under a context that is done nothing is submitted, and the error says so of the run; one that
// ends later ends no run.
func TestSubmitUnderAContextThatIsDone(t *testing.T) {
	var store memory.Store
	var told tally
	started := make(chan struct{})
	hold := make(chan struct{})
	d := process(t, line(t, "line", 1, func(ctx context.Context, _ int) error {
		close(started)
		<-hold
		return ctx.Err()
	}), &store, dispatcher.Options{})
	s := supervise(t, &store, supervisor.Options{Observe: told.observe}, d)
	ctx, cancel := context.WithCancelCause(t.Context())
	task, err := supervisor.Submit(ctx, s, d, "", "before", func(p *parcel) { p.Name.Set("before") })
	if err != nil {
		t.Fatal(err)
	}
	<-started
	cancel(errLost)
	for name, submits := range map[string]func() error{
		"Submit":   func() error { _, err := supervisor.Submit(ctx, s, d, "", "behind", nil); return err },
		"Continue": func() error { _, err := s.Continue(ctx, "", "behind"); return err },
		"Go": func() error {
			_, err := supervisor.Go(ctx, s, d, "", "behind", func(context.Context, dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				return nil, errors.New("the call was made")
			})
			return err
		},
	} {
		if err := submits(); !errors.Is(err, errLost) || err.Error() != `supervisor: run "behind" was not queued: the parcel is lost` {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(hold)
	completes(t, task)
	if told.of[supervisor.Queued] != 1 || told.of[supervisor.Refused] != 0 {
		t.Errorf("the observer was told %v", told.of)
	}
}

// Of a run of which nobody knows the graph, as one whose row is damaged, no text names one.
func TestTextsWithoutAGraph(t *testing.T) {
	for want, got := range map[string]string{
		`supervisor: run "a": the parcel is lost`:                 (&supervisor.RunError{Run: "a", Err: errLost}).Error(),
		`supervisor: run "a" of graph "line": the parcel is lost`: (&supervisor.RunError{Run: "a", Graph: "line", Err: errLost}).Error(),
		`a: recovered: the parcel is lost`:                        supervisor.Event{Kind: supervisor.Recovered, Run: "a", Err: errLost}.String(),
		`a: recovered of line for ann: the parcel is lost`:        supervisor.Event{Kind: supervisor.Recovered, Run: "a", Graph: "line", Key: "ann", Err: errLost}.String(),
		`supervisor: drained`:                                     supervisor.Event{Kind: supervisor.Drained}.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Runs of a key with few of them take their turns among those of a key with many, also if PerKey
// bounds how many of one may be submitted.
func TestRecoverTakesTurnsBetweenKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		left(t, "line", 2, &store, "b-0")
		lefts(t, &store, 20)
		var mu sync.Mutex
		var begun []string
		d := process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})
		s := supervise(t, &store, supervisor.Options{Cap: 1, PerKey: 1, Label: "tenant", Observe: func(e supervisor.Event) {
			if e.Kind == supervisor.Began {
				mu.Lock()
				defer mu.Unlock()
				begun = append(begun, e.Run)
			}
		}}, d)
		gate := make(chan struct{}) // until all have been found
		_, err := supervisor.Go(t.Context(), s, d, "gate", "gate",
			func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
				<-gate
				return d.Run(ctx, "gate", nil, drain)
			})
		if err != nil {
			t.Fatal(err)
		}
		recovered := recovering(t, s)
		synctest.Wait()
		close(gate)
		<-recovered
		if at := slices.Index(begun, "b-0"); at < 0 || at > 2 {
			t.Errorf("they began in the order %q: b-0 is not among the first of two keys", begun)
		}
	})
}
