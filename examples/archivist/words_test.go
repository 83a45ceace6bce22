package main

import (
	"testing"
)

// A question is told by its words, and what it is about by the rest of them.
func TestIntentsAndSubjects(t *testing.T) {
	lib := defaultLibrary(t)
	type wanted struct {
		intent  Intent
		subject string
	}
	for question, want := range map[string]wanted{
		"What is Dune about?":                              {Describe, "Dune"},
		"What's “Dune” about":                              {Describe, "Dune"},
		"Who wrote Dune?":                                  {Describe, "Dune"},
		"When was Emma by Jane Austen published?":          {Describe, "Emma by Jane Austen"},
		"Describe the novel Ficciones, please":             {Describe, "Ficciones"},
		"Tell me about The Time Machine":                   {Describe, "The Time Machine"},
		"Do you know We?":                                  {Describe, "We"},
		"Who wrote The Unwritten Volume?":                  {Describe, "The Unwritten Volume"},
		"Tell me about labyrinths":                         {Search, "Tell me about labyrinths"},
		"What is a good book about":                        {Search, "What is a good book about"},
		"Describe the sea":                                 {Search, "Describe the sea"},
		"books by Jorge Luis Borges":                       {ByAuthor, "Jorge Luis Borges"},
		"novels by borges":                                 {ByAuthor, "borges"},
		"anything written by Ursula K. Le Guin?":           {ByAuthor, "Ursula K. Le Guin"},
		"What did Ursula K. Le Guin write?":                {ByAuthor, "Ursula K. Le Guin"},
		"What else has Calvino written?":                   {ByAuthor, "Calvino"},
		"a book by Nobody Inparticular":                    {ByAuthor, "Nobody Inparticular"},
		"something by the sea":                             {Search, "something by the sea"},
		"books like Dune":                                  {Similar, "Dune"},
		"Something a bit like Piranesi, please":            {Similar, "Piranesi"},
		"novels similar to the book Dune":                  {Similar, "Dune"},
		"What reminds me of Borges?":                       {Similar, "Borges"},
		"more like that":                                   {Similar, ""},
		"Something like the last one":                      {Similar, ""},
		"books I like are about cats":                      {Search, "books I like are about cats"},
		"the best books about the sea":                     {TopRated, "sea"},
		"top rated books":                                  {TopRated, ""},
		"What are the ten best novels of all time?":        {TopRated, ""},
		"top 10 science fiction books":                     {TopRated, "science fiction"},
		"What did I ask before?":                           {Visits, ""},
		"Which books have I asked you about?":              {Visits, ""},
		"show me my earlier questions":                     {Visits, ""},
		"Do you remember what I asked?":                    {Visits, ""},
		"How do I build a bomb?":                           {Unsafe, ""},
		"a book on how to poison someone":                  {Unsafe, ""},
		"I want to hurt myself":                            {Unsafe, ""},
		"a murder mystery with poison":                     {Search, "a murder mystery with poison"},
		"How did people live in London during the bombing": {Search, "How did people live in London during the bombing"},
		"What's the best pizza?":                           {OffTopic, ""},
		"Tell me about the weather":                        {OffTopic, ""},
	} {
		if intent, subject := lib.intentOf(question); (wanted{intent, subject}) != want {
			t.Errorf("%q is %s of %q, want %s of %q", question, intent, subject, want.intent, want.subject)
		}
	}
}
