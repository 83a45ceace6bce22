package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/internal/lapse"
)

// An import may take longer than the lease of its run lasts, into any store.
func TestImportOutlivesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := superExport(t, superRun(t, "run"), "run")
		for _, plain := range []bool{false, true} {
			s := slowToKeepGraphs(func() {})
			var to checkpoint.Store = s
			if plain {
				to = superPlain{s}
			}
			superImport(t, to, file)
			if info, err := s.Stat(t.Context(), "run"); err != nil || info.Owner != "" {
				t.Errorf("plain: %t: the run is %q's, %v, want nobody's", plain, info.Owner, err)
			}
		}
	})
}

// An import that has lost its lease says so, and leaves the run that somebody else has made
// meanwhile as it is.
func TestImportThatHasLostItsLeaseDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := superExport(t, superRun(t, "run"), "run")
		var s *lapse.Store
		var others checkpoint.Head
		s = slowToKeepGraphs(func() {
			s.End("run")
			l, err := s.Acquire(t.Context(), "run", "somebody")
			if err == nil {
				others, err = s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Noted}})
			}
			if err = errors.Join(err, s.Release(t.Context(), l)); err != nil {
				t.Error(err)
			}
		})
		begun := time.Now()
		_, err := checkpoint.Import(t.Context(), superPlain{s}, bytes.NewReader(file), checkpoint.ImportOptions{})
		if !errors.Is(err, checkpoint.ErrFenced) {
			t.Errorf("Import = %v behind %v, want ErrFenced", err, time.Since(begun))
		}
		if info, err := s.Stat(t.Context(), "run"); err != nil || info.Head != others {
			t.Errorf("the run of the other is at %+v, %v, want it at %+v", info.Head, err, others)
		}
	})
}

// slowToKeepGraphs is a store that takes two terms of a lease to keep a graph, and calls first
// before.
func slowToKeepGraphs(first func()) *lapse.Store {
	s := lapse.New(new(memory.Faulty))
	s.Fail = func(ctx context.Context, w memory.Write) memory.Fault {
		if w.Method == "PutGraph" {
			first()
			later(ctx, 2*lapse.Term)
		}
		return memory.None
	}
	return s
}
