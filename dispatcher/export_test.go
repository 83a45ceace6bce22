package dispatcher

import (
	"context"
	"time"
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
