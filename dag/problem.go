package dag

import (
	"fmt"
	"strings"
)

// A BuildError is what [Builder.Build] returns: every problem of one graph at once.
type BuildError struct {
	Graph    string
	Problems []error // each a *Problem, in declaration order
}

func (e *BuildError) Error() string {
	if len(e.Problems) == 1 {
		return fmt.Sprintf("dag: graph %q: %s", e.Graph, bare(e.Problems[0]))
	}
	var s strings.Builder
	fmt.Fprintf(&s, "dag: graph %q: %d problems:", e.Graph, len(e.Problems))
	for _, p := range e.Problems {
		s.WriteString("\n\t" + strings.ReplaceAll(bare(p), "\n", "\n\t"))
	}
	return s.String()
}

// Unwrap returns the problems.
func (e *BuildError) Unwrap() []error { return e.Problems }

// A Problem is one thing that is wrong with a graph.
type Problem struct {
	Node    string // the node at fault; "" if it is the graph, an End or a nameless node
	Outcome string // the outcome that the problem is about, if it is about one
	Text    string // what is wrong, and names both
	Err     error  // what package state found wrong with the state type, or a *LimitError; else nil
}

func (p *Problem) Error() string { return "dag: " + p.Text }

// Unwrap returns p.Err.
func (p *Problem) Unwrap() error { return p.Err }

// A LimitError says which limit a graph exceeds. Inside a [Problem].
type LimitError struct {
	Limit string // nodes or depth
	Max   int
	Is    int // what the graph has
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("dag: %d exceeds the limit %d of %s", e.Is, e.Max, e.Limit)
}

// bare is the message of a problem where the word "dag:" has been said already.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "dag: ") }
