package continuation

import (
	"context"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// The defaults are those that the comments of Options and HandlerOptions tell.
func TestDefaultsAreWhatTheyAreSaidToBe(t *testing.T) {
	b := dag.New[struct{}]("g")
	dag.Step(b, "only", func(context.Context, *struct{}) error { return nil })
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.options; o.Deliveries != 3 || o.Redeliver != time.Minute || o.Recheck != time.Minute {
		t.Errorf("the options are %+v", o)
	}
	h, err := r.Handler(HandlerOptions{Secret: make([]byte, 16)})
	if err != nil {
		t.Fatal(err)
	}
	if o := h.(*handler).o; o.Window != 5*time.Minute || o.MaxBytes != 1<<20 {
		t.Errorf("the options of the handler are %+v", o)
	}
}
