package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
	"github.com/pawlgo/pawl/state"
)

// An Inquiry is what the graphs of the tests know.
type Inquiry struct {
	Answer state.Value[string]
}

var (
	ann  = record.Author{Type: dag.Human, ID: "ann"}
	bot  = record.Author{Type: dag.Agent, ID: "bot"}
	cron = record.Author{Type: dag.System, ID: "cron"}
)

// inquire makes a dispatcher of a graph of nodes that follow each other.
func inquire(t *testing.T, store checkpoint.Store, names []string, nodes ...func(context.Context, *Inquiry) error) *dispatcher.Dispatcher[Inquiry] {
	t.Helper()
	b := dag.New[Inquiry]("inquiry")
	var after []dag.Edge[Inquiry]
	for i, f := range nodes {
		after = []dag.Edge[Inquiry]{dag.Step(b, names[i], f, after...)}
	}
	return inquiry(t, b, store, dispatcher.Options{})
}

// inquiry makes a dispatcher of a graph.
func inquiry(t *testing.T, b *dag.Builder[Inquiry], store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[Inquiry] {
	t.Helper()
	graph, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	o.Paranoid = true
	d, err := dispatcher.New(graph, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// from makes the record of a run, which has to be sealed and to have its own JSON back.
func from(t *testing.T, d record.Runs, run string, o record.Options) *record.Record {
	t.Helper()
	r, err := record.From(t.Context(), d, run, o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, data)
	again, err := record.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if back, _ := again.Encode(); string(back) != string(data) {
		t.Errorf("decoded and encoded again the record is another:\n%s\n%s", data, back)
	}
	return r
}

// show is JSON to compare and to read.
func show(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func ids[T any](all []T, id func(T) string) (list []string) {
	for _, x := range all {
		list = append(list, id(x))
	}
	return list
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if show(got) != show(want) {
		t.Errorf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

// rests is a run that comes to rest, not completed.
func rests(t *testing.T, err error) {
	t.Helper()
	var rest *dispatcher.Rest
	if !errors.As(err, &rest) {
		t.Fatalf("the run did not come to rest: %v", err)
	}
}

func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entries are all that a store has of all its runs, to see that nothing has changed.
func entries(t *testing.T, s checkpoint.Store) string {
	t.Helper()
	infos, err := s.List(t.Context(), checkpoint.Filter{})
	done(t, err)
	var all []string
	for _, i := range infos {
		i.Epoch = 0
		all = append(all, show(i))
		for e, err := range s.Read(t.Context(), i.Run, 0, 0) {
			done(t, err)
			all = append(all, show(e))
		}
	}
	slices.Sort(all)
	return show(all)
}

func newStore() *memory.Store { return new(memory.Store) }
