package badgerstore_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Bulk of which no two pieces fit into one group leaves room in each of its groups for appends: these do not
// wait until there is no bulk any more.
func TestAppendsGoOnBesideBulk(t *testing.T) {
	t.Parallel()
	const runs = 12
	s := open(t, t.TempDir())
	leases := acquire(t, s, runs+3)
	heads := make([]checkpoint.Head, runs)
	for i := range heads {
		var err error
		if heads[i], err = s.Append(t.Context(), leases[i], checkpoint.Head{}, oneEntry); err != nil {
			t.Fatal(err)
		}
	}
	began, let := make(chan struct{}), make(chan struct{})
	var commits atomic.Int32
	s.CommitWith(func(next func() error) error {
		if commits.Add(1) == 1 {
			close(began)
			<-let
		}
		return next()
	})
	var all sync.WaitGroup
	add := func(l checkpoint.Lease, entries []checkpoint.Entry, done *int32) {
		all.Go(func() {
			if _, err := s.Append(t.Context(), l, checkpoint.Head{}, entries); err != nil {
				t.Error(err)
			}
			if done != nil {
				*done = commits.Load()
			}
		})
	}
	add(leases[runs], oneEntry, nil)
	<-began
	for i, head := range heads {
		all.Go(func() {
			snap := checkpoint.Snapshot{Head: head, Data: []byte(`"` + noise(300<<10) + `"`)}
			if err := s.PutSnapshot(t.Context(), leases[i], snap); err != nil {
				t.Error(err)
			}
		})
	}
	for s.QueuedBulk() < runs {
		runtime.Gosched()
	}
	queued := s.Queued()
	var done int32
	for _, a := range []struct {
		lease   checkpoint.Lease
		entries []checkpoint.Entry
		done    *int32
	}{
		{leases[runs+1], []checkpoint.Entry{{Kind: checkpoint.Done, Delta: []byte(`"` + noise(200<<10) + `"`)}}, nil},
		{leases[runs+2], oneEntry, &done},
	} {
		add(a.lease, a.entries, a.done)
		for queued++; s.Queued() < queued; {
			runtime.Gosched()
		}
	}
	close(let)
	all.Wait()
	if total := commits.Load(); done > runs/2 || total < runs {
		t.Errorf("an append beside %d large snapshots was durable behind %d of %d commits", runs, done, total)
	}
}
