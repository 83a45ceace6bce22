package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Forecast needs one measurement.
type Forecast struct {
	Celsius state.Value[int]
}

// A Thermometer tells the temperature when it has measured it.
type Thermometer chan int

// Read is a node that obeys its context.
func (t Thermometer) Read(ctx context.Context, f *Forecast) error {
	select {
	case celsius := <-t:
		f.Celsius.Set(celsius)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A run that meets its deadline rests, timed out, with a cursor at what had not finished.
// With more time it goes on.
func Example_deadline() {
	thermometer := make(Thermometer, 1)
	b := dag.New[Forecast]("forecast")
	dag.Step(b, "read", thermometer.Read)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	res, err := d.Run(ctx, "monday", nil)
	fmt.Println(res.Status, errors.Is(err, context.DeadlineExceeded))
	fmt.Println("still to run:", res.Cursor.Visits)

	thermometer <- 21
	res, err = d.Run(context.Background(), "monday", nil)
	fmt.Println(res.Status, err, res.State.Celsius.Get())
	// Output:
	// timed_out true
	// still to run: [read]
	// completed <nil> 21
}
