package dispatcher_test

import (
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type wordy struct{ N state.Sum[int] }

// Promise P12: however much user code that decides has to say when it breaks, the log keeps
// the beginning of it.
func TestTextsOfDecisionsAreClipped(t *testing.T) {
	body := dag.New[wordy]("body")
	dag.Step(body, "step", nothing[wordy])
	inner, err := body.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New[wordy]("wordy")
	dag.Loop(b, "loop", inner, func(*wordy) bool { panic(strings.Repeat("x", 8<<20)) }, 2)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var store memory.Store
	d, err := dispatcher.New(g, &store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err == nil {
		t.Fatal("the run is completed")
	}
	for e, err := range store.Read(t.Context(), "r", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Data) > 256<<10 {
			t.Errorf("entry %d, %s, has %d bytes of data", e.Seq, e.Kind, len(e.Data))
		}
	}
}

// A reader that leaves a stream when its call has ended already is no race with the call.
func TestLeavingAStreamWhoseCallHasEnded(t *testing.T) {
	b := dag.New[wordy]("wordy")
	dag.Step(b, "step", nothing[wordy])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	rested := make(chan struct{})
	d, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{Observe: func(e dispatcher.Event) {
		if e.Kind == dispatcher.RunRested {
			close(rested)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range d.Stream(t.Context(), "r", nil, dispatcher.Listen{}) {
		<-rested
		break
	}
	if res, err := d.State(t.Context(), "r"); err != nil || len(res.Cursor.Visits) > 0 {
		t.Errorf("the run is %s at %s, %v", res.Status, res.Cursor, err)
	}
}
