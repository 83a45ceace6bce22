package pawltest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A process that does not die has a store like any other: each write is made.
func TestMortalIsAStore(t *testing.T) {
	ctx, m := t.Context(), &pawltest.Mortal{Store: new(memory.Store)}
	d, err := dispatcher.New(parcels(func(context.Context, *Parcel) error { return nil }), m, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"kept", "dropped"} {
		if _, err := d.Run(ctx, run, nil); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := d.Fork(ctx, "kept", "1", dispatcher.ForkOptions[Parcel]{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(ctx, ids[0]); err != nil {
		t.Errorf("the fork: %v", err)
	}
	if err := d.Enqueue(ctx, "kept", func(p *Parcel) { p.Receipt.Set("") }); err != nil {
		t.Fatal(err)
	}
	if posts, err := m.Posts(ctx, "kept"); err != nil || len(posts) != 1 {
		t.Errorf("posted are %v, %v", posts, err)
	}
	if err := d.Trim(ctx, "kept", dispatcher.Retention{Last: 1}); err != nil {
		t.Fatal(err)
	}
	if info, err := m.Stat(ctx, "kept"); err != nil || info.First == 1 || info.Owner != "" {
		t.Errorf("the run that was trimmed is %+v, %v", info, err)
	}
	if err := m.Delete(ctx, "dropped"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Stat(ctx, "dropped"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the run that was deleted: %v", err)
	}
}

// A process dies at the write that was named, before or after it, and the next one finds what
// was durable, and the leases free.
func TestMortalDiesAtAWrite(t *testing.T) {
	for _, after := range []bool{false, true} {
		m := &pawltest.Mortal{Store: new(memory.Store)}
		die, kept := m.DieBefore, uint64(1)
		if after {
			die, kept = m.DieAfter, 2
		}
		die(2)
		ctx := t.Context()
		lease, err := m.Acquire(ctx, "r", "first")
		if err != nil {
			t.Fatal(err)
		}
		head, err := m.Append(ctx, lease, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened}})
		if err != nil || m.Died() || m.Left() != 1 {
			t.Fatalf("after=%t: the first write: %v, died %t, %d left", after, err, m.Died(), m.Left())
		}
		got, err := m.Append(ctx, lease, head, []checkpoint.Entry{{Kind: checkpoint.Entered}})
		if !m.Died() || !errors.Is(err, pawltest.ErrDead) || errors.Is(err, checkpoint.ErrCommitUnknown) != after || got != (checkpoint.Head{}) {
			t.Errorf("after=%t: the write at which it dies returns %v, %v", after, got, err)
		}
		refusesTheDead(t, m, lease, head)
		info, err := m.Stat(ctx, "r")
		if err != nil || info.Head.Seq != kept {
			t.Errorf("after=%t: what is durable ends with entry %d, want %d, %v", after, info.Head.Seq, kept, err)
		}
		if err := m.Revive(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Acquire(ctx, "r", "second"); err != nil || m.Died() || m.Left() != 0 {
			t.Errorf("after=%t: the next process: %v, died %t, %d left", after, err, m.Died(), m.Left())
		}
	}
}

// refusesTheDead fails the test if a dead process can change anything.
func refusesTheDead(t *testing.T, m *pawltest.Mortal, l checkpoint.Lease, head checkpoint.Head) {
	t.Helper()
	ctx := t.Context()
	_, acquired := m.Acquire(ctx, "other", "first")
	_, renewed := m.Renew(ctx, l)
	_, appended := m.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Entered}})
	_, trimmed := m.Trim(ctx, l, head, checkpoint.Entry{Kind: checkpoint.Trimmed})
	for what, err := range map[string]error{
		"Acquire": acquired, "Renew": renewed, "Append": appended, "Trim": trimmed,
		"Release":     m.Release(ctx, l),
		"Post":        m.Post(ctx, "r", checkpoint.Post{ID: "a"}),
		"PutSnapshot": m.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head}),
		"PutGraph":    m.PutGraph(ctx, "d", []byte("{}")),
		"Delete":      m.Delete(ctx, "r"),
		"Fork":        m.Fork(ctx, checkpoint.Fork{}),
	} {
		if err != pawltest.ErrDead {
			t.Errorf("%s of a dead process: %v", what, err)
		}
	}
}

// A write that the store refuses leaves the process dead, and is not said to be durable.
func TestMortalDiesAtARefusedWrite(t *testing.T) {
	m := &pawltest.Mortal{Store: new(memory.Store)}
	m.DieAfter(1)
	err := m.Post(t.Context(), "nobody", checkpoint.Post{ID: "a", Kind: "note"})
	if !m.Died() || !errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("died %t: %v", m.Died(), err)
	}
}

// Of a process that was killed no writes are left.
func TestMortalIsKilledBeforeItsLastWrite(t *testing.T) {
	m := &pawltest.Mortal{Store: new(memory.Store)}
	m.DieBefore(5)
	m.Kill()
	if !m.Died() || m.Left() != 0 {
		t.Errorf("of the process that was killed %d writes are left", m.Left())
	}
}

// A lease that could not be given back is the process's until it dies.
func TestMortalFreesWhatWasNotReleased(t *testing.T) {
	ctx, m := t.Context(), &pawltest.Mortal{Store: new(memory.Store)}
	lease, err := m.Acquire(ctx, "r", "first")
	if err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.Release(cancelled, lease); !errors.Is(err, context.Canceled) {
		t.Fatalf("Release under a context that is done = %v", err)
	}
	m.Kill()
	if err := m.Revive(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Acquire(ctx, "r", "second"); err != nil {
		t.Errorf("the next process: %v", err)
	}
}

// A store that hangs keeps nobody from killing the process: a write that is under way then is not
// known to be made, and a lease that is had then is no dead process's. The next process begins when
// both are over.
func TestMortalIsKilledWhileItsStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(memory.Faulty)
		m := &pawltest.Mortal{Store: store}
		ctx := t.Context()
		lease, err := m.Acquire(ctx, "r", "first")
		if err != nil {
			t.Fatal(err)
		}
		goes := make(chan struct{})
		store.Fail = func(context.Context, memory.Write) memory.Fault { <-goes; return memory.None }
		store.FailRead = func(_ context.Context, method, run string) error {
			if method == "Acquire" && run == "hangs" {
				<-goes
			}
			return nil
		}
		entries := []checkpoint.Entry{{Kind: checkpoint.Opened}}
		appended, acquired, waited := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { // these end when the test receives what they send
			_, err := m.Append(ctx, lease, checkpoint.Head{}, entries)
			appended <- err
		}()
		synctest.Wait()
		go func() {
			_, err := m.Acquire(ctx, "hangs", "first")
			acquired <- err
		}()
		go func() { waited <- m.Post(ctx, "r", checkpoint.Post{ID: "a", Kind: "note"}) }()
		synctest.Wait()
		if _, err := m.Acquire(ctx, "other", "first"); err != nil || m.Died() {
			t.Errorf("beside a write that hangs: Acquire %v, died %t", err, m.Died())
		}
		brief, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := m.Post(brief, "r", checkpoint.Post{ID: "b", Kind: "note"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write behind one that hangs: %v", err)
		}
		m.Kill()
		if err := m.Revive(brief); !errors.Is(err, context.DeadlineExceeded) || !m.Died() {
			t.Errorf("Revive while the store hangs: %v, died %t", err, m.Died())
		}
		revived := make(chan error, 1)
		go func() { revived <- m.Revive(ctx) }()
		synctest.Wait()
		close(goes)
		if err := <-revived; err != nil || m.Died() {
			t.Errorf("Revive behind that: %v, died %t", err, m.Died())
		}
		if err := <-appended; !errors.Is(err, pawltest.ErrDead) || !errors.Is(err, checkpoint.ErrCommitUnknown) {
			t.Errorf("the write that was under way: %v", err)
		}
		for what, err := range map[string]error{"a lease": <-acquired, "a write that had to wait": <-waited} {
			if err != pawltest.ErrDead {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, run := range []string{"r", "hangs", "other"} {
			if _, err := m.Acquire(ctx, run, "second"); err != nil {
				t.Errorf("the next process: %v", err)
			}
		}
	})
}

// A Mortal that was given no store says so.
func TestMortalWithoutAStore(t *testing.T) {
	var m pawltest.Mortal
	_, acquired := m.Acquire(t.Context(), "r", "first")
	posted := m.Post(t.Context(), "r", checkpoint.Post{ID: "a"})
	for _, err := range []error{acquired, posted} {
		if err == nil || !strings.Contains(err.Error(), "set Store") {
			t.Errorf("without a store: %v", err)
		}
	}
}

// A store that can't tell of posts and appends is not made to seem so.
func TestMortalHearsAsItsStore(t *testing.T) {
	deaf := &pawltest.Mortal{Store: struct{ checkpoint.Store }{new(memory.Store)}}
	posted, stop := deaf.Watch("r")
	stop()
	grown, stop := deaf.Follow("r")
	stop()
	if posted != nil || grown != nil {
		t.Error("a channel that never receives is not nil")
	}
	m := &pawltest.Mortal{Store: new(memory.Store)}
	posted, stop = m.Watch("r")
	defer stop()
	grown, halt := m.Follow("r")
	defer halt()
	if posted == nil || grown == nil {
		t.Error("a channel is missing")
	}
}

// A Mortal that is revived before it has died at the write that was named does not die at that.
func TestMortalIsRevivedBeforeItDies(t *testing.T) {
	m := &pawltest.Mortal{Store: new(memory.Store)}
	m.DieBefore(2)
	if err := m.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := lived(t, m).Run(t.Context(), "parcel-7", nil); err != nil || m.Died() || m.Left() != 0 {
		t.Errorf("%v, died: %v, %d writes left", err, m.Died(), m.Left())
	}
}

func lived(t *testing.T, s checkpoint.Store) *dispatcher.Dispatcher[Parcel] {
	t.Helper()
	d, err := dispatcher.New(parcels(func(context.Context, *Parcel) error { return nil }), s, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A lease that is given back is that of its run, and of no other one that was taken as often.
func TestMortalFreesTheLeasesOfOtherRuns(t *testing.T) {
	m := &pawltest.Mortal{Store: new(memory.Store)}
	var given checkpoint.Lease
	for _, run := range []string{"kept", "given"} {
		l, err := m.Acquire(t.Context(), run, "me")
		if err != nil {
			t.Fatal(err)
		}
		given = l
	}
	if err := m.Release(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if err := m.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Acquire(t.Context(), "kept", "the next"); err != nil {
		t.Errorf("the lease of a dead process: %v", err)
	}
}

// A hanging store keeps appends until it is let go.
type hanging struct {
	*memory.Store
	begun, free chan struct{}
}

func (h *hanging) Post(ctx context.Context, run string, p checkpoint.Post) error {
	close(h.begun)
	<-h.free
	return h.Store.Post(ctx, run, p)
}

// Of a process that is killed a write that waits for its turn is refused at once.
func TestMortalRefusesWhatWaitsWhenItIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{new(memory.Store), make(chan struct{}), make(chan struct{})}
		m := &pawltest.Mortal{Store: h}
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- m.Post(context.Background(), "r", checkpoint.Post{ID: "a", Kind: "k"}) }() // waited for below
		<-h.begun
		go func() { second <- m.Delete(context.Background(), "r") }() // waited for below
		synctest.Wait()
		m.Kill()
		synctest.Wait()
		select {
		case err := <-second:
			if !errors.Is(err, pawltest.ErrDead) {
				t.Errorf("what waited: %v", err)
			}
		default:
			t.Error("what waited waits still")
		}
		close(h.free)
		<-first
	})
}
