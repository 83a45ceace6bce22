package main

import (
	"context"
	_ "embed"
	"strings"
	"unicode"

	"github.com/pawlgo/pawl/dag"
)

//go:embed passages.txt
var passages string

// search looks into the passages that are built into the program.
func search() Tool {
	return Tool{
		Name:       "search",
		About:      "Finds the passage about a thing in a small encyclopedia of mountains.",
		Inputs:     []Input{{"query", "the name of the thing"}},
		Access:     dag.Reads,
		Confidence: 0.9,
		Use: func(_ context.Context, _ string, inputs map[string]string) (string, error) {
			return find(inputs["query"])
		},
	}
}

// find gives the passage that has the most words of a query; of equal ones the first.
func find(query string) (string, error) {
	best, most := "", 0
	for passage := range strings.Lines(passages) {
		has := map[string]bool{}
		for _, w := range words(passage) {
			has[w] = true
		}
		n := 0
		for _, w := range words(query) {
			if has[w] {
				n++
			}
		}
		if n > most {
			best, most = strings.TrimSpace(passage), n
		}
	}
	if most == 0 {
		return "", refuse("no passage is about %q", query)
	}
	return best, nil
}

// words are those that tell one passage from another.
func words(text string) []string {
	var all []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if len(w) > 1 && !strings.Contains(" the of is it in on and how what high metres mountain mount highest higher than much ", " "+w+" ") {
			all = append(all, w)
		}
	}
	return all
}
