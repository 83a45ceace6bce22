package dispatcher_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A chat is one loop round one call: OrStart has the first line begin the run, and every later
// one is a turn of it. Continue, before, ends the turn that a killed process has left.
func Example_chat() {
	b := dag.New[Conversation]("parrot")
	dag.Step(b, "reply", reply)
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(graph, new(memory.Store), dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := d.Continue(ctx, "polly"); err != nil && !errors.Is(err, dispatcher.ErrNotFound) {
		log.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader("hello\nwho is there\n")); lines.Scan(); {
		res, err := d.Turn(ctx, "polly", speaks(lines.Text()), dispatcher.OrStart())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Turn, res.State.Answers.At(res.State.Answers.Len()-1))
	}
	// Output:
	// 1 polly/reply: HELLO!
	// 2 polly/2/reply: WHO IS THERE!
}
