package continuation_test

import (
	"context"
	"iter"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

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
