package search

import (
	"slices"
	"strings"
	"unicode"
)

// maxTerms bounds the work of one query. A question has a handful of terms; a pasted page has more.
const maxTerms = 64

// stopWords are the words of a question that say nothing about the book asked for.
// The one-letter and two-letter ones are what is left of contractions: what's, don't, I'll.
var stopWords = wordSet(`
	a an and any are as at be been being but by can could did do does for from had has have having
	he her hers him his i if in into is it its may me might my no nor not of off on or our ours
	shall she should so some such than that the their theirs them then there these they this those
	to too us very was we were will with would you your yours
	d don ll m re s t ve

	how what when where which who whom whose why

	about anything author authors book books find get give got idea ideas involving know like look
	looking novel novels please read recommend recommendation recommendations search show something
	suggest suggestion suggestions tell title titles want wanted write writer writes written wrote
`)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// Terms returns the words of query worth searching for: in lower case, each once, in their order.
// Stop words and the words of asking ("what", "book", "find", "me") are left out,
// and only the first 64 terms are kept. A query may have no terms.
func Terms(query string) []string {
	var terms []string
	for _, w := range strings.FieldsFunc(strings.ToLower(query), separates) {
		if len(terms) == maxTerms {
			break
		}
		if stopWords[w] || !strings.ContainsFunc(w, names) || slices.Contains(terms, w) {
			continue
		}
		terms = append(terms, w)
	}
	return terms
}

// separates follows the index's tokenizer, for which combining marks belong to the letter before
// them.
func separates(r rune) bool { return !names(r) && !unicode.IsMark(r) }

func names(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// match returns the FTS5 expression that any of terms satisfies. Quoted, a term is only ever text:
// no word, sign or byte of a user's query can act as syntax.
func match(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
	}
	return strings.Join(quoted, " OR ")
}
