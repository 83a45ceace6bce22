package main

import (
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/state"
)

// An Inquiry is what one question knows. Nodes learn it in the order of the fields.
type Inquiry struct {
	Query           state.Value[string]
	Recalled        state.List[Earlier] // earlier inquiries of other questions, newest first
	Before          state.Value[string] // the last run that answered the same question
	Omitted         state.List[string]  // what could not be read or asked, and why
	RecalledContext state.Value[RecalledContext]
	MemoryDigest    state.Value[MemoryDigest]

	Intent  state.Value[Intent]
	Subject state.Value[string] // what the intent is about: a title, an author, a topic
	Terms   state.List[string]  // the words of the subject that count

	Unknown    state.List[string]    // those of them that stand nowhere in the catalogue
	Missing    state.List[string]    // what failed while books were looked for, and why
	Like       state.List[Citation]  // the books that others shall be similar to
	Candidates state.List[Candidate] // the finds, each book once; ranked, best first
	Shortlist  state.List[Candidate] // the best of them
	Evidence   state.Value[Evidence]

	Draft        state.Value[Draft]
	Attempts     state.Sum[int] // drafts written
	FailureCause state.Value[string]
	Approved     state.Value[bool]

	Verdict   state.Value[Verdict] // a person's, if one was asked
	Answer    state.Value[string]
	Citations state.List[Citation]
}

// A Quest is what one search for books knows. The scouts append to Finds in parallel, and their
// finds join in the order in which the graph declares them.
type Quest struct {
	Wish     state.Value[Wish]
	Recalled state.List[Earlier]
	Recent   state.List[Candidate] // of earlier inquiries, newest first

	Words   state.Value[string]        // what the scouts are asked
	Unknown state.List[string]         // words that stand nowhere in the catalogue
	Like    state.List[catalogue.Book] // the books that others shall be similar to

	Finds      state.List[Find]
	Missing    state.List[string] // which scouts failed, and why
	Candidates state.List[Candidate]
	Shortlist  state.List[Candidate]
	Evidence   state.Value[Evidence]
}

// A Wish is what a branch wants of a search for books.
type Wish struct {
	Intent  Intent  `json:"intent"`
	Subject string  `json:"subject"`
	Scouts  []Scout `json:"scouts"` // who may be sent
}

// An Earlier is a completed inquiry.
type Earlier struct {
	Run      string      `json:"run"`
	Question string      `json:"question"`
	Intent   Intent      `json:"intent,omitempty"`
	Cited    []Citation  `json:"cited"`
	Listed   []Candidate `json:"listed,omitempty"` // its shortlist
}

// A RecalledContext is what earlier inquiries mean for this one. All lists are newest first.
type RecalledContext struct {
	PriorIntents     []PriorIntent `json:"priorIntents"`
	RecentCandidates []Candidate   `json:"recentCandidates"`
	SimilarQueries   []string      `json:"similarQueries"` // that share a word with this one
	Summary          string        `json:"summary"`
}

// A PriorIntent is what an earlier question wanted.
type PriorIntent struct {
	Run      string `json:"run"`
	Question string `json:"question"`
	Intent   Intent `json:"intent"`
}

// A MemoryDigest is what the store holds of earlier inquiries, in short.
type MemoryDigest struct {
	BookCount       int           `json:"bookCount"` // books that were cited
	QueryCount      int           `json:"queryCount"`
	RecentBooks     []Citation    `json:"recentBooks"`
	IntentBreakdown []IntentCount `json:"intentBreakdown"` // the most frequent first
	Summary         string        `json:"summary"`
}

// An IntentCount is how often an intent was had.
type IntentCount struct {
	Intent Intent `json:"intent"`
	Count  int    `json:"count"`
}

// A Find is a book that a scout found. Rank counts from 1; equally good finds share one.
type Find struct {
	Scout Scout          `json:"scout"`
	Rank  int            `json:"rank"`
	Book  catalogue.Book `json:"book"`
}

// A Candidate is a book that may be in the answer, and where scouts ranked it.
type Candidate struct {
	Book   catalogue.Book `json:"book"`
	Places []Place        `json:"places"`
	Score  float64        `json:"score,omitempty"` // once it is ranked
}

// A Place is where one scout ranked a book.
type Place struct {
	Scout Scout `json:"scout"`
	Rank  int   `json:"rank"`
}

// A Draft is an answer that has not been approved: what it says of which books, best first.
type Draft struct {
	By     string  `json:"by,omitempty"`   // the language model that wrote it
	Lead   string  `json:"lead,omitempty"` // its own words
	Quotes []Quote `json:"quotes"`
}

// A Quote is what an answer says of one book.
type Quote struct {
	Citation
	About string `json:"about,omitempty"`
}

// A Citation names a book. Its year is 0 if nobody knows it.
type Citation struct {
	Title  string `json:"title"`
	Author string `json:"author"`
	Year   int    `json:"year,omitempty"`
}

func cite(b catalogue.Book) Citation {
	return Citation{Title: b.Title, Author: b.Author, Year: b.Year}
}

func quote(b catalogue.Book) Quote { return Quote{cite(b), b.About} }
