package storetest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// A recorder is a test whose failure is what is hoped for. What it does not write down it leaves to
// the test that it belongs to.
type recorder struct {
	testing.TB

	mu              sync.Mutex
	failed, skipped bool
	said            strings.Builder
}

// record checks a rule in the store of f, as [Run] does, in a bubble of its own, where it costs
// nothing to wait for what a broken store never does.
func record(t *testing.T, r rule, f Factory) *recorder {
	t.Helper()
	rec := new(recorder)
	synctest.Test(t, func(t *testing.T) {
		rec.TB = t
		r.try(rec, f)
	})
	return rec
}

func (r *recorder) Helper() {}

func (r *recorder) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said.WriteString(fmt.Sprintln(args...))
}

func (r *recorder) Logf(format string, args ...any) { r.Log(fmt.Sprintf(format, args...)) }

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Error(args ...any) {
	r.Log(args...)
	r.Fail()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.Fail()
}

func (r *recorder) Fatal(args ...any) {
	r.Log(args...)
	r.FailNow()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Logf(format, args...)
	r.FailNow()
}

func (r *recorder) Skip(args ...any) {
	r.Log(args...)
	r.SkipNow()
}

func (r *recorder) Skipf(format string, args ...any) {
	r.Logf(format, args...)
	r.SkipNow()
}

// text is all that was said.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.String()
}
