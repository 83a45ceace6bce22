package dispatcher

import "maps"

// A migration takes names from nodes: they are called otherwise, or are no more. A node that gets
// such a name later must not have the keys of the one that had it, since effects were done under
// them. So a machine counts, by node path, how often that has happened to a name.

// eras is how many generations a run can have, and more than it will be rewound. Behind that a
// generation has how often the visit's name was taken from another node.
const eras = 1 << 20

// generationOf is the generation that the keys of a visit are of.
func (m *machine) generationOf(path string) int { return generationIn(m.generation, m.vacated, path) }

func generationIn(generation int, vacated map[string]int, path string) int {
	if len(vacated) == 0 {
		return generation
	}
	node := nodePath(path)
	for i := range len(node) {
		if node[i] == '/' {
			generation += vacated[node[:i]] * eras
		}
	}
	return generation + vacated[node]*eras
}

// generation is that of the next attempt of t.
func (t *task) generation(m *machine) int {
	if len(m.vacated) == 0 {
		return m.generation
	}
	return m.generationOf(t.path())
}

// vacate counts the names that the migration takes.
func (c *change) vacate(vacated map[string]int) map[string]int {
	if len(c.names) == 0 {
		return vacated
	}
	next := maps.Clone(vacated)
	if next == nil {
		next = map[string]int{}
	}
	for was, is := range c.names {
		if is != was {
			next[was]++
		}
	}
	return next
}
