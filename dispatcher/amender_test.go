package dispatcher_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// slowStore is a store whose next append, once it is armed, waits until somebody has asked for the
// lease in vain.
type slowStore struct {
	checkpoint.Store
	armed   atomic.Bool
	began   chan struct{} // closed when the append has begun
	refused chan struct{} // closed when the lease was refused
	once    sync.Once
}

func (s *slowStore) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if s.armed.CompareAndSwap(true, false) {
		close(s.began)
		<-s.refused
	}
	return s.Store.Append(ctx, l, after, entries)
}

func (s *slowStore) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	l, err := s.Store.Acquire(ctx, id, owner)
	if errors.Is(err, checkpoint.ErrBusy) {
		s.once.Do(func() { close(s.refused) })
	}
	return l, err
}

// drainable is a node that asks beside one that drains the run, if it can, once it was asked.
func drainable(t *testing.T, drain context.CancelCauseFunc) *dag.Graph[Tale] {
	asked := make(chan struct{})
	var asks sync.Once
	b := dag.New[Tale]("drainable")
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		asks.Do(func() { close(asked) })
		word, err := dag.Ask[string](ctx, "word", "which?")
		if err == nil {
			s.Said.Append(word)
		}
		return err
	})
	dag.Step(b, "drains", func(ctx context.Context, s *Tale) error {
		if drain == nil {
			return nil
		}
		<-asked
		drain(dispatcher.ErrDrain) // again it does nothing
		return ctx.Err()
	})
	return frozen(t, b)
}

// Whoever says something of a run that nobody is at work on has its lease for a moment. Who is to
// go on with the run then waits for it, whatever the run's status is.
func TestRunWaitsForAnAmendment(t *testing.T) {
	calls := map[string]func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error{
		"answer": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Answer(ctx, id, "", "x")
		},
		"note": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Note(ctx, id, "a.b", 1)
		},
		"tag": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Tag(ctx, id, "0", "n")
		},
		"cancel": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Cancel(ctx, id, nil)
		},
		"edit": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Edit(ctx, id, func(s *Tale) { s.Said.Append("edited") }, dispatcher.EditOptions{})
		},
		"rewind": func(ctx context.Context, d *dispatcher.Dispatcher[Tale], id string) error {
			return d.Rewind(ctx, id, "0", dispatcher.RewindOptions{})
		},
	}
	for status, apart := range map[checkpoint.Status][]string{
		checkpoint.StatusRunning:     nil,
		checkpoint.StatusPending:     {"answer"},
		checkpoint.StatusInterrupted: nil,
		checkpoint.StatusCompleted:   {"answer", "cancel", "edit", "rewind"},
	} {
		for name, call := range calls {
			if strings.Contains(strings.Join(apart, " "), name) {
				continue
			}
			t.Run(string(status)+"/"+name, func(t *testing.T) {
				eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
					runBeside(t, store, o, status, call)
				})
			})
		}
	}
}

// runBeside goes on with a run of that status while another process calls something.
func runBeside(
	t *testing.T, base checkpoint.Store, o dispatcher.Options, status checkpoint.Status,
	call func(context.Context, *dispatcher.Dispatcher[Tale], string) error,
) {
	o.Grace = time.Minute // as long as a machine may stand still while the other has the lease
	ctx, id := t.Context(), run
	first, end := context.WithCancelCause(ctx)
	defer end(nil)
	g := drainable(t, nil)
	if status == checkpoint.StatusRunning {
		g = drainable(t, end)
	}
	if status == checkpoint.StatusCompleted {
		g = callsGraph(t, nothing[Tale])
	}
	before := callsDispatcher(t, g, base, o)
	_, _ = before.Run(first, run, nil) // the status says how that ended
	if status == checkpoint.StatusPending {
		id = "fork"
		forkOne(t, before, "", id, dispatcher.ReuseOrLive)
	}
	if info, err := base.Stat(ctx, id); err != nil || info.Status != status || info.Owner != "" {
		t.Fatalf("the run is %s, of %q, %v", info.Status, info.Owner, err)
	}
	store := &slowStore{Store: base, began: make(chan struct{}), refused: make(chan struct{})}
	by, d := callsDispatcher(t, g, store, o), callsDispatcher(t, g, store, o)
	store.armed.Store(true)
	said := make(chan error, 1)
	go func() { said <- call(ctx, by, id) }() // waited for below
	<-store.began
	goes := d.Run
	if status == checkpoint.StatusCompleted {
		goes = d.Turn
	}
	_, err := goes(ctx, id, nil)
	if err := <-said; err != nil {
		t.Error(err)
	}
	if errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("who goes on with the run is refused: %v", err)
	}
	if info, err := base.Stat(ctx, id); err != nil || info.Status == checkpoint.StatusRunning || info.Status == checkpoint.StatusPending || info.Owner != "" {
		t.Errorf("the run is left %s, of %q, %v", info.Status, info.Owner, err)
	}
}

// An amendment that does not end is waited for, within the grace period, and then named for what it
// is. A run that somebody is at work on is busy at once. Who can leave a message instead waits for
// a moment only.
func TestAmendmentThatDoesNotEnd(t *testing.T) {
	for owner, want := range map[string]struct {
		waits time.Duration
		text  string
	}{
		"somebody":                     {0, "wait until it rests, or cancel it"},
		checkpoint.Amender("somebody"): {time.Second, "gives it back at once: try again"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var store memory.Store
			first, drain := context.WithCancelCause(t.Context())
			g := drainable(t, drain)
			o := dispatcher.Options{Grace: 2 * time.Second}
			d := callsDispatcher(t, g, &store, o)
			if _, err := d.Run(first, run, nil); !errors.Is(err, dispatcher.ErrDrain) {
				t.Fatal(err)
			}
			if _, err := store.Acquire(t.Context(), run, owner); err != nil {
				t.Fatal(err)
			}
			done, cancel := context.WithCancel(t.Context())
			cancel()
			for _, ctx := range []context.Context{t.Context(), done} {
				began := time.Now()
				_, err := d.Run(ctx, run, nil)
				var busy *checkpoint.BusyError
				if !errors.As(err, &busy) || busy.Owner != owner || !strings.Contains(err.Error(), want.text) {
					t.Errorf("Run beside %q: %v", owner, err)
				}
				if took := time.Since(began); took < want.waits || took > want.waits+100*time.Millisecond {
					t.Errorf("Run beside %q waits for %v, want %v", owner, took, want.waits)
				}
			}
			began := time.Now()
			if err := d.Answer(t.Context(), run, "", "x"); err != nil {
				t.Errorf("an answer beside %q: %v", owner, err)
			}
			if took := time.Since(began); took > 150*time.Millisecond {
				t.Errorf("an answer beside %q waits for %v", owner, took)
			}
		})
	}
}

// heldStore is a store that takes its time to refuse a lease.
type heldStore struct{ checkpoint.Store }

func (s heldStore) Acquire(ctx context.Context, id, owner string) (checkpoint.Lease, error) {
	l, err := s.Store.Acquire(ctx, id, owner)
	if errors.Is(err, checkpoint.ErrBusy) {
		time.Sleep(100 * time.Millisecond)
	}
	return l, err
}

// The time that the store takes to say that an amendment has the lease counts: a call whose context
// is done is told so within the grace period, and leaves nothing behind.
func TestAmendmentThatDoesNotEndInASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := callsDispatcher(t, drainable(t, nil), heldStore{&store}, dispatcher.Options{Grace: 2 * time.Second})
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		if err := d.Answer(t.Context(), run, "", "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Acquire(t.Context(), run, checkpoint.Amender("somebody")); err != nil {
			t.Fatal(err)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			if _, err := d.Run(done, run, nil); !errors.Is(err, checkpoint.ErrBusy) {
				t.Errorf("Run beside an amendment: %v", err)
			}
		}
		if err := d.Answer(t.Context(), run, "", "x"); !errors.Is(err, dispatcher.ErrNotAwaited) {
			t.Errorf("a second answer: %v", err)
		}
	})
}
