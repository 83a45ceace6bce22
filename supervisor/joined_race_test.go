package supervisor_test

import (
	"context"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// Who joins a run at work from a goroutine of its own may still be about to return when the run is
// gone on with for it.
func TestJoiningFromAnotherGoroutine(t *testing.T) {
	for range 50 {
		var store memory.Store
		var all sync.WaitGroup
		d := asking(t, &store)
		s := supervise(t, &store, supervisor.Options{}, d)
		var joined *supervisor.Task[parcel]
		first := calls(t, s, d, "run", func(ctx context.Context, drain dispatcher.RunOption) (*result, error) {
			res, err := d.Run(ctx, "run", nil, drain)
			all.Go(func() { joined = submit(t, s, d, "", "run") })
			for range 1000 {
				s.Load()
			}
			return res, err
		})
		<-first.Done()
		all.Wait()
		<-joined.Done()
	}
}
