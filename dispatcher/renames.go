package dispatcher

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// renames are what migrations have called nodes that led to where a run stands, as in
// [checkpoint.Migration], oldest first. They are written once. A checkpoint, a visit or an effect
// that was told of in one place of a log is found by them where the log, or a fork, stands
// otherwise.
type renames []map[string]string

// called is the path that a visit, or frame, has where these are the renames, which has the path
// where was are: back to where both stood last, and from there on. It is not there if its node was
// not, or is forgotten.
func (is renames) called(path string, was renames) (name string, there bool) {
	same := 0
	for same < min(len(is), len(was)) && maps.Equal(is[same], was[same]) {
		same++
	}
	there = true
	for _, names := range slices.Backward(was[same:]) {
		if path, there = formerly(names, path); !there {
			return "", false
		}
	}
	for _, names := range is[same:] {
		m := checkpoint.Migration{Nodes: names}
		if path, there = m.Renamed(path); !there {
			return "", false
		}
	}
	return path, true
}

// formerly is the path that a visit had before a migration behind which it has this one:
// [checkpoint.Migration.Renamed] the other way. It was not there if its node has the name of one
// that was renamed or forgotten. A node that is new, under a name that was nobody's, has it before
// too.
func formerly(names map[string]string, path string) (was string, there bool) {
	segments := strings.Split(path, "/")
	var before, now string // node paths, with a slash behind
	for i, s := range segments {
		if isIteration(s) {
			continue
		}
		now += s
		_, taken := names[before+s]
		for old, is := range names {
			if is == now && frameOf(old) == strings.TrimSuffix(before, "/") {
				segments[i], taken = old[len(before):], false
			}
		}
		if taken {
			return "", false
		}
		before, now = before+segments[i]+"/", now+"/"
	}
	return strings.Join(segments, "/"), true
}
