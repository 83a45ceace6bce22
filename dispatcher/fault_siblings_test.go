package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// siblings returns a graph of parallel nodes: a quick one, whose append is the second; three
// that end a second after their context and count themselves then; and one that is deaf.
func siblings(t testing.TB, w *witness, n *stubborn, ended *atomic.Int32) *dag.Graph[Tale] {
	b := dag.New[Tale]("siblings")
	all := []dag.Edge[Tale]{dag.Step(b, "quick", w.sees(func(context.Context, *Tale) error {
		lasts(time.Millisecond) // the others have begun
		return nil
	}))}
	for _, name := range []string{"one", "two", "three"} {
		all = append(all, dag.Step(b, name, w.sees(func(ctx context.Context, _ *Tale) error {
			err := heeds(ctx, time.Hour)
			lasts(time.Second) // it has to tidy up
			ended.Add(1)
			return err
		})))
	}
	all = append(all, dag.Step(b, "deaf", w.sees(n.part)))
	dag.Step(b, "last", w.sees(nil), all...)
	return frozen(t, b)
}

// While an append fails, or hangs until the call gives up, the bodies beside it are told to
// end, and waited for; the deaf one is named, and holds the run.
func TestSiblingsOfAnAppendThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endBeside(t, fails("Append", 2, checkpoint.ErrFull), checkpoint.ErrFull, time.Now().Add(time.Millisecond))
	})
}

func TestSiblingsOfAnAppendThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(free) })
		endBeside(t, hangs("Append", 2, free), dispatcher.ErrCommitUnknown, time.Now().Add(time.Second))
	})
}

// endBeside runs siblings over a store that is tampered with. The call has to return want,
// within the grace period after end.
func endBeside(t *testing.T, tamper func(context.Context, call) error, want error, end time.Time) {
	var w witness
	var n stubborn
	var ended atomic.Int32
	store := &tampered{Store: &memory.Store{}, before: tamper}
	g := siblings(t, &w, &n, &ended)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()

	res, err := process(t, g, store, dispatcher.Options{}).Run(ctx, run, nil)
	if took := time.Since(end); took > 5*time.Second {
		t.Errorf("the call returned %v after its end had begun", took)
	}
	if !errors.Is(err, want) {
		t.Errorf("the call returned %v, want %v", err, want)
	}
	if ended.Load() != 3 || !slices.Contains(res.Abandoned, "deaf") || slices.Contains(res.Abandoned, "one") {
		t.Errorf("%d bodies have ended and %q are abandoned, want three and deaf", ended.Load(), res.Abandoned)
	}
	other := process(t, g, store, dispatcher.Options{})
	if _, err := other.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrBusy) {
		t.Errorf("a run beside the bodies returned %v, want ErrBusy", err)
	}
	lasts(2 * time.Minute)
	w.took()
	ended.Store(0)
	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	res, err = other.Run(ctx, run, nil)
	completes(t, res, err)
	if ended.Load() != 3 {
		t.Errorf("%d of the bodies ran again, want all three", ended.Load())
	}
}
