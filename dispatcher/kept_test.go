package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// keptAsks is a chain of three, of which the one in the middle asks twice.
func keptAsks(t testing.TB) *dag.Graph[Tale] {
	return chainOf(t, 3, func(ctx context.Context, i int, s *Tale) error {
		if i == 1 {
			for _, key := range []string{"first", "second"} {
				n, err := dag.Ask[int](ctx, key, "how many?")
				if err != nil {
					return err
				}
				s.Count.Add(n)
			}
		}
		s.Said.Append(fmt.Sprint(i))
		return nil
	})
}

// readsLogs counts who reads logs and snapshots.
func readsLogs(inner checkpoint.Store) (*tampered, *int) {
	reads := 0
	return &tampered{Store: inner, before: func(_ context.Context, c call) error {
		if c.method == "Read" || c.method == "Snapshot" {
			reads++
		}
		return nil
	}}, &reads
}

func keptAnswer(t testing.TB, d *dispatcher.Dispatcher[Tale], res *dispatcher.Result[Tale], n int) *dispatcher.Result[Tale] {
	t.Helper()
	if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, n); err != nil {
		t.Fatal(err)
	}
	next, _ := d.Run(t.Context(), run, nil)
	return next
}

// A dispatcher that has run a run until it waits answers it and goes on with it without reading its
// log.
func TestKeptMachinesReadNoLog(t *testing.T) {
	t.Parallel()
	store, reads := readsLogs(new(memory.Store))
	d, err := dispatcher.New(keptAsks(t), checkpoint.Store(store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	*reads = 0
	res = keptAnswer(t, d, res, 3)
	res = keptAnswer(t, d, res, 4)
	if res.Status != checkpoint.StatusCompleted || res.State.Count.Get() != 7 || res.State.Said.Len() != 3 {
		t.Errorf("the run is %s with %s", res.Status, asJSON(t, res.State))
	}
	if *reads != 0 {
		t.Errorf("logs were read %d times", *reads)
	}
}

// What others have done to a run meanwhile is seen: a machine is kept for its head alone.
func TestKeptMachinesGiveWayToTheLog(t *testing.T) {
	t.Parallel()
	var store memory.Store
	g := keptAsks(t)
	one, other := process(t, g, &store, dispatcher.Options{}), process(t, g, &store, dispatcher.Options{})
	res, err := one.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	res = keptAnswer(t, other, res, 3)
	res = keptAnswer(t, one, res, 4) // has kept the run as it was before 3
	if res.Status != checkpoint.StatusCompleted || res.State.Count.Get() != 7 {
		t.Errorf("the run is %s with %s", res.Status, asJSON(t, res.State))
	}

	res, err = one.Run(t.Context(), "again", nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	if err := store.Delete(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	res, err = other.Run(t.Context(), "again", func(s *Tale) { s.Count.Set(100) })
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	if res, err = one.State(t.Context(), "again"); err != nil || res.State.Count.Get() != 100 {
		t.Errorf("a run that was made again is %s: %v", asJSON(t, res.State), err)
	}
	if err := one.Answer(t.Context(), "again", res.Interrupts[0].ID, 1); err != nil {
		t.Error(err)
	}
}

// That of a run that was deleted is not kept in the place of one that bears its id.
func TestKeptMachinesGiveWayToANewRun(t *testing.T) {
	t.Parallel()
	inner := new(memory.Store)
	store, reads := readsLogs(inner)
	d, err := dispatcher.New(keptAsks(t), checkpoint.Store(store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	keptAnswer(t, d, res, 3)
	if err := inner.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	*reads = 0
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	keptAnswer(t, d, res, 3)
	if *reads != 0 {
		t.Errorf("logs were read %d times", *reads)
	}
}

// A call that has given the lease back and is slow to keep its machine does not put it in the place
// of a later one.
func TestKeptMachinesGiveWayToNoEarlierOne(t *testing.T) {
	t.Parallel()
	var by *dispatcher.Dispatcher[Tale]
	var next *dispatcher.Result[Tale]
	store, reads := readsLogs(new(memory.Store))
	store.after = func(c call, err error) error {
		if c.method == "Release" && c.n == 1 {
			res, err := by.State(t.Context(), run)
			if err != nil {
				t.Error(err)
			}
			next = keptAnswer(t, by, res, 3)
		}
		return err
	}
	d, err := dispatcher.New(keptAsks(t), checkpoint.Store(store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	by = d
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	*reads = 0
	if res = keptAnswer(t, d, next, 4); res.Status != checkpoint.StatusCompleted || res.State.Count.Get() != 7 {
		t.Errorf("the run is %s with %s", res.Status, asJSON(t, res.State))
	}
	if *reads != 0 {
		t.Errorf("logs were read %d times", *reads)
	}
}

// What a dispatcher keeps is bounded, and what ends is not kept.
func TestKeptMachinesAreFew(t *testing.T) {
	t.Parallel()
	d := process(t, keptAsks(t), new(memory.Store), dispatcher.Options{})
	for i := range 300 {
		_, _ = d.Run(t.Context(), fmt.Sprint("run", i), nil)
	}
	if n := dispatcher.Kept(d); n != 256 {
		t.Errorf("%d machines are kept of 300 runs that wait, want 256", n)
	}
	d = process(t, keptAsks(t), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "n1")
	res = keptAnswer(t, d, res, 3)
	if n := dispatcher.Kept(d); n != 1 {
		t.Errorf("%d machines are kept of a run that waits again", n)
	}
	keptAnswer(t, d, res, 3)
	if n := dispatcher.Kept(d); n != 0 {
		t.Errorf("%d machines are kept of a completed run", n)
	}
}

// What visits have in hand counts as much as states do: runs that wait with much of it are not
// kept.
func TestKeptMachinesAreSmall(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 9<<20)
	for name, f := range map[string]part{
		"an effect":  func(ctx context.Context, _ *Tale) error { return keptEffect(ctx, large) },
		"a question": func(ctx context.Context, _ *Tale) error { _, err := dag.Ask[int](ctx, "q", large); return err },
		"a subject": func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[int](ctx, "q", "?", dag.About(large))
			return err
		},
		"approvals": func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "approve", large, func(context.Context, string) (string, error) { return "", nil })
			_, other := dag.Ask[int](ctx, "q", "?")
			return errors.Join(err, other)
		},
		"nothing": func(ctx context.Context, _ *Tale) error { return keptEffect(ctx, "") },
	} {
		o := dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 10 << 20, VisitBytes: 10 << 20}}
		o.Gates.Names = []string{"n0#approve"}
		d := process(t, chainOf(t, 1, func(ctx context.Context, _ int, s *Tale) error { return f(ctx, s) }), new(memory.Store), o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "n0")
		if name == "approvals" {
			if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, dispatcher.Approve); err != nil {
				t.Fatal(err)
			}
		}
		if n := dispatcher.Kept(d); n == 1 != (name == "nothing") {
			t.Errorf("%d machines are kept of a run whose visit has in hand: %s", n, name)
		}
	}
}

func keptEffect(ctx context.Context, output string) error {
	_, err := dag.Effect(ctx, "e", "in", func(context.Context, string) (string, error) { return output, nil })
	if err == nil {
		_, err = dag.Ask[int](ctx, "q", "?")
	}
	return err
}

// A log that grows while it is compared with a machine that was kept is no difference.
func TestKeptMachinesAreComparedAtTheirHead(t *testing.T) {
	t.Parallel()
	for n := range 6 {
		var inner memory.Store
		g := keptAsks(t)
		other := process(t, g, &inner, dispatcher.Options{})
		looks := -1 // at the run, since it waits
		store := &tampered{Store: &inner, after: func(c call, err error) error {
			if c.method != "Stat" || looks < 0 {
				return err
			}
			if looks++; looks == n+1 {
				if err := other.Note(t.Context(), run, "note", n); err != nil {
					t.Error(err)
				}
			}
			return err
		}}
		d, err := dispatcher.New(g, checkpoint.Store(store), dispatcher.Options{Paranoid: true})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "n1")
		looks = 0
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, 3); err != nil && !errors.Is(err, checkpoint.ErrBusy) {
			t.Errorf("with a note behind look %d: %v", n, err)
		}
	}
}

// A frame that has failed once and then ended well is no difference between a machine that was
// kept, one that was read from a snapshot, and one that was read from the log.
func TestKeptMachineBehindAFrameThatFailedOnce(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		inner, b := dag.New[Tale]("inner"), dag.New[Tale]("outer")
		dag.Step(inner, "fails", func(ctx context.Context, _ *Tale) error {
			if dag.Attempt(ctx) == 1 {
				return errFire
			}
			return nil
		})
		none := func(*Tale, *Tale) {}
		var last dag.Edge[Tale] = dag.Embed(b, "frame", frozen(t, inner), none, none)
		for i := range 4 { // so much is written that there is a snapshot, and little of it stays
			last = dag.Step(b, fmt.Sprint("write", i), func(_ context.Context, s *Tale) error {
				s.Word.Set(strings.Repeat("x", (i+1)%2*200_000))
				return nil
			}, last)
		}
		dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
			n, err := dag.Ask[int](ctx, "n", "how many?")
			s.Count.Add(n)
			return err
		}, last)
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusFailed, "frame/fails")
		res, err = d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		if _, err := store.Snapshot(t.Context(), run, res.Cursor.Seq); err != nil {
			t.Fatal(err)
		}
		if res = keptAnswer(t, d, res, 3); res.Status != checkpoint.StatusCompleted || res.State.Count.Get() != 3 {
			t.Errorf("the run is %s with %s", res.Status, asJSON(t, res.State))
		}
		sameMachine(t, d, run)
	})
}

// What a caller does to the interrupts that it was given changes nothing of the run.
func TestKeptMachinesAreNotTheCallers(t *testing.T) {
	for name, spoil := range map[string]func(dispatcher.Interrupt) []byte{
		"the question": func(i dispatcher.Interrupt) []byte { return i.Question },
		"the default":  func(i dispatcher.Interrupt) []byte { return i.Default },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := chainOf(t, 1, func(ctx context.Context, _ int, s *Tale) error {
					word, err := dag.Ask[string](ctx, "n", "who?", dag.Within(time.Hour), dag.OrDefault("nobody"))
					s.Word.Set(word)
					return err
				})
				d, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				want := "nobody"
				for _, asks := range []func() (*dispatcher.Result[Tale], error){
					func() (*dispatcher.Result[Tale], error) { return d.Run(t.Context(), run, nil) },
					func() (*dispatcher.Result[Tale], error) { return d.State(t.Context(), run) },
				} {
					res, _ := asks()
					if len(res.Interrupts) != 1 {
						t.Fatalf("the run is %s with %d interrupts", res.Status, len(res.Interrupts))
					}
					spoil(res.Interrupts[0])[1] = 'X'
				}
				if name == "the question" {
					want = "Ada"
					if err := d.Answer(t.Context(), run, "", want); err != nil {
						t.Fatal(err)
					}
				} else {
					lasts(2 * time.Hour)
				}
				res, err := d.Run(t.Context(), run, nil)
				completes(t, res, err)
				if got := res.State.Word.Get(); got != want {
					t.Errorf("the answer is %q, want %q", got, want)
				}
			})
		})
	}
}

// A dispatcher that has run several turns of a run goes on with it, tells how it stands and takes
// notes about it without reading its log, however long that is. What it has returned stays as it
// was.
func TestKeptMachinesOfTurns(t *testing.T) {
	t.Parallel()
	for _, paranoid := range []bool{false, true} {
		store, reads := readsLogs(new(memory.Store))
		g := chainOf(t, 3, func(_ context.Context, i int, s *Tale) error {
			s.Said.Append(fmt.Sprint(i))
			s.Count.Add(1)
			return nil
		})
		d, err := dispatcher.New(g, checkpoint.Store(store), dispatcher.Options{Paranoid: paranoid})
		if err != nil {
			t.Fatal(err)
		}
		say := func(s *Tale) { s.Count.Add(10) }
		turns := []*dispatcher.Result[Tale]{}
		turn := func(how func() (*dispatcher.Result[Tale], error)) {
			t.Helper()
			res, err := how()
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, res)
			res.State.Said.Append("the caller's") // who may do with it as he likes
		}
		run1 := func() (*dispatcher.Result[Tale], error) { return d.Run(t.Context(), run, nil) }
		turn(run1)
		turn(func() (*dispatcher.Result[Tale], error) { return d.Turn(t.Context(), run, say) })
		*reads = 0
		for i := range 20 {
			turn(func() (*dispatcher.Result[Tale], error) { return d.Turn(t.Context(), run, say) })
			id := fmt.Sprint("message ", i)
			for range 2 { // the second one is repeated
				if err := d.Enqueue(t.Context(), run, say, dispatcher.Message(id)); err != nil {
					t.Fatal(err)
				}
				if err := d.Note(t.Context(), run, "note", i, dispatcher.Author("me"), dispatcher.Message(id)); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Note(t.Context(), run, "note", i, dispatcher.Author("me")); err != nil {
				t.Fatal(err)
			}
			turn(run1)
			if again, err := run1(); err != nil || again.State.Count.Get() != turns[len(turns)-1].State.Count.Get() {
				t.Fatalf("a run that has nothing to do: %v", err)
			}
		}
		if *reads > 0 && !paranoid {
			t.Errorf("logs were read %d times", *reads)
		}
		for i, res := range turns {
			if n := res.State.Count.Get(); n != 3*(i+1)+10*i || res.State.Said.Len() != 3*(i+1)+1 || res.Turn != i+1 {
				t.Errorf("turn %d: counted %d, said %d, turn %d", i+1, n, res.State.Said.Len(), res.Turn)
			}
		}
		other := process(t, g, store.Store, dispatcher.Options{})
		if res, err := other.State(t.Context(), run); err != nil || res.State.Count.Get() != turns[len(turns)-1].State.Count.Get() {
			t.Errorf("the log says %s, %v", asJSON(t, res.State), err)
		}
	}
}

// The ids of what a run has taken count as well.
func TestKeptMachinesHaveFewIDs(t *testing.T) {
	t.Parallel()
	d := process(t, keptAsks(t), new(memory.Store), dispatcher.Options{})
	_, err := d.Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	before := dispatcher.KeptBytes(d)
	for i := range 100 {
		if err := d.Note(t.Context(), run, "note", i, dispatcher.Author("me"), dispatcher.Message(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if n := dispatcher.KeptBytes(d) - before; n < 100*50 {
		t.Errorf("a hundred ids count as %d bytes", n)
	}
}

// A machine that has heard what was not appended is not kept: what was posted is taken by the next
// call, whatever it is.
func TestKeptMachinesHaveHeardNothingElse(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk")
	for _, paranoid := range []bool{false, true} {
		var inner memory.Store
		fails := false
		store := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
			if fails && c.method == "Append" && c.entries[0].Kind == checkpoint.Noted {
				fails = false
				return disk
			}
			return nil
		}}
		d, err := dispatcher.New(chainOf(t, 1, func(context.Context, int, *Tale) error { return nil }), checkpoint.Store(store), dispatcher.Options{Paranoid: paranoid})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), run, func(s *Tale) { s.Count.Add(1) }); err != nil {
			t.Fatal(err)
		}
		if err := d.Enqueue(t.Context(), run, func(s *Tale) { s.Count.Add(math.MaxInt) }); err != nil { // which is too much
			t.Fatal(err)
		}
		fails = true
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, disk) {
			t.Fatalf("Run while the disk fails = %v", err)
		}
		if res, err := d.Run(t.Context(), run, nil); err != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "was refused") {
			t.Errorf("the input is refused with %q, %v, want a warning", res.Warnings, err)
		}
	}
}

// A machine that is kept has heard of no permission but those in its log: an interceptor that has
// let a visit begin in one call is asked in the next one, and may deny it.
func TestKeptMachinesAreAskedAbout(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("asked-about")
	dag.Step(b, "asks", func(ctx context.Context, _ *Tale) error {
		_, err := dag.Ask[bool](ctx, "sure", "Shall I?")
		return err
	})
	rules := dispatcher.Continue()
	d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{
		Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return rules },
	}}}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	if err := d.Answer(t.Context(), run, "", true); err != nil {
		t.Fatal(err)
	}
	rules = dispatcher.Deny("not any more")
	res, err = d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusFailed, "asks")
	if len(res.Failures) != 1 || res.Failures[0].Kind != dag.FailedDenied {
		t.Errorf("it has failed by %+v", res.Failures)
	}
}
