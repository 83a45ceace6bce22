package main

import (
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/state"
)

// An Inquiry is what one question knows. Nodes learn it in the order of the fields; the scouts
// append to Finds in parallel, and their finds join in the order in which the graph declares them.
type Inquiry struct {
	Query    state.Value[string]
	Recalled state.List[Earlier] // earlier inquiries of other questions, newest first
	Before   state.Value[string] // the last run that answered the same question
	Omitted  state.List[string]  // why an earlier run could not be read
	Intent   state.Value[Intent]
	Terms    state.List[string] // the words of the question that count

	Finds      state.List[Find]
	Candidates state.List[Candidate] // the finds, each book once; ranked, best first
	Shortlist  state.List[Candidate] // the best of them

	Draft        state.Value[Draft]
	Attempts     state.Sum[int] // drafts written
	FailureCause state.Value[string]
	Approved     state.Value[bool]

	Answer    state.Value[string]
	Citations state.List[Citation]
}

// An Earlier is a completed inquiry that had an answer.
type Earlier struct {
	Run      string     `json:"run"`
	Question string     `json:"question"`
	Cited    []Citation `json:"cited"`
}

// A Find is a book that a scout found. Rank counts from 1; equally good finds share one.
type Find struct {
	Scout string         `json:"scout"`
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
	Scout string `json:"scout"`
	Rank  int    `json:"rank"`
}

// A Draft is an answer that has not been approved: what it says of which books, best first.
type Draft struct {
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
