package main

import "github.com/pawlgo/pawl/dag"

// drafts is how many drafts are written at most.
const drafts = 3

// newGraph joins the nodes. The names of nodes are paths in logs and on the command line: a name
// that changes makes the runs of yesterday runs of another graph.
func newGraph(lib *Library) (*dag.Graph[Inquiry], error) {
	books, err := newBookSearch(lib)
	if err != nil {
		return nil, err
	}
	draft, err := newDraft(lib)
	if err != nil {
		return nil, err
	}

	b := dag.New[Inquiry]("archivist")
	ask := dag.Step(b, "ask", Ask)
	recall := dag.Step(b, "recall", lib.Recall, ask)
	classify := dag.Route(b, "classify", lib.Classify, intents, dag.Any(recall, recall.Failed())).With(lib.patience())
	words := dag.Route(b, "classify-by-words", lib.ClassifyByWords, intents, classify.Failed())
	wants := func(i Intent, more ...Intent) dag.Edge[Inquiry] {
		return dag.Any(classify.On(i, more...), words.On(i, more...))
	}

	// One graph, five times: what differs is what is wanted of it, and who may be sent.
	search := dag.Embed(b, "search", books, wish(Texts, Authors, Subjects, Memory, Online), found, wants(Search))
	describe := dag.Embed(b, "describe", books, wish(Texts, Online), found, wants(Describe))
	byAuthor := dag.Embed(b, "by-author", books, wish(Authors, Online), found, wants(ByAuthor))
	similar := dag.Embed(b, "similar", books, wish(Texts, Subjects, Online), found, wants(Similar))
	topRated := dag.Embed(b, "top-rated", books, wish(Texts, Subjects, Ratings), found, wants(TopRated))

	weigh := dag.Route(b, "weigh", Weigh, []Evidence{Enough, Little, Nothing},
		dag.Any(search, describe, byAuthor, similar, topRated))
	loop := dag.Loop(b, "compose-loop", draft, approved, drafts, weigh.On(Enough, Little))

	dag.Step(b, "respond", lib.Respond, dag.Any(loop, loop.Failed(), weigh.On(Nothing),
		wants(Visits, OffTopic, Unsafe),
		search.Failed(), describe.Failed(), byAuthor.Failed(), similar.Failed(), topRated.Failed()))
	return b.Build()
}

// newBookSearch is the search for books: the scouts that the plan chooses look side by side, and
// something is made of their finds. A scout that fails leaves the others their finds.
func newBookSearch(lib *Library) (*dag.Graph[Quest], error) {
	b := dag.New[Quest]("book-search")
	plan := dag.Choose(b, "plan", lib.Plan, []Scout{Texts, Authors, Subjects, Memory, Ratings, Online})
	var settled []dag.Edge[Quest]
	for _, s := range lib.scouts() {
		scout := dag.Step(b, string(s.name), s.look, plan.On(s.name)).With(s.policy)
		settled = append(settled, scout, scout.Failed())
	}
	gather := dag.Step(b, "gather", Gather, dag.Any(settled...)) // of those that were sent
	rank := dag.Step(b, "rank", lib.Rank, gather)
	dag.Step(b, "cite", Cite, rank)
	return b.Build()
}

// newDraft is one round of the loop.
func newDraft(lib *Library) (*dag.Graph[Inquiry], error) {
	b := dag.New[Inquiry]("draft")
	compose := dag.Step(b, "compose", lib.Compose).With(lib.patience())
	rule := dag.Step(b, "compose-by-rule", lib.ComposeByRule, compose.Failed())
	dag.Step(b, "validate", Validate, dag.Any(compose, rule))
	return b.Build()
}

func approved(q *Inquiry) bool { return q.Approved.Get() }
