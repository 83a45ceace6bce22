package continuation_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What is remembered of a run reads otherwise when whoever is at work on it has died, though
// nothing was added to its log: its wait pends again, that was a lapse, and it is left when there
// may be no more of these.
func TestWaitOfARunWhoseLeaseHasEnded(t *testing.T) {
	begun, free := make(chan struct{}), make(chan struct{})
	store := &memory.Store{}
	p := begin(t, waiting(t, continuation.Wait{MaxFailures: 1}, dag.Policy{}, func(context.Context, *Talk, continuation.Reply[string]) error {
		close(begun)
		<-free
		return nil
	}), store, continuation.Options{})
	p.waits(run)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = p.rt.Trigger(t.Context(), reply("t", "x")) })
	<-begun
	if v := p.stands(run, continuation.StatusClaimed, ""); v.Lapses != 0 {
		t.Errorf("at work it has lapsed %d times", v.Lapses)
	}
	info, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Release(t.Context(), checkpoint.Lease{Run: run, Epoch: info.Epoch, Owner: info.Owner}); err != nil {
		t.Fatal(err)
	}
	if v := p.stands(run, continuation.StatusPending, ""); v.Lapses != 1 {
		t.Errorf("left, it has lapsed %d times", v.Lapses)
	}
	var attempts *continuation.AttemptsError
	if runs, err := p.rt.Recover(t.Context()); len(runs) > 0 || !errors.As(err, &attempts) {
		t.Errorf("recovered %q, %v; want that it was resumed as often as it may be", runs, err)
	}
	close(free)
	wg.Wait()
}

// A counter is a store that counts how often a log is read.
type counter struct {
	*memory.Store
	reads int
}

func (c *counter) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	c.reads++
	return c.Store.Read(ctx, run, from, to)
}

// Of a few more runs than a Runtime remembers most are not read again.
func TestListReadsFewLogsAgain(t *testing.T) {
	store := &counter{Store: &memory.Store{}}
	p := begin(t, waiting(t, continuation.Wait{}, dag.Policy{}, says), store, continuation.Options{})
	p.waits(run)
	for range 3 {
		if _, err := p.d.Fork(t.Context(), run, "0", dispatcher.ForkOptions[Talk]{N: 3_500}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		store.reads = 0
		if all, err := p.rt.List(t.Context(), continuation.Filter{}); err != nil || len(all) != 1 {
			t.Fatalf("%d waits, %v; want one", len(all), err)
		}
	}
	if store.reads > 5_000 {
		t.Errorf("%d logs of 10501 were read again", store.reads)
	}
}

// What a caller changes in a View is the caller's: the next one says what the log says.
func TestViewsShareNothing(t *testing.T) {
	p := talk(t, waiting(t, continuation.Wait{Key: "order-7", Question: "where to?"}, dag.Policy{}, says),
		dispatcher.Labels(map[string]string{"chat": "7"}))
	v := p.only(run)
	v.Question[1], v.Expects[0].Key, v.Labels["chat"] = 'W', "order-8", "8"
	if v := p.only(run); string(v.Question) != `"where to?"` || v.Expects[0].Key != "order-7" || v.Labels["chat"] != "7" {
		t.Errorf("the next view says %s, %v and %v", v.Question, v.Expects, v.Labels)
	}
}
