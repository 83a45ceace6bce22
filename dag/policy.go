package dag

import "time"

// A Policy says how the attempts of a visit are made. The zero Policy is one attempt
// without a time limit.
type Policy struct {
	// Attempts is how many attempts a visit has before it fails. Zero means 1.
	Attempts int
	// Timeout bounds one attempt: when it has passed the attempt's context is cancelled,
	// and an error that the function then returns is a failed attempt of kind
	// [FailedTimeout]. Zero means no limit.
	Timeout time.Duration
	// Backoff is the wait between attempts. Zero means none.
	Backoff Backoff
	// Retry says which errors that the function returned are worth another attempt. A panic
	// is not asked about: with a Retry it is final. Nil means every failure is worth one.
	Retry func(error) bool
}
