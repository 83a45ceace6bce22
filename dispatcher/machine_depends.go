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
	maps.DeleteFunc(m.depends, func(other string, _ dependence) bool {
		return other == path || strings.HasPrefix(other, path+"/")
	})
}

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

// renamedDepends are dependences under the paths of the new graph. Those of visits that are forgotten stay, as what they wrote
// does, with those of who has their name now.
func (c *change) renamedDepends(z map[string]dependence) map[string]dependence {
	if len(c.names) == 0 || len(z) == 0 {
		return z
	}
	next := make(map[string]dependence, len(z))
	for _, path := range slices.Sorted(maps.Keys(z)) {
		to, d := c.renamed(path), z[path]
		if other, ok := next[to]; ok {
			d = dependence{min(d.Step, other.Step), slices.Concat(other.Depends, d.Depends)}
		}
		next[to] = d
	}
	return next
}
