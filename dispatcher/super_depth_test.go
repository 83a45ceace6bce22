package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A superTree is a value that may be nested as deep as one likes.
type superTree []superTree

func superNest(depth int) superTree {
	v := superTree{}
	for range depth - 1 {
		v = superTree{v}
	}
	return v
}

func superText(depth int) json.RawMessage {
	return json.RawMessage(strings.Repeat("[", depth) + strings.Repeat("]", depth))
}

type superDeep struct {
	Value state.Value[superTree]
	List  state.List[superTree]
	Map   state.Map[string, superTree]
	Whole state.Whole[struct{ Tree superTree }]
	Pad   state.Value[string]
}

// superDeepGraph writes a value somewhere, and then so much that a snapshot is taken.
func superDeepGraph(t *testing.T, body func(ctx context.Context, s *superDeep) error) *dag.Graph[superDeep] {
	t.Helper()
	b := dag.New[superDeep]("deep")
	last := dag.Step(b, "deep", body)
	for i := range 4 {
		last = dag.Step(b, fmt.Sprint("pad-", i), func(_ context.Context, s *superDeep) error {
			s.Pad.Set(strings.Repeat("x", 200<<10))
			return nil
		}, last)
	}
	return frozen(t, b)
}

var superDeeps = []struct {
	name string
	body func(ctx context.Context, s *superDeep, depth int) error
}{
	{"value", func(_ context.Context, s *superDeep, depth int) error { s.Value.Set(superNest(depth)); return nil }},
	{"list", func(_ context.Context, s *superDeep, depth int) error { s.List.Append(superNest(depth)); return nil }},
	{"map", func(_ context.Context, s *superDeep, depth int) error { s.Map.Put("k", superNest(depth)); return nil }},
	{"whole", func(_ context.Context, s *superDeep, depth int) error {
		s.Whole.Set(struct{ Tree superTree }{superNest(depth - 1)})
		return nil
	}},
	{"emitted value", func(ctx context.Context, _ *superDeep, depth int) error { return dag.Emit(ctx, "e", superText(depth)) }},
	{"input of an effect", func(ctx context.Context, _ *superDeep, depth int) error {
		_, err := dag.Effect(ctx, "e", superNest(depth), func(context.Context, superTree) (int, error) { return 1, nil })
		return err
	}},
	{"output of an effect", func(ctx context.Context, _ *superDeep, depth int) error {
		_, err := dag.Effect(ctx, "e", 1, func(context.Context, int) (superTree, error) { return superNest(depth), nil })
		return err
	}},
	{"question", func(ctx context.Context, _ *superDeep, depth int) error {
		_, err := dag.Ask[string](ctx, "k", superText(depth))
		return err
	}},
}

// A value may be nested state.MaxDepth deep, wherever it is kept: the log and a snapshot with
// it can be read. One that is deeper fails its visit, by name, and harms nothing else.
func TestDepthHasALimit(t *testing.T) {
	for _, c := range superDeeps {
		for _, depth := range []int{state.MaxDepth, state.MaxDepth + 1, 9_999} {
			var store memory.Store
			g := superDeepGraph(t, func(ctx context.Context, s *superDeep) error { return c.body(ctx, s, depth) })
			res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
			if depth > state.MaxDepth {
				var limit *dispatcher.LimitError
				named := errors.As(err, &limit) && limit.Limit == "depth" && limit.Max == state.MaxDepth
				if res.Status != checkpoint.StatusFailed || !named && !errors.Is(err, state.ErrDepth) {
					t.Errorf("a %s nested %d deep: the run is %s, %v", c.name, depth, res.Status, err)
				}
			} else if c.name == "question" {
				if !errors.Is(err, dispatcher.ErrInterrupted) {
					t.Fatalf("a question nested %d deep: %v", depth, err)
				}
				if err := process(t, g, &store, dispatcher.Options{}).Answer(t.Context(), run, res.Interrupts[0].ID, "x"); err != nil {
					t.Error(err)
				}
				res, err = process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
				completes(t, res, err)
			} else {
				completes(t, res, err)
			}
			again, err := process(t, g, &store, dispatcher.Options{}).State(t.Context(), run)
			if err != nil || again.Status != res.Status || asJSON(t, again.State) != asJSON(t, res.State) {
				t.Errorf("a %s nested %d deep: State reads %s, %v", c.name, depth, again.Status, err)
			}
		}
	}
}

// Settings and answers that are nested too deep are refused, and change nothing.
func TestDepthOfWhatIsGiven(t *testing.T) {
	for depth, fits := range map[int]bool{state.MaxDepth: true, state.MaxDepth + 1: false, 9_999: false} {
		var store memory.Store
		g := superDeepGraph(t, func(ctx context.Context, s *superDeep) error {
			tree, err := dag.Ask[superTree](ctx, "k", "q")
			if err == nil {
				s.Value.Set(tree)
			}
			return err
		})
		p := process(t, g, &store, dispatcher.Options{})
		var limit *dispatcher.LimitError
		res, err := p.Run(t.Context(), run, nil, dispatcher.Settings(superText(depth), "somebody"))
		if !fits {
			if !errors.As(err, &limit) || limit.Limit != "depth" {
				t.Errorf("settings nested %d deep: %v", depth, err)
			}
			res, err = p.Run(t.Context(), run, nil)
		}
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		err = p.Answer(t.Context(), run, res.Interrupts[0].ID, superText(depth))
		if !fits {
			var answer *dispatcher.AnswerError
			if !errors.As(err, &answer) || !errors.As(err, &limit) || limit.Limit != "depth" {
				t.Errorf("an answer nested %d deep: %v", depth, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		last, err := p.Run(t.Context(), run, nil)
		completes(t, last, err)
		if _, err := process(t, g, &store, dispatcher.Options{}).State(t.Context(), run); err != nil {
			t.Error(err)
		}
	}
}

// What a call may read to know where a run stands has a limit, which is named before more is
// decoded, and nothing has changed then: of entries, and of a snapshot and what follows it.
func TestDecodeBytesHaveALimit(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		var store memory.Store
		size := 10 << 10
		if snapshots {
			size = 200 << 10
		}
		b := dag.New[superDeep]("large")
		last := dag.Step(b, "ask", func(ctx context.Context, s *superDeep) error {
			_, err := dag.Ask[string](ctx, "k", "q")
			return err
		})
		first := dag.Step(b, "pad", func(_ context.Context, s *superDeep) error {
			s.Pad.Set(strings.Repeat("x", size))
			return nil
		})
		dag.Step(b, "end", func(context.Context, *superDeep) error { return nil }, last, first)
		g := frozen(t, b)
		res, err := process(t, g, &store, dispatcher.Options{}).Run(t.Context(), run, nil)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		_, serr := store.Snapshot(t.Context(), run, 0)
		if (serr == nil) != snapshots {
			t.Fatalf("Snapshot = %v", serr)
		}
		small := process(t, g, &store, dispatcher.Options{Limits: dispatcher.Limits{DecodeBytes: size}})
		before, err := store.Stat(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		_, runErr := small.Run(t.Context(), run, nil)
		_, readErr := small.State(t.Context(), run)
		answerErr := small.Answer(t.Context(), run, res.Interrupts[0].ID, "x")
		for name, err := range map[string]error{"Run": runErr, "State": readErr, "Answer": answerErr} {
			var limit *dispatcher.LimitError
			if !errors.As(err, &limit) || limit.Limit != "decode bytes" || limit.Max != size || limit.Where == "" {
				t.Errorf("snapshots %t: %s = %v", snapshots, name, err)
			}
		}
		if after, err := store.Stat(t.Context(), run); err != nil || after.Head != before.Head || after.Owner != "" {
			t.Errorf("the run has changed: %+v, %v", after, err)
		}
		enough := process(t, g, &store, dispatcher.Options{Limits: dispatcher.Limits{DecodeBytes: 2 * size}})
		if err := enough.Answer(t.Context(), run, res.Interrupts[0].ID, "x"); err != nil {
			t.Fatal(err)
		}
		res, err = enough.Run(t.Context(), run, nil)
		completes(t, res, err)
	}
	_, err := dispatcher.New(line(t, new(witness), nil), new(memory.Store), dispatcher.Options{Limits: dispatcher.Limits{DecodeBytes: -1}})
	var option *dispatcher.OptionError
	if !errors.As(err, &option) || option.Option != "Limits.DecodeBytes" {
		t.Errorf("New = %v", err)
	}
}
