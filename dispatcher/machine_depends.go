package dispatcher

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// A dependence is what a visit that is done has used of the world outside. A value never
// changes: maps of them are shared.
type dependence struct {
	Step    int                     `json:"step"` // superstep of the run's own frame in which it was
	Depends []checkpoint.Dependency `json:"depends"`
}

// depend keeps what a visit that is done depends on.
func (m *machine) depend(x *fact) error {
	var s checkpoint.Substitution
	if err := json.Unmarshal(x.Data, &s); err != nil || len(s.Depends) == 0 {
		return err
	}
	if m.depends == nil {
		m.depends = map[string]dependence{}
	}
	m.depends[x.t.path()] = dependence{m.root.step, s.Depends}
	return nil
}

// independ forgets what a visit depends on, and what is inside it, that does not count any more.
func (m *machine) independ(path string) {
	maps.DeleteFunc(m.depends, func(other string, _ dependence) bool { return isOrIn(other, path) })
}

// disown forgets what visits of f depend on, and those inside them, of which a failed Loop or Each
// keeps nothing: they have failed, or are items behind one that has; and so on in Loops and Eaches
// that have failed in it.
func (m *machine) disown(f *frame) {
	maps.DeleteFunc(m.depends, func(path string, _ dependence) bool {
		rest, inside := strings.CutPrefix(path, f.path+"/")
		if !inside {
			return false
		}
		name, _, _ := strings.Cut(rest, "/")
		t := m.task(f, name)
		return t != nil && !t.phase.settled() && !t.keeps() && (t.phase != failing || !records(t.node))
	})
	for _, i := range f.open {
		if t := &f.tasks[i]; t.wrecked() {
			m.disown(t.inner)
		}
	}
}

// isOrIn reports whether a visit is another one, or inside it.
func isOrIn(path, other string) bool { return path == other || strings.HasPrefix(path, other+"/") }

// A dependent is a dependency of one visit.
type dependent struct {
	path string
	step int
	checkpoint.Dependency
}

// dependents lists them all in the order of paths and names.
func (m *machine) dependents() (all []dependent) {
	if len(m.depends) == 0 {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(m.depends)) {
		for _, d := range m.depends[path].Depends {
			all = append(all, dependent{path, m.depends[path].Step, d})
		}
	}
	return all
}

// renamedDepends are dependences under the paths of the new graph. Those of a forgotten visit stay
// if what it wrote does, under a path that no visit has, so that whoever gets its name neither
// hides them nor ends them by being voided. They go with what was dropped.
func (c *change) renamedDepends(z map[string]dependence) map[string]dependence {
	if len(c.names) == 0 || len(z) == 0 {
		return z
	}
	next := make(map[string]dependence, len(z))
	for _, path := range slices.Sorted(maps.Keys(z)) {
		if slices.ContainsFunc(c.dropped, func(other string) bool { return isOrIn(path, other) }) {
			continue
		}
		to, d := c.kept(path), z[path]
		if other, ok := next[to]; ok { // forgotten twice, under one name
			d = dependence{min(d.Step, other.Step), slices.Concat(other.Depends, d.Depends)}
		}
		next[to] = d
	}
	return next
}

// gone is behind the name of a visit that is forgotten, where others may have the name. No node has
// such a name.
const gone = " (forgotten)"

// kept is the path in the new graph of a visit of the old one, or the one under which what is kept
// of it is told.
func (c *change) kept(path string) string {
	is, there := c.moved(path)
	if there {
		return is
	}
	for i, b := range []byte(path) {
		if b != '/' {
			continue
		}
		if is, there := c.moved(path[:i]); !there {
			return is + gone + path[i:]
		}
	}
	return is + gone
}
