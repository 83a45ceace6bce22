package dispatcher

import "time"

// WithNow returns o with a clock for the instants that are stored, for tests that let the
// wall clock jump.
func WithNow(o Options, now func() time.Time) Options {
	o.now = now
	return o
}
