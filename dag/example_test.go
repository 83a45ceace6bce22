package dag_test

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// An Inquiry is what one question knows.
type Inquiry struct {
	Query state.Value[string]
	Books state.List[string]
	Draft state.Value[string]
	Cost  state.Sum[int]
}

type Intent string

const (
	Search   Intent = "search"
	OffTopic Intent = "off-topic"
)

func Classify(_ context.Context, q *Inquiry) (Intent, error) {
	if q.Query.Get() == "" {
		return OffTopic, nil
	}
	return Search, nil
}

func Library(_ context.Context, q *Inquiry) error {
	q.Books.Append("The Name of the Rose")
	return nil
}

func Respond(_ context.Context, q *Inquiry) error {
	q.Draft.Set("done")
	return nil
}

func Example() {
	b := dag.New[Inquiry]("archivist")
	classify := dag.Route(b, "classify", Classify, []Intent{Search, OffTopic})
	library := dag.Step(b, "library", Library, classify.On(Search))
	subjects := dag.Step(b, "subjects", Library, classify.On(Search))
	rank := dag.Step(b, "rank", Library, library, subjects) // both, or neither
	dag.Step(b, "respond", Respond, rank, classify.On(OffTopic))
	graph, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range graph.Plan().Nodes {
		fmt.Println(n.Name, n.Kind, n.Waits)
	}
	// Output:
	// classify route 0
	// library step 1
	// subjects step 1
	// rank step 2
	// respond step 2
}

func Example_problems() {
	b := dag.New[Inquiry]("archivist")
	classify := dag.Route(b, "classify", Classify, []Intent{Search, OffTopic})
	library := dag.Step(b, "library", Library, classify.On(Search))
	dag.Step(b, "respond", Respond, library, classify)
	dag.Step(b, "respond", nil, classify.On("chat"))
	_, err := b.Build()
	fmt.Println(err)
	// Output:
	// dag: graph "archivist": 4 problems:
	// 	node "respond": joins edges of which some may be taken and others not ("library", "classify"): write dag.All or dag.Any
	// 	node "respond": the name is taken by an earlier node
	// 	node "respond": its function is nil
	// 	node "respond": follows outcome "chat" of node "classify", which declares "search", "off-topic"
}
