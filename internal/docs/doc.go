// Package docs holds the tests that keep the documents true: the program in README.md
// is built, killed and run again, every link leads somewhere, and every error has its row.
// Package coverage beside it writes docs/coverage.md.
package docs

//go:generate go run -C ../.. ./internal/docs/coverage
