//go:build race

package dispatcher_test

// randomCount is how many random graphs the properties are tested with: the race detector
// makes everything ten times slower.
const randomCount = 60

// longCount is how many runs are long enough to need snapshots.
const longCount = 3

// cancelStride is how far apart, at most, the moments are at which runs are cancelled.
const cancelStride = 2

// worldCount is how many random worlds are played: a part of them, since in most one thing happens
// after another.
const worldCount = 20
