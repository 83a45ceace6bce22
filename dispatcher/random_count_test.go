//go:build !race

package dispatcher_test

// randomCount is how many random graphs the properties are tested with.
const randomCount = 400

// longCount is how many runs are long enough to need snapshots.
const longCount = 25

// cancelStride is how far apart, at most, the moments are at which runs are cancelled.
const cancelStride = 6

// worldCount is how many random worlds are played.
const worldCount = 80
