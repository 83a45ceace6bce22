package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Backup moves photos off a camera.
type Backup struct {
	Photos state.List[string]
}

// A cancelled run stops where it stands. What has finished is kept, and the same line,
// run again in this process or another one that has the store, goes on from there.
func Example_cancelAndResume() {
	ctx, interrupt := context.WithCancel(context.Background()) // in a program: signal.NotifyContext

	b := dag.New[Backup]("backup")
	copied := dag.Step(b, "copy", func(_ context.Context, b *Backup) error {
		b.Photos.Append("beach.jpg", "dunes.jpg")
		fmt.Println("copied", b.Photos.Len())
		interrupt() // Ctrl-C, just now
		return nil
	})
	dag.Step(b, "erase", func(_ context.Context, b *Backup) error {
		fmt.Println("erased", b.Photos.Slice())
		return nil
	}, copied)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	res, err := d.Run(ctx, "camera", nil)
	fmt.Println(res.Status, errors.Is(err, context.Canceled))
	fmt.Println("still to run:", res.Cursor.Visits)

	res, err = d.Run(context.Background(), "camera", nil)
	fmt.Println(res.Status, err)
	// Output:
	// copied 2
	// cancelled true
	// still to run: [erase]
	// erased [beach.jpg dunes.jpg]
	// completed <nil>
}
