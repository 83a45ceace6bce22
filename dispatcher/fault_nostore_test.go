package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Without a store only Start works; all else is refused by name.
func TestNoStoreRefusals(t *testing.T) {
	quiet(t)
	var w witness
	d := process(t, line(t, &w, nil), nil, dispatcher.Options{})
	_, runErr := d.Run(t.Context(), run, nil)
	_, resumeErr := d.Resume(t.Context(), run)
	_, stateErr := d.State(t.Context(), run)
	_, atErr := d.At(t.Context(), run, "1")
	var historyErr error
	for _, err := range d.History(t.Context(), run) {
		historyErr = err
	}
	for name, err := range map[string]error{
		"Run": runErr, "Resume": resumeErr, "State": stateErr, "At": atErr, "History": historyErr,
		"Cancel": d.Cancel(t.Context(), run, nil), "Answer": d.Answer(t.Context(), run, "id", true),
	} {
		if !errors.Is(err, dispatcher.ErrNoStore) {
			t.Errorf("%s returned %v, want ErrNoStore", name, err)
		}
		says := `dispatcher: run "tale": needs a store: give New one`
		if name == "Run" { // which Start does without
			says += ", or begin it with Start, which keeps no log"
		}
		if fmt.Sprint(err) != says {
			t.Errorf("%s returned %v, want %s", name, err, says)
		}
	}
	w.expect(t)
	asks := effectNode(t, askFor[int], dag.Policy{})
	_, err := process(t, asks, nil, dispatcher.Options{}).Start(t.Context(), run, nil)
	if want := `dispatcher: run "tale" failed at pay: visit pay failed: dispatcher: Ask("many") needs a store: give New one`; fmt.Sprint(err) != want {
		t.Errorf("a question returned %v, want %s", err, want)
	}
	res, err := d.Start(t.Context(), run, nil)
	completes(t, res, err)
	says(t, res.State, "a", "b", "c")
}

// Options that need a log are refused without a store, each by its name.
func TestNoStoreOptions(t *testing.T) {
	g := callsGraph(t, nothing[Tale])
	for name, o := range map[string]dispatcher.Options{
		"InterruptBefore": {InterruptBefore: []string{"only"}},
		"InterruptAfter":  {InterruptAfter: []string{"only"}},
		"InterruptIf":     {InterruptIf: func(dispatcher.Boundary) bool { return false }},
		"Retention":       {Retention: dispatcher.Retention{Last: 1}},
		"Lag":             {Lag: 1},
		"Migrations":      {Migrations: []dispatcher.Migration{{Name: "m"}}},
		"StaleAfter":      {StaleAfter: time.Hour},
		"Revalidate":      {Revalidate: func(context.Context, dag.Dependency) error { return nil }},
		"Gates":           gated(dispatcher.Gates{Preset: dispatcher.GateWrites}),
	} {
		var option *dispatcher.OptionError
		if _, err := dispatcher.New(g, nil, o); !errors.As(err, &option) || option.Option != name {
			t.Errorf("New with %s returns %v", name, err)
		}
	}
}

// The rules of execution hold without a store.
func TestNoStoreRuns(t *testing.T) {
	for _, c := range []struct {
		name      string
		body      part
		status    checkpoint.Status
		cursor    string
		abandoned []string
		is        error
	}{
		{"failure", func(context.Context, *Tale) error { return errWeather }, checkpoint.StatusFailed, "b", nil, errWeather},
		{"panic", func(context.Context, *Tale) error { panic(errWeather) }, checkpoint.StatusFailed, "b", nil, errWeather},
		{"deadline", func(ctx context.Context, _ *Tale) error { return heeds(ctx, time.Hour) }, checkpoint.StatusTimedOut, "b", nil, nil},
		{"stubborn", func(context.Context, *Tale) error { lasts(time.Hour); return nil }, checkpoint.StatusTimedOut, "b", []string{"b"}, nil},
		{"late", func(context.Context, *Tale) error { lasts(62 * time.Second); return nil }, checkpoint.StatusTimedOut, "c", nil, nil},
		{"question", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Ask[bool](ctx, "sure", "sure?")
			return err
		}, checkpoint.StatusFailed, "b", nil, dispatcher.ErrNoStore},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				end := time.Now().Add(time.Minute)
				res, err := process(t, line(t, &w, c.body), nil, dispatcher.Options{}).Start(ctx, run, nil)
				rests(t, res, err, c.status, c.cursor)
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("the error is %v, want %v in it", err, c.is)
				}
				if took := time.Since(end); took > 5*time.Second || !slices.Equal(res.Abandoned, c.abandoned) {
					t.Errorf("the call returned %v after its deadline and abandoned %q, want %q", took, res.Abandoned, c.abandoned)
				}
				w.expect(t, "a", "b")
				lasts(2 * time.Hour) // whoever was abandoned has returned
			})
		})
	}
}
