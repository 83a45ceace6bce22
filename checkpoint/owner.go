package checkpoint

import "strings"

// amender is how the name of an owner begins that only amends a run.
const amender = "amending/"

// Amender returns the name under which owner takes the lease of a run only to say something of it,
// such as an answer or a note, and gives it back at once. It tells others that nobody is at work on
// the run: who wants the lease waits a moment, and the run counts as one that nobody is at work on.
func Amender(owner string) string { return amender + owner }

// Amends reports whether owner is an [Amender].
func Amends(owner string) bool { return strings.HasPrefix(owner, amender) }
