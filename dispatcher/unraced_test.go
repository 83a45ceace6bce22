//go:build !race

package dispatcher_test

// raced: see the other file.
const raced = false
