package main

import "github.com/pawlgo/pawl/dag"

// drafts is how many drafts are written at most.
const drafts = 3

// newGraph joins the nodes. The names of nodes are paths in logs and on the command line: a name
// that changes makes the runs of yesterday runs of another graph.
func newGraph(lib *Library) (*dag.Graph[Inquiry], error) {
	body := dag.New[Inquiry]("draft")
	compose := dag.Step(body, "compose", lib.Compose)
	dag.Step(body, "validate", Validate, compose)
	draft, err := body.Build()
	if err != nil {
		return nil, err
	}

	b := dag.New[Inquiry]("archivist")
	ask := dag.Step(b, "ask", Ask)
	recall := dag.Step(b, "recall", lib.Recall, ask)
	classify := dag.Route(b, "classify", Classify, []Intent{Search, OffTopic}, recall)

	library := dag.Step(b, "library", lib.Search, classify.On(Search))
	authors := dag.Step(b, "authors", lib.Authors, classify.On(Search))
	subjects := dag.Step(b, "subjects", lib.Subjects, classify.On(Search))
	earlier := dag.Step(b, "earlier", lib.Earlier, classify.On(Search))

	gather := dag.Step(b, "gather", Gather, library, authors, subjects, earlier)
	rank := dag.Step(b, "rank", Rank, gather)
	cite := dag.Route(b, "cite", Cite, []Evidence{Enough, Nothing}, rank)
	loop := dag.Loop(b, "compose-loop", draft, approved, drafts, cite.On(Enough))

	dag.Step(b, "respond", lib.Respond, loop, cite.On(Nothing), classify.On(OffTopic))
	return b.Build()
}

func approved(q *Inquiry) bool { return q.Approved.Get() }
