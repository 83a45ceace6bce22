package dispatcher

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dag"
)

// A gateName is one of Gates.Names.
type gateName struct {
	text     string
	path     string
	pattern  bool // of path: it is no path itself
	ofEffect bool
	key      string // of the effect: a key, or a pattern of keys
}

// newGateName checks that a name is of something in the plan. What cannot ever match would
// let everything through unseen.
func newGateName(plan *dag.Plan, text string) (gateName, error) {
	n := gateName{text: text}
	if !utf8.ValidString(text) {
		return n, errors.New("it is not UTF-8")
	}
	n.path, n.key, n.ofEffect = strings.Cut(text, "#")
	if n.ofEffect && n.key == "" {
		return n, errors.New("behind the # there is no key of an effect")
	}
	if _, err := path.Match(n.key, ""); err != nil {
		return n, fmt.Errorf("the pattern of keys is malformed: %q", n.key)
	}
	same := func(segment, name string) bool { return segment == name }
	if err := checkAsked(plan, n.path); err != nil {
		if !strings.ContainsAny(n.path, `*?[\`) {
			return n, err
		}
		if _, err := path.Match(n.path, ""); err != nil {
			return n, errors.New("the pattern is malformed")
		}
		n.pattern, same = true, matches
	}
	runs := func(p *dag.PlanNode) bool { return p.Kind != dag.KindFail && p.Body == nil }
	if (n.pattern || n.ofEffect) && !anyNode(plan, strings.Split(n.path, "/"), same, runs) {
		return n, errors.New("no node that runs a function is named so")
	}
	return n, nil
}

// matches reports whether a well-formed pattern matches.
func matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}

// anyNode reports whether the segments of a path may lead, in plan, to a node that is wanted:
// with the numbers of iterations and items, or without.
func anyNode(plan *dag.Plan, segments []string, same func(segment, name string) bool, wanted func(*dag.PlanNode) bool) bool {
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		if !same(segments[0], n.Name) {
			continue
		}
		rest := segments[1:]
		if len(rest) == 0 {
			if wanted(n) {
				return true
			}
			continue
		}
		if (n.Kind == dag.KindLoop || n.Kind == dag.KindEach) && numbers(rest[0], same) {
			if len(rest) == 1 && n.Kind == dag.KindEach && wanted(n) {
				return true
			}
			if len(rest) > 1 && n.Body != nil && anyNode(n.Body, rest[1:], same, wanted) {
				return true
			}
		}
		if n.Body != nil && anyNode(n.Body, rest, same, wanted) {
			return true
		}
	}
	return false
}

// numbers reports whether a segment may be the number of an iteration or item: it is one, or each
// part of the pattern matches a digit, as a star does too.
func numbers(segment string, same func(segment, name string) bool) bool {
	if isIteration(segment) {
		return true
	}
	const most = 10 // digits
	digits, rest := "123456789", segment
	for n := 0; rest != ""; n++ {
		part := firstPart(rest)
		if n == most || !strings.ContainsFunc(digits, func(d rune) bool { return same(part, string(d)) }) {
			return false
		}
		digits, rest = "0123456789", rest[len(part):]
	}
	return segment != ""
}

// firstPart is the first part of a pattern that is not empty: a star, or what matches one
// character.
func firstPart(pattern string) string {
	switch pattern[0] {
	case '\\':
		return pattern[:min(2, len(pattern))]
	case '[':
		for i := 1; i < len(pattern); i++ {
			switch pattern[i] {
			case '\\':
				i++
			case ']':
				return pattern[:i+1]
			}
		}
		return pattern
	}
	return pattern[:1]
}

// visit reports whether n names a visit. See [gates.visit].
func (n *gateName) visit(a *Action, item, holds bool) bool {
	switch {
	case !n.pattern:
		return n.path == a.Path || !item && n.path == a.Node
	case holds:
		return false
	}
	return matches(n.path, a.Path) || !item && matches(n.path, a.Node)
}

// effect reports whether n names an effect.
func (n *gateName) effect(a *Action) bool {
	if n.key != "*" && n.key != a.Effect && !matches(n.key, a.Effect) {
		return false
	}
	if n.pattern {
		return matches(n.path, a.Path) || matches(n.path, a.Node)
	}
	return n.path == a.Path || n.path == a.Node
}
