package dag

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A Backoff says how long a visit waits between two attempts. The zero Backoff does not wait.
// Backoffs are comparable.
//
// Waits go by the number of the attempt. If a failed run is resumed its visits get a new budget of
// attempts, and their waits go on growing from where they were.
//
// What is random in a wait is computed from the visit and the number of the attempt, not drawn from
// a source, so a recovered run waits as long as it would have waited live.
type Backoff struct {
	shape  shape
	base   time.Duration // the first wait; the increment of linear
	max    time.Duration // zero means no maximum
	jitter float64       // the part of a wait that is random, 0 to 1
}

type shape uint8

const (
	constant shape = iota
	linear
	exponential
	decorrelated
)

// Constant waits d every time.
func Constant(d time.Duration) Backoff { return Backoff{shape: constant, base: d} }

// Linear waits min(max, step × attempt). A max of zero means no maximum.
func Linear(step, max time.Duration) Backoff {
	return Backoff{shape: linear, base: step, max: max}
}

// Exponential waits min(max, base × 2^(attempt−1)). A max of zero means no maximum.
func Exponential(base, max time.Duration) Backoff {
	return Backoff{shape: exponential, base: base, max: max}
}

// Decorrelated waits min(max, uniform(base, 3 × previous)), where the wait previous to
// the first is base: the "decorrelated jitter" of the AWS Architecture Blog,
// "Exponential Backoff And Jitter", 2015. A max of zero means no maximum.
func Decorrelated(base, max time.Duration) Backoff {
	return Backoff{shape: decorrelated, base: base, max: max}
}

// Jitter makes the last fraction, 0 to 1, of every wait random: a wait of d becomes
// uniform(d − fraction × d, d), never longer than d. A fraction of 1 is what the article
// above calls full jitter, 0.5 is its equal jitter.
func (b Backoff) Jitter(fraction float64) Backoff {
	b.jitter = fraction
	return b
}

// Delay is how long to wait after attempt number attempt, counted from 1, has failed.
// previous is the wait that Delay gave after the attempt before, zero if there was none;
// only [Decorrelated] looks at it.
//
// key is the idempotency key of the visit. The same arguments give the same wait, in
// every process: the random numbers are the first 64 bits of
// SHA-256(choice, attempt as 8 bytes big-endian, key), where choice is one byte: 0 for
// what Decorrelated picks, 1 for what Jitter does.
func (b Backoff) Delay(key string, attempt int, previous time.Duration) time.Duration {
	attempt = max(attempt, 1)
	base := max(b.base, 0)
	wait := base
	switch b.shape {
	case linear:
		wait = times(base, uint64(attempt))
	case exponential:
		wait = times(base, 1<<min(attempt-1, 63))
	case decorrelated:
		span := times(max(previous, base), 3) - base
		wait = base + uniform(span, random(0, key, attempt))
	}
	if b.max > 0 {
		wait = min(wait, b.max)
	}
	if b.jitter >= 1 {
		return wait - uniform(wait, random(1, key, attempt))
	}
	if b.jitter > 0 {
		part := time.Duration(float64(wait) * b.jitter)
		wait -= uniform(part, random(1, key, attempt))
	}
	return wait
}

// problems says what is wrong with b.
func (b Backoff) problems() (all []string) {
	if b.base < 0 {
		all = append(all, fmt.Sprintf("waits a negative time: %v", b.base))
	}
	if b.max < 0 {
		all = append(all, fmt.Sprintf("has a negative maximum: %v", b.max))
	}
	if !(b.jitter >= 0 && b.jitter <= 1) {
		all = append(all, fmt.Sprintf("has a jitter of %v, which is not from 0 to 1", b.jitter))
	}
	return all
}

// times is d × n, or the longest duration if that is too much. d is not negative.
func times(d time.Duration, n uint64) time.Duration {
	high, low := bits.Mul64(uint64(d), n)
	if high != 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(low)
}

// uniform maps a random number onto 0 to span, both included.
func uniform(span time.Duration, r uint64) time.Duration {
	high, _ := bits.Mul64(r, uint64(span)+1)
	return time.Duration(high)
}

func random(choice byte, key string, attempt int) uint64 {
	in := binary.BigEndian.AppendUint64([]byte{choice}, uint64(attempt))
	sum := sha256.Sum256(append(in, key...))
	return binary.BigEndian.Uint64(sum[:8])
}
