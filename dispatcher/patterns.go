package dispatcher

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// patterns are node paths and visit paths at which a run is interrupted.
type patterns map[string]bool

// add checks that name is a path of the plan: of a node, or of a visit.
func (p *patterns) add(option string, plan *dag.Plan, name string) error {
	if err := checkPath(plan, name); err != nil {
		return &OptionError{option, fmt.Sprintf("names %q: %v", name, err)}
	}
	if *p == nil {
		*p = patterns{}
	}
	(*p)[name] = true
	return nil
}

func (p patterns) match(b Boundary) bool {
	return len(p) > 0 && (p[b.Path] || p[b.Node])
}

// checkPath follows a path through a plan and the graphs it nests. Iterations may be left
// out everywhere (a node path) or be given everywhere (a visit path).
func checkPath(plan *dag.Plan, path string) error {
	segments := strings.Split(path, "/")
	numbered, bare := false, false
	for i := 0; i < len(segments); i++ {
		n := nodeOf(plan, segments[i])
		if n == nil {
			return fmt.Errorf("graph %s has no node %q", plan.Name, segments[i])
		}
		if i == len(segments)-1 {
			break
		}
		if n.Body == nil {
			return fmt.Errorf("node %q holds no graph", segments[i])
		}
		plan = n.Body
		if n.Kind != dag.KindLoop {
			continue
		}
		if !isIteration(segments[i+1]) {
			bare = true
			continue
		}
		i++
		numbered = true
		if k, err := strconv.Atoi(segments[i]); err != nil || k < 1 || k > n.Most || strconv.Itoa(k) != segments[i] {
			return fmt.Errorf("loop %q has iterations 1 to %d", n.Name, n.Most)
		}
		if i == len(segments)-1 {
			return fmt.Errorf("an iteration is not a node")
		}
	}
	if numbered && bare {
		return fmt.Errorf("iterations are given for some loops only")
	}
	return nil
}

func nodeOf(plan *dag.Plan, name string) *dag.PlanNode {
	for i := range plan.Nodes {
		if plan.Nodes[i].Name == name {
			return &plan.Nodes[i]
		}
	}
	return nil
}

// nodePath is the path of the node that t visits: without iterations.
func (t *task) nodePath() string {
	if t.frame.holder == nil {
		return t.node.Name
	}
	return t.frame.holder.nodePath() + "/" + t.node.Name
}
