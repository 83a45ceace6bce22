package dispatcher

import (
	"strconv"
	"strings"
)

// keyOf is what the keys of a run's visits in a turn begin with: the run's id, behind it how often
// it was rewound, if it was, and with a dot how often migrations have taken the visit's name from
// another node; and from the second turn on the number of the turn. In the id a slash is %2F there,
// a tilde %7E and a percent sign %25, so that no visit of a run has the key of another run's; most
// ids hold none of them, and are what they are. No path begins with a number, so no visit has the
// key of another turn.
func keyOf(run string, turn, generation int) string {
	if strings.ContainsAny(run, "/~%") {
		run = keyEscapes.Replace(run)
	}
	if generation > 0 {
		run += "~" + strconv.Itoa(generation%eras)
		if names := generation / eras; names > 0 {
			run += "." + strconv.Itoa(names)
		}
	}
	if turn > 1 {
		run += "/" + strconv.Itoa(turn)
	}
	return run + "/"
}

// EffectKey is the idempotency key under which an effect of a visit begins, for programs that read
// a log. generation is how often the run was rewound, and vacated how often migrations have taken
// the names of nodes, by node path; the machines in a log tell both by these names. Code that does
// an effect is told its key by dag.Key, and code that looks at an open effect by [OpenEffect].
func EffectKey(run string, turn, generation int, vacated map[string]int, path, key string) string {
	return keyOf(run, turn, generationIn(generation, vacated, path)) + path + "#" + key
}

var keyEscapes = strings.NewReplacer("/", "%2F", "~", "%7E", "%", "%25")
