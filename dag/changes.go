package dag

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/state"
)

// Changes says, in words, what changed from one graph to another. Both are given as
// [Graph.MarshalJSON] wrote them. Each change is one string, and names a node by its
// path, or a cell:
//
//	node compose-loop/validate: was route, is step
//	node rank: removed
//	cell Cost: was sum of int, is value of string
//
// If the digests differ there is at least one.
func Changes(stored, current []byte) []string {
	var was, is document
	if err := json.Unmarshal(stored, &was); err != nil {
		return []string{"the stored graph can't be read: " + err.Error()}
	}
	if err := json.Unmarshal(current, &is); err != nil {
		return []string{"the current graph can't be read: " + err.Error()}
	}
	var c changes
	if was.Name != is.Name {
		c.add("graph: was %q, is %q", was.Name, is.Name)
	}
	c.cells("", was.State, is.State)
	c.graph("", &was, &is)
	if len(c) == 0 && was.Digest != is.Digest {
		c.add("graph: its digest was %q, is %q", was.Digest, is.Digest)
	}
	return c
}

type changes []string

func (c *changes) add(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

// graph compares the nodes and ends of two graphs. Their nodes' paths begin with prefix.
func (c *changes) graph(prefix string, was, is *document) {
	stored := make(map[string]*docNode, len(was.Nodes))
	for i, n := range was.Nodes {
		stored[n.Name] = &was.Nodes[i]
	}
	kept := make(map[string]bool, len(is.Nodes))
	for _, n := range is.Nodes {
		kept[n.Name] = stored[n.Name] != nil
	}
	for _, n := range was.Nodes {
		if !kept[n.Name] {
			c.add("node %s: removed", prefix+n.Name)
		}
	}
	c.order(prefix, was, is, kept)
	for i, n := range is.Nodes {
		if !kept[n.Name] {
			c.add("node %s: added", prefix+n.Name)
			continue
		}
		c.node(prefix+n.Name, stored[n.Name], &is.Nodes[i])
	}
	if before, after := joined(was.Ends), joined(is.Ends); before != after {
		c.add("%sEnd: was %s, is %s", prefix, cmp.Or(before, "nothing"), cmp.Or(after, "nothing"))
	}
}

// order names the first node that stands where another one stood.
func (c *changes) order(prefix string, was, is *document, kept map[string]bool) {
	names := func(d *document) []string {
		var s []string
		for _, n := range d.Nodes {
			if kept[n.Name] {
				s = append(s, n.Name)
			}
		}
		return s
	}
	before, after := names(was), names(is)
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] {
			c.add("node %s: stands where %s stood", prefix+after[i], prefix+before[i])
			return
		}
	}
}

func (c *changes) node(path string, was, is *docNode) {
	if was.Kind != is.Kind {
		c.add("node %s: was %s, is %s", path, was.Kind, is.Kind)
		return
	}
	if !slices.Equal(was.Outcomes, is.Outcomes) {
		c.add("node %s: its outcomes were %s, are %s", path,
			quoted(was.Outcomes, ", "), quoted(is.Outcomes, ", "))
	}
	if before, after := was.follows(), is.follows(); before != after {
		c.add("node %s: follows %s, followed %s", path, after, before)
	}
	switch {
	case was.Graph == nil && is.Graph == nil:
		return
	case was.Graph == nil:
		c.add("node %s: had no graph, has graph %q", path, is.Graph.Name)
		return
	case is.Graph == nil:
		c.add("node %s: had graph %q, has none", path, was.Graph.Name)
		return
	}
	if was.Graph.Name != is.Graph.Name {
		c.add("node %s: its graph was %q, is %q", path, was.Graph.Name, is.Graph.Name)
	}
	if is.Kind != KindLoop.String() { // a loop's cells are those of the graph round it
		c.cells(path+"/", was.Graph.State, is.Graph.State)
	}
	c.graph(path+"/", was.Graph, is.Graph)
}

func (n *docNode) follows() string {
	if n.Follows == nil {
		return "nothing"
	}
	return n.Follows.String()
}

// cells compares the cells of two states.
func (c *changes) cells(prefix string, was, is []state.CellInfo) {
	find := func(cells []state.CellInfo, name string) int {
		return slices.IndexFunc(cells, func(d state.CellInfo) bool { return d.Name == name })
	}
	for _, d := range was {
		if find(is, d.Name) < 0 {
			c.add("cell %s: removed", prefix+d.Name)
		}
	}
	last := -1
	for _, d := range is {
		i := find(was, d.Name)
		if i < 0 {
			c.add("cell %s: added", prefix+d.Name)
			continue
		}
		c.cell(prefix+d.Name, was[i], d)
		if i < last {
			c.add("cell %s: stands after %s, stood before it", prefix+d.Name, prefix+was[last].Name)
		}
		last = max(last, i)
	}
}

// cell compares two cells by their JSON, which says a little more than their text.
func (c *changes) cell(name string, was, is state.CellInfo) {
	before, err1 := json.Marshal(was)
	after, err2 := json.Marshal(is)
	if err1 == nil && err2 == nil && bytes.Equal(before, after) {
		return
	}
	if was, is := was.String(), is.String(); was != is {
		c.add("cell %s: was %s, is %s", name, was, is)
		return
	}
	c.add("cell %s: was %s, is %s", name, before, after)
}
