package dispatcher

import "strings"

// keyOf is the first part of the keys of a run's visits: its id, in which a slash is %2F
// and a percent sign %25, so that no visit of a run has the key of another run's. Most ids
// hold neither, and are what they are.
func keyOf(run string) string {
	if !strings.ContainsAny(run, "/%") {
		return run
	}
	return keyEscapes.Replace(run)
}

var keyEscapes = strings.NewReplacer("/", "%2F", "%", "%25")
