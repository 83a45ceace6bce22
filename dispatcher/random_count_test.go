//go:build !race

package dispatcher_test

// randomCount is how many random graphs the properties are tested with.
const randomCount = 1000
