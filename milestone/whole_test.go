package milestone_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
	"github.com/pawlgo/pawl/state"
)

// namedIn is what rules name in a run that gives a state.Whole these values.
func namedIn[T any](t *testing.T, rules []milestone.Rule, values ...T) []string {
	t.Helper()
	b := dag.New[state.Whole[T]]("whole")
	var last []dag.Edge[state.Whole[T]]
	for i, value := range values {
		last = []dag.Edge[state.Whole[T]]{dag.Step(b, fmt.Sprint("set-", i), func(_ context.Context, s *state.Whole[T]) error {
			s.Set(value)
			return nil
		}, last...)}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatcher.New(g, new(memory.Store), dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "r", nil); err != nil {
		t.Fatal(err)
	}
	n, err := milestone.New(d, rules...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := n.Name(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range all {
		tags = append(tags, m.Tag)
	}
	return tags
}

// A state that is one cell is named as Diff names it, and what is in it by its own name.
func TestRulesOfAStateThatIsAWhole(t *testing.T) {
	type order struct {
		Phase string
		Cents int
	}
	got := namedIn(t, []milestone.Rule{milestone.Change("state"), milestone.Change("Phase")},
		order{Cents: 1}, order{Cents: 1}, order{"paid", 1}, order{"paid", 2})
	want := []string{
		`change state {"Phase":"","Cents":1} #4`,
		`change state {"Phase":"paid","Cents":1} #8`, `change Phase paid #8`,
		`change state {"Phase":"paid","Cents":2} #10`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("named are %q, want %q", got, want)
	}
	got = namedIn(t, []milestone.Rule{milestone.Rises("state", 2), milestone.Change("state.x"), milestone.Change("other")}, 1, 3, 2, 5.5)
	if want := []string{"rises state 2 3 #6", "rises state 2 5.5 #10"}; !slices.Equal(got, want) {
		t.Errorf("named are %q, want %q", got, want)
	}
}
