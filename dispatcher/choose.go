package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// chooses makes the outcome of a Choose: its entry names what was chosen, each once and in the
// order of declaration.
func (v *visit) chooses(n *dag.PlanNode, chosen []string) *userError {
	for _, o := range chosen {
		if !slices.Contains(n.Outcomes, o) {
			return undeclared(n, o)
		}
	}
	all := []string{}
	for _, o := range n.Outcomes {
		if slices.Contains(chosen, o) {
			all = append(all, o)
		}
	}
	v.choose(string(encode(all)))
	return nil
}

func undeclared(n *dag.PlanNode, outcome string) *userError {
	err := fmt.Errorf("outcome %.200q is not declared: declared are %s", outcome, strings.Join(n.Outcomes, ", "))
	return &userError{kind: dag.FailedOutcome, err: err}
}
