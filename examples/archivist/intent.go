package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/archivist/search"
)

// Ask makes sure that there is a question. A blank answer is no question either, so it is asked
// for again, under another key: the answer to a key stays what it is.
func Ask(ctx context.Context, q *Inquiry) error {
	for n := 1; strings.TrimSpace(q.Query.Get()) == ""; n++ {
		text, err := dag.Ask[string](ctx, fmt.Sprintf("question-%d", n), "What would you like to read about?")
		if err != nil {
			return err
		}
		q.Query.Set(text)
	}
	return nil
}

// An Intent is what a question wants.
type Intent string

const (
	Search   Intent = "search"    // books
	OffTopic Intent = "off-topic" // something that no catalogue of books knows
)

// Classify tells a question about books from others. It has no model to ask, so it goes by words:
//
//  1. Whoever speaks of books wants books, whatever they are about.
//  2. A sum, and an errand of every day ("What's the weather like?"), are off topic.
//  3. So is a question without a word to search for: "hello", "who are you?".
//  4. Anything else is taken for a subject, an author or a title.
func Classify(_ context.Context, q *Inquiry) (Intent, error) {
	intent := intentOf(q.Query.Get())
	q.Intent.Set(intent)
	q.Terms.Replace(search.Terms(q.Query.Get()))
	return intent, nil
}

func intentOf(question string) Intent {
	words := strings.FieldsFunc(strings.ToLower(question), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	terms := search.Terms(question)
	talk := !slices.ContainsFunc(terms, func(t string) bool { return !smallTalk[t] })
	switch {
	case has(bookish):
		return Search
	case sum.MatchString(question), talk, has(errands) && requests[words[0]]:
		return OffTopic
	}
	return Search
}

// sum leaves out "-" and "/", which stand in subjects too: 1939-1945, 9/11.
var sum = regexp.MustCompile(`\d\s*[+*×÷^=]\s*\d`)

var (
	bookish = wordSet(`author authors biographies biography book books chapter essay essays fiction
		library literature memoir memoirs novel novels novella poem poems poet poetry poets publish
		published read reading recommend recommendation stories story tale tales title titles trilogy
		write writer writers writing written wrote`)
	// An errand is one only where it is asked for: "football" alone is a subject.
	errands = wordSet(`alarm appointment bitcoin bus calculate capital code cook email exchange
		flight football forecast game hotel joke jokes lunch match meeting news password phone pizza
		price recipe restaurant score song spell stock taxi temperature time today tomorrow tonight
		traffic train translate tv weather website`)
	requests = wordSet(`are calculate call can check compute convert could did do does fix give how is
		make open order play please remind send set should show spell tell translate turn what when
		where which who why will would`)
	smallTalk = wordSet(`afternoon bye doing evening good goodbye hello help hey hi morning night ok
		okay test thank thanks yes`)
)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
