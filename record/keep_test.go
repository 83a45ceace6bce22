package record_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/internal/lapse"
)

// A slow store takes its time to append, and does then what it has to do.
type slow struct {
	*lapse.Store
	meanwhile func(run string)
}

func (s slow) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if s.meanwhile(l.Run); ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return checkpoint.Head{}, ctx.Err()
		case <-time.After(2 * lapse.Term):
		}
	}
	return s.Store.Append(ctx, l, after, entries)
}

// A version that takes longer to be written than the lease of its log lasts is written.
func TestLedgerOutlivesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{lapse.New(new(memory.Faulty)), func(string) {}}
		l := ledgerOver(t, s, nil)
		if _, err := l.Create(t.Context(), draft("r"), bot); err != nil {
			t.Errorf("Create = %v", err)
		}
		if _, err := l.Get(t.Context(), "r"); err != nil {
			t.Errorf("Get = %v", err)
		}
	})
}

// A ledger that has lost the lease of a log says so, and has written nothing.
func TestLedgerThatHasLostItsLeaseIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{Store: lapse.New(new(memory.Faulty))}
		s.meanwhile = func(run string) {
			s.End(run)
			if _, err := s.Acquire(t.Context(), run, "somebody"); err != nil {
				t.Error(err)
			}
		}
		if _, err := ledgerOver(t, s, nil).Create(t.Context(), draft("r"), bot); !errors.Is(err, checkpoint.ErrFenced) {
			t.Errorf("Create = %v, want ErrFenced", err)
		}
	})
}
