package dispatcher_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Brim is a state that can't be merged in each of the ways there are.
type Brim struct {
	Said       state.List[string]
	Word       state.Value[string]
	Count      state.Sum[int]
	Bad        state.Sum[int]
	A, B, C, D state.Fold[joined]
}

// Check is the one that package state speaks of.
func (s *Brim) Check() error {
	if s.Bad.Get() > 1 {
		return errWeather
	}
	return nil
}

// A superstep that can't be merged is taken back, and runs again behind a resume, also if a
// dag.Fail beside it has been reached already: then what is beside that ends, and the run fails
// there, from then on without running anything. So it is whether the superstep is that of an Embed,
// of a Loop or of an item.
func TestFaultBesideAFail(t *testing.T) {
	limit := func(name string) func(error) bool {
		return func(err error) bool {
			var e *dispatcher.LimitError
			return errors.As(err, &e) && e.Limit == name
		}
	}
	for name, c := range map[string]struct {
		does  func(s *Brim, who string)
		limit dispatcher.Limits
		is    func(error) bool
	}{
		"conflict": {func(s *Brim, who string) { s.Word.Set(who) }, dispatcher.Limits{}, func(err error) bool {
			var e *state.ConflictError
			return errors.As(err, &e)
		}},
		"state bytes": {func(s *Brim, _ string) { s.Said.Append(strings.Repeat("x", 200)) }, dispatcher.Limits{StateBytes: 300}, limit("state bytes")},
		"merged bytes": {func(s *Brim, _ string) {
			for _, cell := range []*state.Fold[joined]{&s.A, &s.B, &s.C, &s.D} {
				cell.Merge(joined{strings.Repeat("x", 7<<20)})
			}
		}, dispatcher.Limits{}, limit("merged bytes")},
		"merge": {func(s *Brim, _ string) { s.Count.Add(math.MaxInt/2 + 1) }, dispatcher.Limits{}, func(err error) bool {
			return errors.Is(err, state.ErrOverflow)
		}},
		"check": {func(s *Brim, _ string) { s.Bad.Add(1) }, dispatcher.Limits{}, func(err error) bool { return errors.Is(err, errWeather) }},
	} {
		for _, holder := range []string{"embed", "loop", "each"} {
			if name == "merged bytes" && holder != "loop" { // it takes a second
				continue
			}
			t.Run(name+" in "+holder, func(t *testing.T) {
				quiet(t)
				var w witness
				var store memory.Store
				broken := true
				fails, body, b := dag.New[Brim]("fails"), dag.New[Brim]("body"), dag.New[Brim]("beside")
				first := dag.Route(fails, "first", func(ctx context.Context, _ *Brim) (way, error) {
					w.note(ctx)
					return left, nil
				}, []way{left})
				dag.Fail(fails, "no", first.On(left))
				for _, who := range []string{"one", "two"} {
					dag.Step(body, who, func(ctx context.Context, s *Brim) error {
						w.note(ctx)
						if broken {
							c.does(s, who)
						}
						return nil
					})
				}
				none := func(*Brim, *Brim) {}
				dag.Embed(b, "fails", frozen(t, fails), none, none)
				at := holder + "/1/"
				switch holder {
				case "embed":
					at = holder + "/"
					dag.Embed(b, holder, frozen(t, body), none, none)
				case "loop":
					dag.Loop(b, holder, frozen(t, body), func(*Brim) bool { return true }, 5)
				case "each":
					dag.EachGraph(b, holder, func(*Brim) []int { return []int{1} }, frozen(t, body),
						func(*Brim, int, *Brim) {}, func(*Brim, int, *Brim) {})
				}
				g := frozen(t, b)
				o := dispatcher.Options{Limits: c.limit}
				res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "fails/no", at+"one", at+"two")
				if !c.is(err) {
					t.Errorf("the run returns %.300v", err)
				}
				w.expect(t, "fails/first", at+"one", at+"two")
				broken = false
				for _, bodies := range [][]string{{at + "one", at + "two"}, nil} {
					res, err = process(t, g, &store, o).Resume(t.Context(), run)
					rests(t, res, err, checkpoint.StatusFailed, "fails/no")
					var failed *dispatcher.NodeError
					if !errors.As(err, &failed) || failed.Kind != dag.FailedEnd || failed.Path != "fails/no" {
						t.Errorf("the resume returns %v", err)
					}
					w.expect(t, bodies...)
				}
			})
		}
	}
}
