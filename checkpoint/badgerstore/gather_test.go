package badgerstore_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Bulk of which no two pieces fit into one group leaves room in each of its groups for appends:
// these do not wait until there is no bulk any more.
func TestAppendsGoOnBesideBulk(t *testing.T) {
	t.Parallel()
	const runs = 12
	var groups []int // appends in each
	o := small
	o.Observe = func(g checkpoint.Group) { groups = append(groups, g.Appends) } // by one goroutine, which Close waits for
	s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	opened(t, s, err)
	leases := acquire(t, s, runs+3)
	heads := make([]checkpoint.Head, runs)
	for i := range heads {
		var err error
		if heads[i], err = s.Append(t.Context(), leases[i], checkpoint.Head{}, oneEntry); err != nil {
			t.Fatal(err)
		}
	}
	began, let := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.CommitWith(func(next func() error) error {
		once.Do(func() { close(began); <-let })
		return next()
	})
	var all sync.WaitGroup
	add := func(l checkpoint.Lease, entries []checkpoint.Entry) {
		all.Go(func() {
			if _, err := s.Append(t.Context(), l, checkpoint.Head{}, entries); err != nil {
				t.Error(err)
			}
		})
	}
	add(leases[runs], oneEntry)
	<-began
	for i, head := range heads {
		all.Go(func() {
			snap := checkpoint.Snapshot{Head: head, Data: []byte(`"` + noise(300<<10) + `"`)}
			if err := s.PutSnapshot(t.Context(), leases[i], snap); err != nil {
				t.Error(err)
			}
		})
	}
	for s.QueuedBulk() < runs || s.Queued() < runs { // each pokes the committer too, which is held
		runtime.Gosched()
	}
	large := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: []byte(`"` + noise(200<<10) + `"`)}}
	for i, entries := range [][]checkpoint.Entry{large, oneEntry} {
		queued := s.Queued()
		add(leases[runs+1+i], entries)
		for s.Queued() == queued {
			runtime.Gosched()
		}
	}
	close(let)
	all.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	alone := 0 // of the groups of snapshots: written behind all appends
	for alone < len(groups) && groups[len(groups)-1-alone] == 0 {
		alone++
	}
	if alone < runs/2 {
		t.Errorf("of %d large snapshots %d were written behind the last append: groups of %d appends", runs, alone, groups)
	}
}

// A group that took very long to be written, as where the process was stopped meanwhile, does not
// have the next append wait as long for others that don't come.
func TestNobodyWaitsLongBehindALongCommit(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	l := acquire(t, s, 1)[0]
	var began time.Time
	s.CommitWith(func(next func() error) error {
		began = time.Now()
		return next()
	})
	const long = 10 * time.Second
	s.LastGroup(2, 4*long) // so another append is expected
	from := time.Now()
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); err != nil {
		t.Fatal(err)
	}
	if waited := began.Sub(from); waited >= long {
		t.Errorf("an append waited %v for others before it was written", waited)
	}
}
