package pawltest

import (
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// called is the path under which the visit of an entry of the log runs now, and whether it
// still does.
func (s *audit) called(entry int) (name string, there bool) {
	m := checkpoint.Migration{Nodes: s.names[entry]}
	return m.Renamed(s.log[entry].Path)
}

// graphAt returns the graph that the run has from an entry on, if the entry says it.
func graphAt(e *checkpoint.Entry) (name, digest string, ok bool) {
	switch e.Kind {
	case checkpoint.Opened:
		var o checkpoint.Opening
		decode(e.Data, &o)
		return o.Graph, o.Digest, true
	case checkpoint.Migrated:
		var m checkpoint.Migration
		decode(e.Data, &m)
		return m.Graph, m.To, true
	case checkpoint.Rewound:
		var w checkpoint.Rewinding
		decode(e.Data, &w)
		return w.Graph, w.Digest, true
	}
	return "", "", false
}

// namesIn are those that a migration gives the nodes of a graph: the one that a dispatcher
// would choose. Nil means that they are the same.
func namesIn(all []dispatcher.Migration, name, digest, isName, isDigest string) map[string]string {
	if digest == isDigest {
		return nil
	}
	for _, m := range all {
		if m.From == digest || m.From == "" && name == isName {
			return m.Nodes
		}
	}
	return nil
}

// isNumber reports whether a part of a path is that of an item or an iteration.
func isNumber(part string) bool { return strings.Trim(part, "0123456789") == "" }
