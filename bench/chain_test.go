package main

import (
	"context"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A run that has not done all that is measured is refused, and so is one whose nodes did nothing.
func TestCountsTo(t *testing.T) {
	steps, writes := ran(t, 3, step), ran(t, 3, write)
	idle := ran(t, 3, func(context.Context, *Work) error { return nil })
	for _, test := range []struct {
		name string
		err  error
		want string // "" is none
	}{
		{"steps", countsTo(steps, 3), ""},
		{"one more step", countsTo(steps, 4), "should count to 4, not to 3"},
		{"keep", countsTo(ran(t, 3, keep), 3), ""},
		{"idle", countsTo(idle, 3), "should count to 3, not to 0"},
		{"all steps", ranAll(steps, 3), ""},
		{"all writes", ranAll(writes, 3), ""},
		{"all long writes", ranAll(ran(t, 3, writeLong), 3), ""},
		{"one more write", ranAll(writes, 4), "has ended 3 supersteps, not 4"},
		{"all idle", ranAll(idle, 3), "should count to 3, not to 0"},
	} {
		if (test.err == nil) != (test.want == "") || test.err != nil && !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, test.err, test.want)
		}
	}
}

// What is measured counts to the number of its nodes.
func TestWindowsCount(t *testing.T) {
	for name, c := range map[string]contender{
		"starts": starts(3), "fan": fanOuts(), "stored": stored(chain(3, step), fill), "kept": stored(chain(3, keep), nil),
	} {
		if err := c(2); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	nothing := func(context.Context, *Work) error { return nil }
	if err := stored(chain(3, nothing), nil)(2); err == nil {
		t.Error("a chain whose nodes do nothing is measured")
	}
}

// ran runs a chain of n nodes.
func ran[S any](t *testing.T, n int, f func(context.Context, *S) error) *dispatcher.Result[S] {
	t.Helper()
	r, err := dispatch(chain(n, f), checkpoint.Store(new(memory.Store)), dispatcher.Options{}).Start(t.Context(), "run", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
