package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A recollection is what is learnt of earlier inquiries, newest first.
type recollection struct {
	question string // that remembers
	seen     RecalledContext
	queries  int
	cited    map[Citation]bool
	recent   []Citation
	intents  map[Intent]int
}

func (m *recollection) learn(e Earlier) {
	m.queries++
	m.intents[e.Intent]++
	if len(m.seen.PriorIntents) < mentions {
		m.seen.PriorIntents = append(m.seen.PriorIntents, PriorIntent{e.Run, e.Question, e.Intent})
	}
	if related(e.Question, m.question) && !same(e.Question, m.question) &&
		len(m.seen.SimilarQueries) < mentions && !slices.Contains(m.seen.SimilarQueries, e.Question) {
		m.seen.SimilarQueries = append(m.seen.SimilarQueries, e.Question)
	}
	for _, c := range e.Listed {
		if len(m.seen.RecentCandidates) < mentions && !m.listed(c) {
			m.seen.RecentCandidates = append(m.seen.RecentCandidates, c)
		}
	}
	for _, c := range e.Cited {
		if !m.cited[c] && len(m.recent) < mentions {
			m.recent = append(m.recent, c)
		}
		m.cited[c] = true
	}
}

func (m *recollection) listed(c Candidate) bool {
	return slices.ContainsFunc(m.seen.RecentCandidates, func(o Candidate) bool { return cite(o.Book) == cite(c.Book) })
}

func (m *recollection) context() RecalledContext {
	c := m.seen
	if len(c.PriorIntents) == 0 {
		return c
	}
	last := c.PriorIntents[0]
	c.Summary = fmt.Sprintf("The last question was “%s” (%s).", shortened(printable(last.Question)), last.Intent)
	switch n := len(c.SimilarQueries); {
	case n == 1:
		c.Summary += " One earlier question shares a word with this one."
	case n > 1:
		c.Summary += fmt.Sprintf(" %d earlier questions share a word with this one.", n)
	}
	return c
}

func (m *recollection) digest() MemoryDigest {
	d := MemoryDigest{BookCount: len(m.cited), QueryCount: m.queries, RecentBooks: m.recent}
	for intent, n := range m.intents {
		d.IntentBreakdown = append(d.IntentBreakdown, IntentCount{intent, n})
	}
	slices.SortFunc(d.IntentBreakdown, func(a, b IntentCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Intent, b.Intent))
	})
	if m.queries == 0 {
		return d
	}
	var counts []string
	for _, c := range d.IntentBreakdown {
		counts = append(counts, fmt.Sprintf("%d × %s", c.Count, c.Intent))
	}
	d.Summary = fmt.Sprintf("%s (%s), which cited %s.",
		count(m.queries, "question"), strings.Join(counts, ", "), count(len(m.cited), "book"))
	return d
}

// count is a number of things, in words: 1 book, 2 books.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
