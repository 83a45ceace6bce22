package dispatcher

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// patterns are node paths and visit paths at which a run is interrupted.
type patterns map[string]bool

// add checks that name is a path of the plan: of a node, or of a visit.
func (p *patterns) add(option string, plan *dag.Plan, name string) error {
	if err := checkAsked(plan, name); err != nil {
		return &OptionError{option, fmt.Sprintf("names %q: %v", name, err)}
	}
	if *p == nil {
		*p = patterns{}
	}
	(*p)[name] = true
	return nil
}

// match reports whether p names the visit. The node path of an item is that of its Each,
// and means that one.
func (p patterns) match(b Boundary, item bool) bool {
	return len(p) > 0 && (p[b.Path] || !item && p[b.Node])
}

// checkPath follows a path through a plan and the graphs it nests. The numbers of iterations
// and items may be left out everywhere (a node path) or be given everywhere (a visit path).
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
		number := (n.Kind == dag.KindLoop || n.Kind == dag.KindEach) && isIteration(segments[i+1])
		if number {
			numbered = true
			i++
			if err := checkNumber(n, segments[i]); err != nil {
				return err
			}
			if i == len(segments)-1 {
				if n.Kind == dag.KindLoop {
					return fmt.Errorf("an iteration is not a node")
				}
				break
			}
		}
		if n.Body == nil {
			return fmt.Errorf("node %q holds no graph", n.Name)
		}
		plan = n.Body
		bare = bare || !number && n.Kind != dag.KindEmbed
	}
	if numbered && bare {
		return fmt.Errorf("numbers are given for some loops and eaches only")
	}
	return nil
}

// checkAsked is checkPath for what a run is to pause at, or somebody is to be asked about. A
// dag.Fail fails as soon as its edges are taken: nobody can come between.
func checkAsked(plan *dag.Plan, path string) error {
	if err := checkPath(plan, path); err != nil {
		return err
	}
	if nodeAt(plan, path).Kind == dag.KindFail {
		return errors.New("a dag.Fail does nothing that could wait: name what it follows")
	}
	return nil
}

// checkNumber checks a number of an iteration or an item.
func checkNumber(n *dag.PlanNode, number string) error {
	k, err := strconv.Atoi(number)
	switch good := err == nil && k > 0 && strconv.Itoa(k) == number; {
	case n.Kind == dag.KindEach && !good:
		return fmt.Errorf("each %q has items from 1 on", n.Name)
	case n.Kind == dag.KindLoop && (!good || k > n.Most):
		return fmt.Errorf("loop %q has iterations 1 to %d", n.Name, n.Most)
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

// nodePath is the path of the node that t visits: without iterations and items.
func (t *task) nodePath() string {
	if t.isItem() {
		return t.frame.holder.nodePath()
	}
	if t.frame.holder == nil {
		return t.node.Name
	}
	return t.frame.holder.nodePath() + "/" + t.node.Name
}
