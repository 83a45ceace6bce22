//go:build !race

package main

// crashedBranches are the branches of the graph whose runs crash at every entry: all there are.
var crashedBranches = []Intent{Search, Describe, ByAuthor, Similar, TopRated, Visits, OffTopic}
