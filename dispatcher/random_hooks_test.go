package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A rule is what interceptors do at a visit.
type rule string

const (
	ruleDeny    rule = "deny"
	ruleAsk     rule = "ask" // if the run is one that asks
	ruleInstead rule = "instead"
	ruleReplace rule = "replace"
)

// rulesOf are the rules of a case, for the dispatcher and the reference: they follow from
// the seed and the path of the visit, and from the graph that the run begins with.
func rulesOf(seed uint64, g *graphSpec) func(path string) rule {
	return func(path string) rule {
		in, i := g.place(path)
		if i < 0 || in.Nodes[i].Kind == dag.KindFail {
			return ""
		}
		item := isItem(path)
		denies := 1
		if in.catches(i) && !item || in.Nodes[i].Collect && item {
			denies = 15
		}
		if n := in.Nodes[i]; item && !n.Collect && n.Parallel != 1 {
			denies = 0 // which items begin before one is denied is timing
		}
		x := chance(100, "rule", strconv.FormatUint(seed, 10), path)
		for _, r := range []struct {
			rule  rule
			often int
		}{{ruleDeny, denies}, {ruleAsk, 6}, {ruleInstead, 6}, {ruleReplace, 6}} {
			if x -= r.often; x < 0 {
				return r.rule
			}
		}
		return ""
	}
}

// place returns the graph that the node of a visit stands in, and which one it is there: -1
// if there is none.
func (g *graphSpec) place(path string) (in *graphSpec, i int) {
	i = -1
	for part := range strings.SplitSeq(path, "/") {
		if isNumber(part) {
			continue
		}
		if i >= 0 {
			g = g.Nodes[i].Body
		}
		i = slices.IndexFunc(g.Nodes, func(n *nodeSpec) bool { return n.Name == part })
		if i < 0 || g.Nodes[i].Body == nil {
			return g, i
		}
	}
	return g, i
}

func isItem(path string) bool { return isNumber(path[strings.LastIndex(path, "/")+1:]) }

// approves reports whether a person lets the visit of path begin.
func approves(path string) bool { return chance(4, "approves", path) > 0 }

// substitute is what an interceptor does in the place of n, or behind it.
func (n *nodeSpec) substitute(path string, draft func(...cellOp) string) (outcome string) {
	path = "in place of " + path
	return n.outcome(path, draft(fill([]cellOp{{Cell: "L", Do: "append", Val: "instead "}}, path, draft())...))
}

// interceptors do what the rules say.
func (c *randomCase) interceptors() []dispatcher.Interceptor {
	substitute := func(call dispatcher.Call, s any) []string {
		in, i := c.spec.place(call.Path)
		return strings.Fields(in.Nodes[i].substitute(call.Path, cellsOf(s).draft))
	}
	guard := func(ctx context.Context, call dispatcher.Call) dispatcher.Ruling {
		switch r := c.rules(call.Path); {
		case r == ruleDeny:
			return dispatcher.Deny("denied")
		case r == ruleAsk && benchOf(ctx).questions != nil && (!c.gated(call.Path) || c.waitsTwice(call.Path)):
			return dispatcher.Ask("before " + call.Path)
		}
		return dispatcher.Continue()
	}
	swap := func(ctx context.Context, call dispatcher.Call) dispatcher.Ruling {
		if c.rules(call.Path) == ruleAsk && benchOf(ctx).questions != nil && c.waitsTwice(call.Path) {
			return dispatcher.Ask("and again before " + call.Path)
		}
		runs := call.Kind == dag.KindStep || call.Kind == dag.KindRoute || call.Kind == dag.KindChoose
		if !runs || c.rules(call.Path) != ruleInstead {
			return dispatcher.Continue()
		}
		return dispatcher.Instead(func(ctx context.Context, s any) ([]string, error) {
			if b := benchOf(ctx); b.body != nil {
				if err := b.body(ctx, call.Path); err != nil {
					return nil, err
				}
			}
			return substitute(call, s), nil
		})
	}
	change := func(_ context.Context, call dispatcher.Call, _ []string) dispatcher.Change {
		if c.rules(call.Path) != ruleReplace {
			return dispatcher.Keep()
		}
		return dispatcher.Replace(func(_ context.Context, s any) ([]string, error) { return substitute(call, s), nil })
	}
	return []dispatcher.Interceptor{{Name: "guard", Before: guard}, {Name: "swap", Before: swap, After: change}}
}

func cellsOf(s any) *cells {
	if g, ok := s.(*grouped); ok {
		return &g.Group
	}
	return s.(*cells)
}

// draft writes, and returns what is seen then.
func (c *cells) draft(writes ...cellOp) string {
	c.write(writes)
	return c.look()
}

// refuses reports whether a visit may not begin, and notes how it then fails.
func (r *reference) refuses(t *refTask) bool {
	if t.inner != nil || t.Kind == dag.KindFail {
		return false
	}
	kind := dag.FailureKind("")
	switch rule := r.rules(t.path); {
	case rule == ruleDeny:
		kind = dag.FailedDenied
	case rule == ruleAsk && r.consults && !approves(t.path):
		kind = dag.FailedRejected
	}
	t.failure = toldOf(t.path, t.attempts, kind)
	return kind != ""
}

// watch counts the items that are at work side by side, and notes where there are too many.
func (b *bench) watch(path string, more int) {
	if b.spec == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy == nil {
		b.busy = map[string]map[string]int{}
	}
	parts := strings.Split(path, "/")
	for k := 1; k < len(parts); k++ {
		each := strings.Join(parts[:k], "/")
		in, i := b.spec.place(each)
		if !isNumber(parts[k]) || i < 0 || in.Nodes[i].Kind != dag.KindEach {
			continue
		}
		items := b.busy[each]
		if items == nil {
			items = map[string]int{}
			b.busy[each] = items
		}
		if items[parts[k]] += more; items[parts[k]] == 0 {
			delete(items, parts[k])
		}
		if width := in.Nodes[i].Parallel; width > 0 && len(items) > width {
			b.wide = append(b.wide, fmt.Sprintf("%s has %d items at work, its width is %d", each, len(items), width))
		}
	}
}

// narrow checks that no Each was wider than it may be.
func (b *bench) narrow(t *testing.T) {
	t.Helper()
	for _, wide := range b.wide {
		t.Error(wide)
	}
}

// firm drops from a list of visits what is timing: which items ran behind one that failed.
func (r *reference) firm(visits []string) []string {
	return slices.DeleteFunc(slices.Clone(visits), func(v string) bool {
		return slices.ContainsFunc(r.timing, func(item string) bool { return strings.HasPrefix(v, item+"@") })
	})
}

// hooked notes what interceptors and persons have to do with a visit that is done.
func hooked(c *randomCase, path string, seen map[string]bool) {
	r := c.rules(path)
	in, i := c.spec.place(path)
	if n := in.Nodes[i]; n.Body == nil && (n.Kind != dag.KindEach || isItem(path)) {
		seen["instead"] = seen["instead"] || r == ruleInstead
		seen["replaced"] = seen["replaced"] || r == ruleReplace
	}
	seen["asked before"] = seen["asked before"] || r == ruleAsk
	seen["rejected"] = seen["rejected"] || r == ruleAsk && !approves(path)
}
