package dispatcher

import (
	"context"
	"time"
	"unsafe"

	"github.com/pawlgo/pawl/state"
)

// WithNow returns o with a clock for the instants that are stored, for tests that let the
// wall clock jump.
func WithNow(o Options, now func() time.Time) Options {
	o.now = now
	return o
}

// MachineAt returns, as JSON, the machine of a run as it stands after an entry.
func MachineAt[S any](ctx context.Context, d *Dispatcher[S], run string, upTo uint64) ([]byte, error) {
	m, _, err := d.core.load(ctx, run, upTo)
	if err != nil {
		return nil, err
	}
	return m.encode(), nil
}

// ItemBytes is what an item that has not begun takes in memory: its visit, its place in the
// superstep, and room for what it will write.
const ItemBytes = unsafe.Sizeof(task{}) + unsafe.Sizeof(int32(0)) + unsafe.Sizeof(state.Delta{})

// Eager returns o with a snapshot behind every append, and as many appends as there can be.
func Eager(o Options) Options {
	o.eager = true
	return o
}

// Replayed is what a snapshot of a run at an entry would hold if it were made from a replay
// of the log from its start.
func Replayed[S any](ctx context.Context, d *Dispatcher[S], run string, upTo uint64) ([]byte, error) {
	m := newMachine(d.core.plan)
	m.replaying = true
	for e, err := range d.core.store.Read(ctx, run, 1, upTo) {
		if err != nil {
			return nil, err
		}
		if err := d.core.replay(ctx, m, run, e); err != nil {
			return nil, err
		}
	}
	return m.encode(), nil
}
