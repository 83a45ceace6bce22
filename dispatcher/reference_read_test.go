package dispatcher_test

import (
	"fmt"
	"strings"
)

func newReference(g *graphSpec, rules func(path string) rule, input []cellOp) *reference {
	root := newRefFrame(g, "", refState{}.with(input))
	return &reference{
		root: root, states: map[string]string{}, ready: map[string]string{},
		answers: func(string) []string { return nil }, rules: rules,
	}
}

func newRefFrame(g *graphSpec, path string, s refState) *refFrame {
	return &refFrame{g: g, path: path, state: s, nodes: make([]refTask, len(g.Nodes))}
}

// at is the address of the frame's last checkpoint.
func (f *refFrame) at() string { return fmt.Sprintf("%s@%d", f.path, f.step) }

// told are the failures that happened among those that edges follow, and those that
// nodes have collected that edges follow and are taken.
func (f *refFrame) told(edges []edgeSpec) []string {
	var all []string
	for _, i := range mentioned(edges, func(e edgeSpec) bool { _, taken := f.edge(e); return taken }) {
		if t := &f.nodes[i]; t.phase == "failed" {
			all = append(all, t.failure)
		} else {
			all = append(all, t.collected...)
		}
	}
	return all
}

// rests is the cursor in one line.
func (f *refFrame) rests() string { return strings.Join(f.cursor(nil), ",") }

// cursor adds the visits that have still to run or wait.
func (f *refFrame) cursor(all []string) []string {
	if f.open == nil {
		return append(all, f.held...)
	}
	for _, t := range f.open {
		if f.caught && f.spared(t) {
			continue
		}
		if t.inner != nil {
			all = t.inner.cursor(all)
		} else if t.phase == "" || t.verdict != 0 {
			all = append(all, t.path)
		}
	}
	return all
}

// interrupts adds what waits for a resume.
func (f *refFrame) interrupts(all []string) []string {
	for _, path := range f.held {
		all = append(all, "after "+path)
	}
	for _, t := range f.open {
		switch {
		case t.inner != nil:
			all = t.inner.interrupts(all)
		case t.waits:
			all = append(all, "before "+t.path)
		}
	}
	return all
}
