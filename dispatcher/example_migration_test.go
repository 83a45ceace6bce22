package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Letter is what the first release of a program writes: names are one string.
type Letter struct {
	Name state.Value[string]
	Text state.Value[string]
}

// A LetterOfNow is what the second release writes.
type LetterOfNow struct {
	Names state.List[string]
	Text  state.Value[string]
}

// A migration takes runs that are under way over a change of their past: it says what nodes
// are called now, and makes the new state of the old one. It is asked once for a run; what
// it said is in the run's log.
func Example_migration() {
	ctx := context.Background()
	store := new(memory.Store)

	b := dag.New[Letter]("letters")
	who := dag.Step(b, "who", func(_ context.Context, l *Letter) error {
		l.Name.Set("Ada Lovelace")
		return nil
	})
	dag.Step(b, "write", func(context.Context, *Letter) error {
		return errors.New("out of ink")
	}, who)
	first, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := dispatcher.New(first, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = d.Run(ctx, "letter-1", nil)
	fmt.Println(err)

	n := dag.New[LetterOfNow]("letters")
	addressee := dag.Step(n, "addressee", func(context.Context, *LetterOfNow) error { return nil })
	dag.Step(n, "write", func(_ context.Context, l *LetterOfNow) error {
		l.Text.Set("Dear " + l.Names.Slice()[0])
		return nil
	}, addressee)
	second, err := n.Build()
	if err != nil {
		log.Fatal(err)
	}
	next, err := dispatcher.New(second, store, dispatcher.Options{Migrations: []dispatcher.Migration{{
		Name:  "names are a list",
		From:  first.Digest(),
		Nodes: map[string]string{"who": "addressee"},
		State: func(_ string, old json.RawMessage) (json.RawMessage, error) {
			var was struct{ Name, Text string }
			if err := json.Unmarshal(old, &was); err != nil {
				return nil, err
			}
			return json.Marshal(map[string]any{"Names": strings.Fields(was.Name), "Text": was.Text})
		},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := next.Resume(ctx, "letter-1")
	fmt.Println(res.Status, res.State.Names.Slice(), res.State.Text.Get(), err)
	// Output:
	// dispatcher: run "letter-1" failed at write: visit write failed: out of ink
	// completed [Ada Lovelace] Dear Ada <nil>
}
