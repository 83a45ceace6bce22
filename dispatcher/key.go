package dispatcher

import (
	"strconv"
	"strings"
)

// keyOf is what the keys of a run's visits in a turn begin with: the run's id, and from the
// second turn on the number of the turn. A slash in the id is %2F there and a percent sign
// %25, so that no visit of a run has the key of another run's; most ids hold neither, and
// are what they are. No path begins with a number, so no visit has the key of another turn.
func keyOf(run string, turn int) string {
	if strings.ContainsAny(run, "/%") {
		run = keyEscapes.Replace(run)
	}
	if turn > 1 {
		run += "/" + strconv.Itoa(turn)
	}
	return run + "/"
}

var keyEscapes = strings.NewReplacer("/", "%2F", "%", "%25")
