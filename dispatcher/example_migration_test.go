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

// A struct in a cell gets a field: the cell then is of another type, and a run whose cell holds
// something is refused, also a completed one that is only read. A migration whose State returns
// what it gets takes all such runs over the change, as long as the dispatcher has it.
func Example_migrationOfAStruct() {
	type Address struct{ Street, City string }
	type Order struct{ To state.Value[Address] }
	b := dag.New[Order]("orders")
	dag.Step(b, "take", func(_ context.Context, o *Order) error {
		o.To.Set(Address{"Long Lane 1", "Lisbon"})
		return nil
	})
	first, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	ctx, store := context.Background(), new(memory.Store)
	d, err := dispatcher.New(first, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	res, err := d.Run(ctx, "order-1", nil)
	fmt.Println(res.Status, err)

	type AddressOfNow struct{ Street, City, Zip string }
	type OrderOfNow struct{ To state.Value[AddressOfNow] }
	n := dag.New[OrderOfNow]("orders")
	dag.Step(n, "take", func(context.Context, *OrderOfNow) error { return nil })
	second, err := n.Build()
	if err != nil {
		log.Fatal(err)
	}
	for _, migrations := range [][]dispatcher.Migration{nil, {{
		Name:  "addresses have a zip",
		State: func(_ string, old json.RawMessage) (json.RawMessage, error) { return old, nil },
	}}} {
		next, err := dispatcher.New(second, store, dispatcher.Options{Migrations: migrations})
		if err != nil {
			log.Fatal(err)
		}
		res, err := next.State(ctx, "order-1")
		if changed := new(dispatcher.GraphChangedError); errors.As(err, &changed) {
			fmt.Println(changed.Changes)
			continue
		}
		fmt.Printf("%s %+v %v\n", res.Status, res.State.To.Get(), err)
	}
	// Output:
	// completed <nil>
	// [cell To was a value of {City: string, Street: string} and is a value of {City: string, Street: string, Zip: string}]
	// completed {Street:Long Lane 1 City:Lisbon Zip:} <nil>
}
