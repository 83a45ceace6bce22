//go:build race

package dispatcher_test

// raced: the race detector is at work, which allocates as well.
const raced = true
