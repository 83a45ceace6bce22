package dag

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/state"
)

// ParsePlan makes a plan from what [Graph.MarshalJSON] wrote, for programs that don't have the
// graph. The plan has all that the JSON says: nodes, kinds, edges, outcomes, nested graphs and
// cells. It has no functions, policies and bounds: a log can be read with it, but no run can be
// driven. JSON that is no graph, or that does not match its digest, is an error.
func ParsePlan(graph []byte) (*Plan, error) {
	var d document
	if err := json.Unmarshal(graph, &d); err != nil {
		return nil, fmt.Errorf("dag: no graph: %w", err)
	}
	p, err := d.plan(1)
	if err != nil {
		return nil, fmt.Errorf("dag: no graph: %w", err)
	}
	if d.Digest != p.Digest {
		return nil, fmt.Errorf("dag: no graph: its digest is %s, it says %q", p.Digest, d.Digest)
	}
	return p, nil
}

// seal sets what follows from a document: the digest of a plan and its JSON.
func (p *Plan) seal(d *document) {
	p.doc = d
	bare := *d
	bare.Digest = ""
	sum := sha256.Sum256(bare.json())
	p.Digest = "sha256:" + hex.EncodeToString(sum[:])
	bare.Digest = p.Digest
	p.JSON = bare.json()
}

// plan makes the plan that d describes, which is nested depth deep.
func (d *document) plan(depth int) (*Plan, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("graphs are nested more than %d deep", MaxDepth)
	}
	if err := CheckName(d.Name); err != nil {
		return nil, err
	}
	schema, err := d.schema()
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Name: d.Name, Schema: schema, Depth: 1, size: len(d.Nodes), names: &nameIndex{},
		Nodes: make([]PlanNode, len(d.Nodes)), Followers: make([][]int, len(d.Nodes)),
	}
	at := make(map[string]int, len(d.Nodes))
	for i := range d.Nodes {
		if err := p.parseNode(&d.Nodes[i], at, depth); err != nil {
			return nil, fmt.Errorf("node %q: %w", d.Nodes[i].Name, err)
		}
		at[d.Nodes[i].Name] = i
	}
	if p.size > MaxNodes {
		return nil, fmt.Errorf("it has %d nodes, the limit is %d", p.size, MaxNodes)
	}
	for i := range d.Ends {
		e, err := p.parseExpr(&d.Ends[i], at)
		if err != nil {
			return nil, fmt.Errorf("its end: %w", err)
		}
		p.followFailures(e)
	}
	p.seal(d)
	return p, nil
}

func (d *document) schema() (*state.Schema, error) {
	cells, err := json.Marshal(struct {
		Cells []state.CellInfo `json:"cells"`
	}{d.State})
	if err != nil {
		return nil, err
	}
	return state.ParseSchema(cells)
}

// parseNode makes the next node of p; at has the names of those before it.
func (p *Plan) parseNode(d *docNode, at map[string]int, depth int) error {
	i := len(at)
	n := &p.Nodes[i]
	*n = PlanNode{Name: d.Name, Kind: parseKind(d.Kind), Outcomes: d.Outcomes}
	if err := CheckName(d.Name); err != nil {
		return err
	}
	if _, ok := at[d.Name]; ok {
		return errors.New("the name is taken by an earlier node")
	}
	if n.Kind == 0 {
		return fmt.Errorf("no kind %q is known", d.Kind)
	}
	if err := p.parseBody(n, d, depth); err != nil || d.Follows == nil {
		return err
	}
	var err error
	if n.Follows, err = p.parseExpr(d.Follows, at); err != nil {
		return err
	}
	p.followFailures(n.Follows)
	p.connect(i)
	return nil
}

// parseBody makes the graph that a node holds, and of an Each what every item visits.
func (p *Plan) parseBody(n *PlanNode, d *docNode, depth int) error {
	nests := n.Kind == KindLoop || n.Kind == KindEmbed
	if nests != (d.Graph != nil) && n.Kind != KindEach {
		return fmt.Errorf("a %s, and it has a graph: %t", n.Kind, d.Graph != nil)
	}
	if d.Graph != nil {
		body, err := d.Graph.plan(depth + 1)
		if err != nil {
			return err
		}
		n.Body, p.Depth, p.size = body, max(p.Depth, 1+body.Depth), p.size+body.size
	}
	if n.Kind == KindEach {
		n.Item = &PlanNode{Name: n.Name, Kind: KindStep, Body: n.Body}
		if n.Body != nil {
			n.Item.Kind = KindEmbed
		}
	}
	return nil
}

// connect makes node i known to those that it follows.
func (p *Plan) connect(i int) {
	for leaf := range leaves([]Expr{p.Nodes[i].Follows}) {
		to := p.Followers[leaf.Node]
		if len(to) == 0 || to[len(to)-1] != i {
			p.Followers[leaf.Node] = append(to, i)
			p.Nodes[i].Waits++
		}
	}
}

func (p *Plan) followFailures(e Expr) {
	for leaf := range leaves([]Expr{e}) {
		if leaf.Failed {
			p.Nodes[leaf.Node].FailureFollowed = true
		}
	}
}

// parseExpr finds the nodes that an edge names, which stand before whoever follows it.
func (p *Plan) parseExpr(d *docExpr, at map[string]int) (Expr, error) {
	if d.All != nil || d.Any != nil {
		e, members := Expr{Op: OpAll}, d.All
		if d.Any != nil {
			e.Op, members = OpAny, d.Any
		}
		for i := range members {
			member, err := p.parseExpr(&members[i], at)
			if err != nil {
				return Expr{}, err
			}
			e.Of = append(e.Of, member)
		}
		return e, nil
	}
	i, ok := at[d.Node]
	if !ok {
		return Expr{}, fmt.Errorf("it follows %q, and no node before it has that name", d.Node)
	}
	for _, o := range d.On {
		if !slices.Contains(p.Nodes[i].Outcomes, o) {
			return Expr{}, fmt.Errorf("it follows outcome %q of node %q, which declares no such", o, d.Node)
		}
	}
	return Expr{Op: OpNode, Node: i, On: d.On, Failed: d.Failed}, nil
}

// parseKind returns the kind of that name, 0 if there is none.
func parseKind(name string) Kind {
	for k := KindStep; k < kindEnd; k++ {
		if k.String() == name {
			return k
		}
	}
	return 0
}
