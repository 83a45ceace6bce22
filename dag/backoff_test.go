package dag_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
)

const (
	ms   = time.Millisecond
	ever = time.Duration(math.MaxInt64)
)

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		name    string
		backoff dag.Backoff
		attempt int
		want    time.Duration
	}{
		{"zero", dag.Backoff{}, 1, 0},
		{"zero with jitter", dag.Backoff{}.Jitter(1), 5, 0},
		{"constant", dag.Constant(7 * ms), 1, 7 * ms},
		{"constant", dag.Constant(7 * ms), math.MaxInt, 7 * ms},
		{"constant, negative", dag.Constant(-1), 1, 0},
		{"linear", dag.Linear(7*ms, 0), 1, 7 * ms},
		{"linear", dag.Linear(7*ms, 0), 3, 21 * ms},
		{"linear, at the maximum", dag.Linear(7*ms, 20*ms), 3, 20 * ms},
		{"linear, overflow", dag.Linear(time.Hour, 0), math.MaxInt, ever},
		{"linear, just below overflow", dag.Linear(1, 0), math.MaxInt, ever},
		{"linear, overflow at a maximum", dag.Linear(time.Hour, time.Minute), math.MaxInt, time.Minute},
		{"exponential", dag.Exponential(7*ms, 0), 1, 7 * ms},
		{"exponential", dag.Exponential(7*ms, 0), 2, 14 * ms},
		{"exponential", dag.Exponential(7*ms, 0), 5, 112 * ms},
		{"exponential, at the maximum", dag.Exponential(7*ms, 100*ms), 5, 100 * ms},
		{"exponential, a maximum below base", dag.Exponential(7*ms, ms), 1, ms},
		{"exponential, last before overflow", dag.Exponential(1, 0), 63, 1 << 62},
		{"exponential, overflow", dag.Exponential(1, 0), 64, ever},
		{"exponential, overflow", dag.Exponential(time.Hour, 0), math.MaxInt, ever},
		{"exponential of nothing", dag.Exponential(0, 0), math.MaxInt, 0},
		{"attempts count from 1", dag.Exponential(7*ms, 0), 0, 7 * ms},
		{"attempts count from 1", dag.Linear(7*ms, 0), math.MinInt, 7 * ms},
		{"decorrelated of nothing", dag.Decorrelated(0, 0), 3, 0},
	} {
		t.Run(fmt.Sprintf("%s/%d", c.name, c.attempt), func(t *testing.T) {
			if got := c.backoff.Delay("key", c.attempt, 0); got != c.want {
				t.Errorf("Delay = %v, want %v", got, c.want)
			}
		})
	}
}

func TestDecorrelatedLiesBetweenBaseAndThreeTimesThePreviousWait(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		base := time.Duration(random.Int64N(int64(time.Minute)))
		most := time.Duration(random.Int64N(int64(time.Hour)))
		previous := time.Duration(random.Int64() >> random.IntN(63))
		attempt := int(random.Int64() >> random.IntN(63))
		key := fmt.Sprint(random.Uint32())
		low, high := base, ever
		if p := max(previous, base); p <= ever/3 {
			high = 3 * p
		}
		if most > 0 {
			low, high = min(low, most), min(high, most)
		}
		got := dag.Decorrelated(base, most).Delay(key, attempt, previous)
		if got < low || got > high {
			t.Fatalf("Decorrelated(%v, %v).Delay(%q, %d, %v) = %v, want %v to %v",
				base, most, key, attempt, previous, got, low, high)
		}
	}
}

func TestJitterTakesAwayAtMostItsFraction(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		wait := time.Duration(random.Int64() >> random.IntN(63))
		fraction := random.Float64()
		if random.IntN(4) == 0 {
			fraction = 1
		}
		attempt := random.Int()
		got := dag.Constant(wait).Jitter(fraction).Delay("key", attempt, 0)
		low := time.Duration(float64(wait)*(1-fraction)) - time.Duration(float64(wait)*1e-15) - 1
		if got < max(low, 0) || got > wait {
			t.Fatalf("a wait of %v with jitter %v became %v", wait, fraction, got)
		}
	}
}

func TestDelaysAreTheSameInEveryProcess(t *testing.T) {
	b := dag.Decorrelated(100*ms, time.Minute).Jitter(0.5)
	for _, c := range []struct {
		key      string
		attempt  int
		previous time.Duration
		want     time.Duration
	}{
		{"run/library", 1, 0, 280584385},
		{"run/library", 2, 200 * ms, 109257076},
		{"run/subjects", 2, 200 * ms, 473198432},
	} {
		if got := b.Delay(c.key, c.attempt, c.previous); got != c.want {
			t.Errorf("Delay(%q, %d, %v) = %d, want %d", c.key, c.attempt, c.previous, got, c.want)
		}
	}
}

// Waits of different visits, and of different attempts, spread evenly.
func TestDelaysSpread(t *testing.T) {
	const draws, buckets = 20_000, 20
	for name, delay := range map[string]func(i int) time.Duration{
		"keys":     func(i int) time.Duration { return dag.Constant(buckets).Jitter(1).Delay(fmt.Sprint("run/", i), 1, 0) },
		"attempts": func(i int) time.Duration { return dag.Constant(buckets).Jitter(1).Delay("run/x", i+1, 0) },
		"decorrelated": func(i int) time.Duration {
			return dag.Decorrelated(buckets/2, 0).Delay(fmt.Sprint("run/", i), 1, 0) - buckets/2
		},
	} {
		counts := make([]int, buckets+1)
		for i := range draws {
			counts[delay(i)]++
		}
		chi, mean := 0.0, float64(draws)/float64(len(counts))
		for _, n := range counts {
			chi += (float64(n) - mean) * (float64(n) - mean) / mean
		}
		if chi > 45.3 { // 20 degrees of freedom, one chance in 1 000; the draws are fixed
			t.Errorf("%s: chi² = %.1f, counts %v", name, chi, counts)
		}
	}
}

// What Decorrelated picks and what Jitter takes away are independent.
func TestTheTwoDrawsDiffer(t *testing.T) {
	equal := 0
	for i := range 1000 {
		key := fmt.Sprint(i)
		a := dag.Decorrelated(1000, 0).Delay(key, 1, 0) - 1000
		b := 2000 - dag.Constant(2000).Jitter(1).Delay(key, 1, 0)
		if a == b {
			equal++
		}
	}
	if equal > 10 {
		t.Errorf("%d of 1000 are equal", equal)
	}
}

func TestBackoffsAreComparable(t *testing.T) {
	if dag.Exponential(ms, time.Second) != dag.Exponential(ms, time.Second) ||
		dag.Exponential(ms, 0) == dag.Linear(ms, 0) || dag.Constant(0) != (dag.Backoff{}) {
		t.Error("equal backoffs differ, or others are equal")
	}
}

func BenchmarkDelay(b *testing.B) {
	backoff := dag.Exponential(ms, time.Second).Jitter(0.5)
	b.ReportAllocs()
	for b.Loop() {
		backoff.Delay("0198c1c2-7a3e-7c1b-9c55-0d6f2c7f1a11/compose-loop/2/validate", 3, 0)
	}
}
