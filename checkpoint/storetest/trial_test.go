package storetest

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// odd does something else than tell what is known of a run.
type odd struct {
	sound
	stat func(context.Context)
}

func (s odd) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	s.stat(ctx)
	return s.Faulty.Stat(ctx, run)
}

// oddly is the Factory of stores that are odd. What hangs ends with the test.
func oddly(stat func(ctx context.Context, end <-chan struct{})) Factory {
	f := over(func(s sound) checkpoint.Store { return s })
	f.Open = func(t testing.TB, _ string) checkpoint.Store {
		end := make(chan struct{})
		t.Cleanup(func() { close(end) })
		return odd{sound{new(memory.Faulty)}, func(ctx context.Context) { stat(ctx, end) }}
	}
	return f
}

// A store that panics, ends its goroutine, or does not return, with its context or not at all,
// fails the case, which says where that was and what the rule is, also in a goroutine beside the
// case's own.
func TestPanicsAndHangsFailTheirCase(t *testing.T) {
	for name, c := range map[string]struct {
		stat func(ctx context.Context, end <-chan struct{})
		says string
	}{
		"a panic":                   {func(context.Context, <-chan struct{}) { panic("out of order") }, "panic: out of order"},
		"Goexit":                    {func(context.Context, <-chan struct{}) { runtime.Goexit() }, "has called runtime.Goexit"},
		"a call that hangs":         {func(ctx context.Context, _ <-chan struct{}) { <-ctx.Done() }, "has not returned within 2m0s"},
		"a call that obeys nothing": {func(_ context.Context, end <-chan struct{}) { <-end }, "has not returned within 2m0s"},
	} {
		for _, rule := range []string{"contract/AppendCountsWithoutGaps", "concurrency/HistoryHasAnOrder"} {
			if name == "a call that obeys nothing" && rule != "contract/AppendCountsWithoutGaps" {
				continue // its drawing would be made when the test is over
			}
			rec := record(t, find(t, rule), oddly(c.stat))
			if said := rec.text(); !rec.Failed() || !strings.Contains(said, c.says) ||
				name != "Goexit" && !strings.Contains(said, "odd.Stat") || !strings.Contains(said, "the rule: ") {
				t.Errorf("of %s %s says %q, want what happened, where, and the rule", name, rule, said)
			}
		}
	}
}

// A function of the Factory that returns no store fails its case, by the name of the field.
func TestNoStoreIsRefused(t *testing.T) {
	nothing := func(testing.TB, string, checkpoint.Store) checkpoint.Store { return nil }
	damaged := func(testing.TB, string, checkpoint.Store, Damage) (checkpoint.Store, error) { return nil, nil }
	for rule, change := range map[string]func(*Factory){
		"contract/AppendIsReadBack":        func(f *Factory) { f.Open = func(testing.TB, string) checkpoint.Store { return nil } },
		"durability/DeletedStaysDeleted":   func(f *Factory) { f.Reopen = nothing },
		"crash/AcknowledgedSurvivesACrash": func(f *Factory) { f.Crash = nothing },
		"corruption/FlippedBitIsFound":     func(f *Factory) { f.Corrupt = damaged },
	} {
		f := over(func(s sound) checkpoint.Store { return s })
		change(&f)
		if rec := record(t, find(t, rule), f); !rec.Failed() || !strings.Contains(rec.text(), "has returned nil: return a store") {
			t.Errorf("%s says %q", rule, rec.text())
		}
	}
}

// A Factory without Open ends the test at once, and says what to give.
func TestOpenIsNeeded(t *testing.T) {
	if os.Getenv("PAWL_NO_OPEN") == "1" {
		Run(t, Factory{})
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenIsNeeded$")
	cmd.Env = append(os.Environ(), "PAWL_NO_OPEN=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Factory.Open is nil: give a function") {
		t.Errorf("Run with the zero Factory: %v, %s", err, out)
	}
}
