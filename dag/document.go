package dag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/state"
)

// MarshalJSON describes the graph as data: its name and digest, the cells of its state,
// and its nodes with their kinds, outcomes, nested graphs and what they follow. Policies,
// limits and bounds are no part of it. The same graph gives the same bytes.
//
//	{
//	  "name": "archivist",
//	  "digest": "sha256:…",
//	  "state": [{"name": "Cost", "kind": "sum", "type": {"kind": "int"}}, …],
//	  "nodes": [
//	    {"name": "classify", "kind": "route", "outcomes": ["search", "off-topic"]},
//	    {"name": "library", "kind": "step", "follows": {"node": "classify", "on": ["search"]}},
//	    {"name": "retreat", "kind": "step", "follows": {"node": "library", "failed": true}},
//	    {"name": "compose", "kind": "loop", "follows": "library", "graph": {…}, …},
//	    {"name": "respond", "kind": "step", "follows": {"any": ["compose", …]}}
//	  ],
//	  "ends": […]
//	}
//
// The digest is the SHA-256 of this JSON without the digest.
func (g *Graph[S]) MarshalJSON() ([]byte, error) {
	p := g.Plan()
	if p == nil {
		return nil, &ArgumentError{"MarshalJSON", "Graph", "is nil or the zero Graph: make one with Build"}
	}
	return bytes.Clone(p.JSON), nil
}

// A document is a graph as its JSON has it. What is drawn and compared is a document, so
// that it can be done for a graph whose program is not at hand.
type document struct {
	Name   string           `json:"name"`
	Digest string           `json:"digest,omitempty"` // of the outermost graph only
	State  []state.CellInfo `json:"state"`
	Nodes  []docNode        `json:"nodes"`
	Ends   []docExpr        `json:"ends,omitempty"`
}

type docNode struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Follows  *docExpr  `json:"follows,omitempty"`
	Outcomes []string  `json:"outcomes,omitempty"`
	Graph    *document `json:"graph,omitempty"`
}

// A docExpr is an [Expr] that names its nodes. One of Node, All and Any is set.
type docExpr struct {
	Node   string    `json:"node,omitempty"`
	On     []string  `json:"on,omitempty"`
	Failed bool      `json:"failed,omitempty"`
	All    []docExpr `json:"all,omitempty"`
	Any    []docExpr `json:"any,omitempty"`
}

// fields is a docExpr whose JSON is always an object.
type fields docExpr

// MarshalJSON writes the plain handle of a node as its name alone.
func (e docExpr) MarshalJSON() ([]byte, error) {
	if e.Node != "" && e.On == nil && !e.Failed {
		return json.Marshal(e.Node)
	}
	return json.Marshal(fields(e))
}

func (e *docExpr) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*e = docExpr{}
		return json.Unmarshal(data, &e.Node)
	}
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.Node == "" && len(f.All) == 0 && len(f.Any) == 0 {
		return errors.New("dag: an edge names neither node, all nor any")
	}
	*e = docExpr(f)
	return nil
}

// String says for people what is followed.
func (e docExpr) String() string {
	switch {
	case e.All != nil:
		return "all of (" + joined(e.All) + ")"
	case e.Any != nil:
		return "any of (" + joined(e.Any) + ")"
	case e.Failed:
		return fmt.Sprintf("failure of %q", e.Node)
	case e.On != nil:
		return fmt.Sprintf("%q on %s", e.Node, quoted(e.On, " or "))
	}
	return fmt.Sprintf("%q", e.Node)
}

func joined(exprs []docExpr) string {
	var s []string
	for _, e := range exprs {
		s = append(s, e.String())
	}
	return strings.Join(s, ", ")
}

func quoted(names []string, separator string) string {
	var s []string
	for _, n := range names {
		s = append(s, fmt.Sprintf("%q", n))
	}
	return strings.Join(s, separator)
}

// expr returns e with the names of the nodes.
func (b *build) expr(e Expr) docExpr {
	if e.Op == OpNode {
		return docExpr{Node: b.nodes[e.Node].name, On: e.On, Failed: e.Failed}
	}
	var of []docExpr
	for _, member := range e.Of {
		of = append(of, b.expr(member))
	}
	if e.Op == OpAll {
		return docExpr{All: of}
	}
	return docExpr{Any: of}
}

// describe sets p's document, JSON and digest. Everything else is set.
func (p *Plan) describe(b *build) {
	d := &document{Name: p.Name, State: p.Schema.Cells()}
	for _, n := range p.Nodes {
		dn := docNode{Name: n.Name, Kind: n.Kind.String(), Outcomes: n.Outcomes}
		if n.Follows.Op != OpNone {
			e := b.expr(n.Follows)
			dn.Follows = &e
		}
		if n.Body != nil {
			dn.Graph = n.Body.doc
		}
		d.Nodes = append(d.Nodes, dn)
	}
	for _, end := range b.ends {
		for _, e := range end.after {
			d.Ends = append(d.Ends, b.expr(b.inOrder(e)))
		}
	}
	p.seal(d)
}

func (d *document) json() []byte {
	data, err := json.Marshal(d)
	if err != nil {
		panic("dag: a document is made of strings, and JSON can say it: " + err.Error())
	}
	return data
}
