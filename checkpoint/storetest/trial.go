package storetest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

const (
	// patience is how long a case that is abandoned may take to end by itself.
	patience = 10 * time.Second

	// standstill is how long a case may make no call of the store before it counts as hung. It has
	// to be enough for the longest call on a busy machine.
	standstill = 2 * time.Minute
)

// A trial is a rule being checked: the test, and what can be done with its store.
type trial struct {
	testing.TB
	f   Factory
	dir string

	ctx   context.Context
	still *time.Timer // fires when there was no call for a standstill
	over  atomic.Bool // the test has ended; what of the trial hangs says no more
}

// try checks the rule in a new store, and says what the rule is if it is broken. A panic is a
// failure of this case alone, and so is a call that does not return: it is abandoned. try needs
// nothing of tb that only the testing package could give: a recorder will do.
func (r rule) try(tb testing.TB, f Factory) {
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	t := &trial{TB: tb, f: f, dir: tb.TempDir(), ctx: ctx, still: time.NewTimer(standstill)}
	defer t.still.Stop()
	ended := make(chan struct{})
	go func() { // waited for below, unless it hangs in the store
		defer close(ended)
		t.guard(func() { r.check(t, t.given("Open", f.Open(tb, t.dir))) })
	}()
	select {
	case <-ended:
	case <-t.still.C:
		t.Errorf("a call of the store, or a function of the Factory, has not returned within %v, or nobody was woken by what was appended: it is abandoned here:\n%s",
			standstill, stacks(r))
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
		}
	}
	t.over.Store(true)
	if t.Failed() {
		t.Logf("the rule: %s", r.text())
	}
}

// guard makes a failure of what f ends with, if that is neither a return nor the end of the test.
func (t *trial) guard(f func()) {
	returned := false
	defer func() {
		p := recover()
		switch {
		case t.over.Load(): // nobody listens
		case p != nil:
			t.Errorf("panic: %v\n%s", p, debug.Stack())
		case !returned && !t.Failed() && !t.Skipped():
			t.Errorf("the store, or the Factory, has called runtime.Goexit")
		}
	}()
	f()
	returned = true
}

// beside runs f in a goroutine that all waits for.
func (t *trial) beside(all *sync.WaitGroup, f func()) { all.Go(func() { t.guard(f) }) }

// Context is for the next call of the store. It ends with the case, and a case that was abandoned
// ends when it asks for another.
func (t *trial) Context() context.Context {
	if t.over.Load() {
		runtime.Goexit()
	}
	t.still.Reset(standstill)
	return t.ctx
}

func (t *trial) reopen(s checkpoint.Store) checkpoint.Store {
	return t.given("Reopen", t.f.Reopen(t.TB, t.dir, s))
}

func (t *trial) crash(s checkpoint.Store) checkpoint.Store {
	return t.given("Crash", t.f.Crash(t.TB, t.dir, s))
}

// given returns the store that a function of the Factory has returned, and fails if that is nil.
func (t *trial) given(field string, s checkpoint.Store) checkpoint.Store {
	t.Helper()
	if t.still.Reset(standstill); s == nil {
		t.Fatalf("storetest: Factory.%s has returned nil: return a store, or end the test with t.Fatal", field)
	}
	return s
}

// size scales a number of bytes, at most mostLarge, to what the store is said to hold.
func (t *trial) size(n int) int {
	if t.f.Limits.Large == 0 {
		return n
	}
	return max(1, int(int64(n)*int64(t.f.Limits.Large)/mostLarge))
}

// stacks says where the goroutines stand that check the rule.
func stacks(r rule) string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var ours []string
	for g := range strings.SplitSeq(string(all), "\n\n") {
		if strings.Contains(g, "/storetest."+r.function()) {
			ours = append(ours, g)
		}
	}
	if len(ours) == 0 {
		return fmt.Sprintf("no goroutine of %s is left", r.name)
	}
	return strings.Join(ours, "\n\n")
}
