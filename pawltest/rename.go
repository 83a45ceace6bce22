package pawltest

import (
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// called is the path under which the visit of an entry of the log runs now, and whether it
// still does: an iteration or item keeps its number, and what is inside a node goes with it.
func (s *audit) called(entry int) (name string, there bool) {
	path := s.log[entry].Path
	if entry >= len(s.names) || len(s.names[entry]) == 0 {
		return path, true
	}
	segments := strings.Split(path, "/")
	node := ""
	for i, part := range segments {
		if isNumber(part) {
			continue
		}
		node = strings.TrimPrefix(node+"/"+part, "/")
		to, moved := s.names[entry][node]
		if moved && to == "" {
			return path, false
		}
		if moved {
			segments[i] = to[strings.LastIndexByte(to, '/')+1:]
		}
	}
	return strings.Join(segments, "/"), true
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
