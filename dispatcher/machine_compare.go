package dispatcher

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// view is the state of a frame under the new graph.
func (c *change) view(z *frozenFrame, p place) json.RawMessage {
	if view, ok := c.views[z.Path]; ok {
		return view
	}
	return c.cells(z.View, "", z, p)
}

// delta is what was written and not merged yet, under the new graph.
func (c *change) delta(d json.RawMessage, what string, z *frozenFrame, p place) json.RawMessage {
	if len(d) == 0 {
		return d
	}
	if c.views == nil { // else a State was asked, and an Each's frame has the state around it
		what = ""
	}
	return c.cells(d, what, z, p)
}

// cells checks that the cells of an image or delta are the same in the new graph.
func (c *change) cells(data json.RawMessage, what string, z *frozenFrame, p place) json.RawMessage {
	var used map[string]json.RawMessage
	if err := json.Unmarshal(data, &used); err != nil {
		c.against("what frame %q holds can't be read: %v", z.Path, err)
		return data
	}
	was, is := p.was.Schema.Cells(), p.is.Schema.Cells()
	for _, name := range slices.Sorted(maps.Keys(used)) {
		reason := cellChanged(name, was, is)
		if reason == "" {
			continue
		}
		if z.Path != "" {
			reason = strings.Replace(reason, ofCell+name, ofCell+name+" of "+z.Path, 1)
		}
		if what != "" {
			reason += ", and " + what + notMerged
		}
		if !slices.Contains(c.reasons, reason) {
			c.reasons = append(c.reasons, reason)
		}
	}
	return data
}

// cellChanged says how a cell has changed, "" if it is the same.
func cellChanged(name string, was, is []state.CellInfo) string {
	find := func(cells []state.CellInfo) (string, []byte) {
		for i := range cells {
			if cells[i].Name == name {
				return cells[i].String(), encode(cells[i])
			}
		}
		return "", nil
	}
	before, a := find(was)
	after, b := find(is)
	switch {
	case string(a) == string(b):
		return ""
	case after == "":
		return fmt.Sprintf(ofCell+"%s was a %s and is gone", name, before)
	case before == after:
		return fmt.Sprintf(ofCell+"%s was %s and is %s", name, a, b)
	}
	return fmt.Sprintf(ofCell+"%s was a %s and is a %s", name, before, after)
}

// named is what a node follows, in the names of the new graph and in an order that does not
// depend on how it was written down. With ways it is of the old graph; then it leaves out
// nodes that are forgotten, and reports whether there were any.
func named(plan *dag.Plan, e *dag.Expr, ways []passage) (text string, forgot bool) {
	switch e.Op {
	case dag.OpNode:
		name := plan.Nodes[e.Node].Name
		if ways != nil && ways[e.Node].is != nil {
			name = ways[e.Node].is.Name
		}
		if ways != nil && ways[e.Node].forgot {
			return "", true
		}
		if e.Failed {
			return "the failure of " + name, false
		}
		if e.On == nil {
			return name, false
		}
		return name + " on " + strings.Join(slices.Sorted(slices.Values(e.On)), " or "), false
	case dag.OpAll, dag.OpAny:
		var of []string
		for i := range e.Of {
			text, gone := named(plan, &e.Of[i], ways)
			forgot = forgot || gone
			if text != "" {
				of = append(of, text)
			}
		}
		slices.Sort(of)
		word := map[dag.Op]string{dag.OpAll: "all of (", dag.OpAny: "any of ("}[e.Op]
		return word + strings.Join(slices.Compact(of), ", ") + ")", forgot
	}
	return "", false
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
