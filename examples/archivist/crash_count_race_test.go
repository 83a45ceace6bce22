//go:build race

package main

// crashedBranches are the branches of the graph whose runs crash at every entry: the race detector
// makes everything six times slower, and these do what the others do.
var crashedBranches = []Intent{ByAuthor, Visits, OffTopic}
