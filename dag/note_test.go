package dag_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
)

// What a node notes is checked when it is said, in a run and outside, and a note that is refused
// is none.
func TestNotesThatAreRefused(t *testing.T) {
	var v dagtest.Visit
	for name, note := range map[string]func(context.Context) error{
		"no name":      func(ctx context.Context) error { return dag.Note(ctx, "", 1) },
		"a long name":  func(ctx context.Context) error { return dag.Note(ctx, strings.Repeat("n", 129), 1) },
		"a control":    func(ctx context.Context) error { return dag.Note(ctx, "a\nb", 1) },
		"another one":  func(ctx context.Context) error { return dag.Note(ctx, "a\u0085b", 1) },
		"pawl's own":   func(ctx context.Context) error { return dag.Note(ctx, "record.decision", 1) },
		"no JSON":      func(ctx context.Context) error { return dag.Note(ctx, "a", func() {}) },
		"no id":        func(ctx context.Context) error { return dag.Decide(ctx, dag.Decision{Description: "d"}) },
		"nothing said": func(ctx context.Context) error { return dag.Learn(ctx, dag.Learning{ID: "l"}) },
		"a bad status": func(ctx context.Context) error {
			return dag.Decide(ctx, dag.Decision{ID: "d", Description: "d", Status: "sure"})
		},
		"a bad authority": func(ctx context.Context) error {
			return dag.Decide(ctx, dag.Decision{ID: "d", Description: "d", OverridableBy: []dag.Authority{"god"}})
		},
		"too sure": func(ctx context.Context) error {
			return dag.Learn(ctx, dag.Learning{ID: "l", Content: "c", Confidence: 1.1})
		},
		"not sure": func(ctx context.Context) error {
			return dag.Learn(ctx, dag.Learning{ID: "l", Content: "c", Confidence: math.NaN()})
		},
		"no blocker": func(ctx context.Context) error { return dag.Block(ctx, dag.Blocker{ID: "b"}) },
		"no UTF-8":   func(ctx context.Context) error { return dag.Learn(ctx, dag.Learning{ID: "l", Content: "\xff"}) },
		"no text":    func(ctx context.Context) error { return dag.Note(ctx, "a", map[string]any{"a": []any{"\xff"}}) },
		"no UTF-8 beside": func(ctx context.Context) error {
			return dag.Decide(ctx, dag.Decision{ID: "d", Description: "d", Alternatives: []dag.Alternative{{Description: "\xff"}}})
		},
		"no invariant": func(ctx context.Context) error { return dag.Require(ctx, dag.Invariant{Description: "i"}) },
	} {
		for _, ctx := range []context.Context{t.Context(), dagtest.Context(t.Context(), &v)} {
			var bad *dag.ArgumentError
			if err := note(ctx); !errors.As(err, &bad) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if all := v.Notes(); len(all) > 0 {
		t.Errorf("noted %q", all)
	}
}

// A test of a node sees what it has noted.
func TestNotesOfANodeAlone(t *testing.T) {
	var v dagtest.Visit
	ctx := dagtest.Context(t.Context(), &v)
	err := errors.Join(
		dag.Note(ctx, "shop.quote", 5),
		dag.Decide(ctx, dag.Decision{ID: "d", Description: "cheap"}),
		dag.Learn(ctx, dag.Learning{ID: "l", Content: "it rains", Confidence: 0.5}),
		dag.Block(ctx, dag.Blocker{ID: "b", Description: "no key"}),
		dag.Require(ctx, dag.Invariant{ID: "i", Description: "no debt"}),
	)
	var told []string
	for _, n := range v.Notes() {
		told = append(told, n.Name+" "+string(n.Value))
	}
	want := `shop.quote 5
record.decision {"id":"d","description":"cheap","status":"accepted"}
record.learning {"id":"l","content":"it rains","confidence":0.5}
record.blocker {"id":"b","description":"no key"}
record.invariant {"id":"i","description":"no debt"}`
	if got := strings.Join(told, "\n"); err != nil || got != want {
		t.Errorf("noted\n%s\n%v", got, err)
	}
}
