package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlgo/pawl/examples/archivist/search"
)

// intentOf tells what a question wants by its words, and the part of it that says of what:
//
//  1. Whoever asks how to do harm is refused, and whoever asks what was asked before is told.
//  2. Who names a book of the catalogue and asks about it, wants that one.
//  3. Whoever speaks of books wants books, whatever they are about. A sum, and an errand of every
//     day ("What's the weather like?"), are off topic; so is a question without a word to search
//     for: "hello", "who are you?".
//  4. The best books, books like another, books by somebody, and a book that is named but not
//     known, are told by the words round them.
//  5. Anything else is taken for a subject, an author or a title.
func (lib *Library) intentOf(question string) (Intent, string) {
	switch {
	case harmful.MatchString(question):
		return Unsafe, ""
	case askedBefore.MatchString(question):
		return Visits, ""
	}
	book, told := subject(question, describing), subject(question, tellingOf)
	if len(lib.byTitle(book)) > 0 {
		return Describe, book
	}
	if isName(told) && len(lib.byTitle(told)) > 0 { // else "labyrinths" would be “Labyrinths”
		return Describe, told
	}
	if offTopic(question) {
		return OffTopic, ""
	}
	if best.MatchString(question) {
		return TopRated, strings.Join(search.Terms(bestWords.ReplaceAllString(question, " ")), " ")
	}
	if like := subject(question, resembling); like != "" {
		if thatOne.MatchString(like) {
			like = ""
		}
		return Similar, like
	}
	if author := subject(question, written); author != "" && (isName(author) || len(lib.byAuthor(author)) > 0) {
		return ByAuthor, author
	}
	if isName(book) {
		return Describe, book
	}
	return Search, question
}

// offTopic reports whether a question is not about books.
func offTopic(question string) bool {
	words := strings.FieldsFunc(strings.ToLower(question), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	talk := !slices.ContainsFunc(search.Terms(question), func(t string) bool { return !smallTalk[t] })
	switch {
	case has(bookish), thatOne.MatchString(subject(question, resembling)):
		return false
	}
	return sum.MatchString(question) || talk || has(errands) && requests[words[0]]
}

// subject returns the group that the first of the patterns that matches has found, without the
// signs and words that are not part of a name.
func subject(question string, patterns ...*regexp.Regexp) string {
	for _, p := range patterns {
		if m := p.FindStringSubmatch(question); m != nil {
			name := strings.TrimSpace(strings.Join(m[1:], "")) // one group of the alternatives has text
			name = trailing.ReplaceAllString(leading.ReplaceAllString(name, ""), "")
			return strings.Trim(name, " \t\n\"'“”‘’«»?!.,;:")
		}
	}
	return ""
}

// isName reports whether words look like the name of somebody or something: every one that is not
// a small one begins with a capital or a digit.
func isName(words string) bool {
	names := 0
	for w := range strings.FieldsSeq(words) {
		first := []rune(strings.TrimLeftFunc(w, unicode.IsPunct))
		switch {
		case len(first) == 0 || small[strings.ToLower(w)]:
		case !unicode.IsUpper(first[0]) && !unicode.IsDigit(first[0]):
			return false
		default:
			names++
		}
	}
	return names > 0
}

const booksOf = `(?:books?|novels?|novellas?|stor(?:y|ies)|poems?|poetry|plays?|essays?|memoirs?|works?|titles?|reads?)`

var (
	askedBefore = regexp.MustCompile(`(?i)\b(?:did|have|had)\s+(?:i|we)\b[^.?!]*\b(?:asked|ask|searched|search|looked|look|talked|talk|discussed|discuss)\b|` +
		`\b(?:what|which)\b[^.?!]*\b(?:i|we)\s+(?:just\s+)?(?:asked|searched|looked|talked|discussed)\b|` +
		`\bmy\s+(?:earlier|previous|past|last|former|recent|old)\s+(?:questions?|search(?:es)?|visits?|inquir(?:y|ies)|requests?)\b|` +
		`\b(?:do|can)\s+you\s+(?:still\s+)?remember\s+(?:me|us|what|my|our)\b`)
	harmful = regexp.MustCompile(`(?i)\b(?:how\s+(?:do|can|could|to|would|should|might)|teach\s+me|show\s+me|help\s+me|instructions?|steps?|recipe|tell\s+me\s+how)\b` +
		`[^.?!]*\b(?:bombs?|explosives?|poison(?:ing)?|(?:kill|murder|hurt|harm|stab|shoot|strangle)(?:ing)?\s+(?:some(?:one|body)|people|myself|my|him|her|them|a\s+(?:man|woman|person|child))|` +
		`nerve\s+gas|molotov|meth|suicide|hack\s+into|malware|ransomware)\b|` +
		`\b(?:i|we)\s+(?:want|wish|am\s+going|plan|would\s+like)\s+to\s+(?:die|kill|hurt\s+(?:myself|some(?:one|body)))\b`)

	best = regexp.MustCompile(`(?i)\b(?:top|best|highest)[-\s]+(?:rated|ranked)\b|` +
		`\b(?:top|best|greatest|finest)\s+(?:(?:\d+|three|five|ten|dozen|ever)\s+)?(?:[\pL-]+\s+){0,2}` + booksOf + `\b|\bratings?\b`)
	bestWords = regexp.MustCompile(`(?i)\b(?:top|best|greatest|finest|highest|rated|ranked|ratings?|of\s+all\s+times?|ever|three|five|ten|dozen|` +
		booksOf + `)\b|\b\d{1,2}\b`)

	resembling = regexp.MustCompile(`(?i)\b(?:` + booksOf + `|something|anything|more|ones?)\s+(?:(?:a\s+(?:bit|little)|just|much|that\s+(?:is|are))\s+)?` +
		`(?:like|similar\s+to|resembling|in\s+the\s+(?:style|spirit|vein)\s+of)\s+(.+)|\b(?:similar\s+to|reminds?\s+(?:me|us)\s+of)\s+(.+)`)
	thatOne = regexp.MustCompile(`(?i)^(?:that|this|it|those|these|them|(?:that|this|the)\s+(?:last\s+)?(?:one|book))$`)

	written = regexp.MustCompile(`(?i)\b(?:` + booksOf + `|something|anything|everything|all|written)\s+(?:written\s+)?by\s+(.+)|` +
		`\bwhat\s+(?:else\s+)?(?:did|has|have)\s+(.+?)\s+(?:ever\s+)?(?:write|written|publish|published)\b`)

	// What is described may be no book; tellingOf is enough only for one that is known.
	describing = regexp.MustCompile(`(?i)^\s*(?:please\s+|can\s+you\s+|could\s+you\s+)*(?:describe|summari[sz]e)\s+(.+)|` +
		`\b(?:summary|description)\s+of\s+(.+)|\bwhat\s*(?:['’]?s|\s+is|\s+was)\s+(.+?)\s+about\s*[?!.]*\s*$|` +
		`\bwho\s+(?:wrote|(?:is|was)\s+the\s+author\s+of)\s+(.+)|\bwhen\s+was\s+(.+?)\s+(?:first\s+)?(?:written|published)\b`)
	tellingOf = regexp.MustCompile(`(?i)\b(?:tell\s+(?:me|us)\s+(?:more\s+|something\s+)?(?:about|of)|(?:do|have)\s+you\s+(?:know|have|heard\s+of)(?:\s+about)?)\s+(.+)`)

	leading  = regexp.MustCompile(`(?i)^(?:the\s+(?:book|novel|story|poem|play)s?\s+(?:called\s+|named\s+|of\s+)?|books?\s+(?:of|by)\s+)`)
	trailing = regexp.MustCompile(`(?i)[\s,]*(?:\bplease\b|\bfor\s+me\b|\bto\s+me\b)?[\s?!.]*$`)
)

// inQuotes finds what stands in quotation marks.
var inQuotes = regexp.MustCompile(`“([^”]+)”|"([^"]+)"|«([^»]+)»|„([^“]+)“`)

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
	openers = wordSet(`here these those both all each among one two three four five try start begin
		enjoy explore discover dive consider several most first perhaps maybe also and but yes sure`)
	small = wordSet(`a an and by da de del der di du in la le of on the to van von`)
)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
