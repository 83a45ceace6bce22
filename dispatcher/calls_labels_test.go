package dispatcher_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// Labels and the correlation id are given when a run is opened: the run is listed by them,
// results and all events tell them, and every call that goes on inherits them.
func TestCallsLabelsAreInherited(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var mu sync.Mutex
		var events []dispatcher.Event
		o.InterruptBefore = []string{"only"}
		o.Observe = func(e dispatcher.Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}
		ctx := t.Context()
		labels := map[string]string{"tenant": "a b", "empty": ""}
		first := callsDispatcher(t, callsGraph(t, new(witness).sees(nil)), store, o)
		res, err := first.Run(ctx, run, nil, dispatcher.Labels(labels), dispatcher.Correlation("order 7"))
		rests(t, res, err, checkpoint.StatusInterrupted, "only")
		if _, err := first.Run(ctx, "other", nil, dispatcher.Labels(map[string]string{"tenant": "c"})); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		second := callsDispatcher(t, callsGraph(t, new(witness).sees(nil)), store, o)
		res, err = second.Resume(ctx, run)
		completes(t, res, err)
		if !maps.Equal(res.Labels, labels) || res.Correlation != "order 7" {
			t.Errorf("the result tells %v, %q", res.Labels, res.Correlation)
		}
		for _, e := range events {
			if e.Run == run && (!maps.Equal(e.Labels, labels) || e.Correlation != "order 7") {
				t.Errorf("%s tells %v, %q", e, e.Labels, e.Correlation)
			}
		}
		for e, err := range second.Events(ctx, run, dispatcher.Listen{Since: 2}) {
			if err != nil || !maps.Equal(e.Labels, labels) || e.Correlation != "order 7" {
				t.Errorf("read later, %s tells %v, %q, %v", e, e.Labels, e.Correlation, err)
			}
		}
		page, err := store.List(ctx, checkpoint.Filter{Labels: map[string]string{"tenant": "a b"}})
		if err != nil || len(page) != 1 || page[0].Run != run || page[0].Correlation != "order 7" {
			t.Errorf("List finds %+v, %v", page, err)
		}
	})
}

// A run to which nobody gives a correlation id has one of its own, which stays.
func TestCallsCorrelationByDefault(t *testing.T) {
	d := process(t, callsGraph(t, new(witness).sees(nil)), new(memory.Store), dispatcher.Options{InterruptBefore: []string{"only"}})
	seen := map[string]bool{}
	for i := range 3 {
		id := fmt.Sprint("run ", i)
		res, err := d.Run(t.Context(), id, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "only")
		again, err := d.Resume(t.Context(), id)
		completes(t, again, err)
		if len(res.Correlation) != 36 || seen[res.Correlation] || again.Correlation != res.Correlation {
			t.Errorf("correlation %q, later %q", res.Correlation, again.Correlation)
		}
		seen[res.Correlation] = true
	}
}

// Given again, labels and correlation have to be those that the run was opened with.
func TestCallsLabelsGivenAgain(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsGraph(t, new(witness).sees(nil)), store, dispatcher.Options{InterruptBefore: []string{"only"}})
	ctx := t.Context()
	opening := []dispatcher.RunOption{dispatcher.Labels(map[string]string{"k": "v"}), dispatcher.Correlation("c")}
	for range 2 {
		res, err := d.Run(ctx, run, nil, opening...)
		rests(t, res, err, checkpoint.StatusInterrupted, "only")
	}
	before := len(readLog(t, store))
	for name, option := range map[string]dispatcher.RunOption{
		"Labels":      dispatcher.Labels(map[string]string{"k": "w"}),
		"Correlation": dispatcher.Correlation("d"),
	} {
		for how, f := range map[string]func() (*dispatcher.Result[Tale], error){
			"Run":    func() (*dispatcher.Result[Tale], error) { return d.Run(ctx, run, nil, option) },
			"Resume": func() (*dispatcher.Result[Tale], error) { return d.Resume(ctx, run, option) },
		} {
			res, err := f()
			var o *dispatcher.OptionError
			if !errors.As(err, &o) || o.Option != name || res.Status != checkpoint.StatusInterrupted {
				t.Errorf("%s with other %s: %v, %s", how, name, err, res.Status)
			}
		}
	}
	if n := len(readLog(t, store)); n != before {
		t.Errorf("the refused calls left %d entries", n-before)
	}
	res, err := d.Resume(ctx, run, append(opening, dispatcher.RunOption{})...)
	completes(t, res, err)
}

// Labels and ids that can't be are refused before anything happens.
func TestCallsLabelsRefused(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsGraph(t, new(witness).sees(nil)), store, dispatcher.Options{})
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint(i)] = ""
	}
	for name, option := range map[string]dispatcher.RunOption{
		"many labels":       dispatcher.Labels(many),
		"empty key":         dispatcher.Labels(map[string]string{"": "v"}),
		"long key":          dispatcher.Labels(map[string]string{strings.Repeat("k", 129): "v"}),
		"key not UTF-8":     dispatcher.Labels(map[string]string{"\xff": "v"}),
		"long value":        dispatcher.Labels(map[string]string{"k": strings.Repeat("v", 1025)}),
		"value not UTF-8":   dispatcher.Labels(map[string]string{"k": "\xff"}),
		"control character": dispatcher.Labels(map[string]string{"k": "a\nb"}),
		"empty id":          dispatcher.Correlation(""),
		"long id":           dispatcher.Correlation(strings.Repeat("c", 257)),
		"id not UTF-8":      dispatcher.Correlation("\xff"),
	} {
		var o *dispatcher.OptionError
		if _, err := d.Run(t.Context(), run, nil, option); !errors.As(err, &o) {
			t.Errorf("%s: %v, want an OptionError", name, err)
		}
	}
	for name, option := range map[string]dispatcher.RunOption{
		"label by name":  dispatcher.Labels(map[string]string{"api-key": "x"}),
		"label by form":  dispatcher.Labels(map[string]string{"k": "ghp_0123456789abcdef"}),
		"id by form":     dispatcher.Correlation("Bearer abcdef"),
		"key of a label": dispatcher.Labels(map[string]string{"AKIA0123456789ABCDEF": ""}),
	} {
		var o *dispatcher.SecretError
		if _, err := d.Run(t.Context(), run, nil, option); !errors.As(err, &o) {
			t.Errorf("%s: %v, want a SecretError", name, err)
		}
	}
	if _, err := store.Stat(t.Context(), run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("the refused calls left a run: %v", err)
	}
}
