package badgerstore_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A run alone commits its appends itself. If the store hangs there its call returns when the grace
// period is over, and the run can be gone on with when the store goes on.
func TestRunReturnsFromALoneCommitThatHangs(t *testing.T) {
	t.Parallel()
	type cells struct{ Sum state.Sum[int] }
	b := dag.New[cells]("chain")
	add := func(_ context.Context, c *cells) error {
		c.Sum.Add(1)
		return nil
	}
	dag.Step(b, "last", add, dag.Step(b, "second", add, dag.Step(b, "first", add)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := openUnsynced(t, t.TempDir())
	hung, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	commits := 0
	s.CommitAnywhereWith(func(next func() error) error {
		if strings.Contains(string(debug.Stack()), ").commitLone(") {
			if commits++; commits == 3 {
				close(hung)
				<-goOn
			}
		}
		return next()
	})
	d, err := dispatcher.New(g, s, dispatcher.Options{Grace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { // ends when Start does
		_, err := d.Start(ctx, "run", nil)
		returned <- err
	}()
	select {
	case <-hung:
	case err := <-returned:
		t.Fatalf("no append of the run was committed by itself: Start = %v", err)
	}
	cancel()
	if err := <-returned; !errors.Is(err, dispatcher.ErrStuck) || !errors.Is(err, dispatcher.ErrCommitUnknown) {
		t.Errorf("Start = %v, want ErrStuck and ErrCommitUnknown", err)
	}
	if _, err := d.Run(t.Context(), "run", nil); !errors.Is(err, dispatcher.ErrStillRunning) {
		t.Errorf("Run while the commit hangs = %v, want ErrStillRunning", err)
	}
	release()
	result, err := d.Run(t.Context(), "run", nil)
	for errors.Is(err, dispatcher.ErrStillRunning) { // until the append has returned
		runtime.Gosched()
		result, err = d.Run(t.Context(), "run", nil)
	}
	if err != nil || result.State.Sum.Get() != 3 {
		t.Errorf("Run = %+v, %v", result, err)
	}
}
