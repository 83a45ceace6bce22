package dispatcher_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// All interceptors are asked, whatever becomes of the others. One that panics allows nothing: a
// visit that another one denies is denied, and any other fails.
func TestRulingsBesideAPanic(t *testing.T) {
	for _, c := range possibleRulings {
		for _, first := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				quiet(t)
				var w witness
				asked := 0
				rules := func(dispatcher.Call) dispatcher.Ruling { asked++; return c.ruling }
				panics := func(dispatcher.Call) dispatcher.Ruling { asked++; panic(errFire) }
				o, by, broken := hookBefore([]string{"b"}, panics, rules), "second", `interceptor "first": `+errFire.Error()
				if !first {
					o, by, broken = hookBefore([]string{"b"}, rules, panics), "first", `interceptor "second": `+errFire.Error()
				}
				o.Limits.ValueBytes = 1000
				res, err := process(t, line(t, &w, nil), new(memory.Store), o).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "b")
				w.expect(t, "a")
				if asked != 2 {
					t.Errorf("%d interceptors were asked", asked)
				}
				if !strings.Contains(err.Error(), broken) {
					t.Errorf("%v does not tell of the panic: %s", err, broken)
				}
				switch c.name {
				case "continue", "instead", "ask":
					var n *dispatcher.NodeError
					if !errors.As(err, &n) || n.Kind != dag.FailedPanic || len(n.Stack) == 0 || !errors.Is(err, errFire) {
						t.Errorf("the error is %v, want the panic", err)
					}
				default:
					denied(t, err, "b", by)
				}
			})
		}
	}
}

// Whoever breaks a visit that is not the node itself is named in the error, and in the log.
func TestBrokenIsNotTheNode(t *testing.T) {
	before := func(f func() dispatcher.Ruling) dispatcher.Options {
		return dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{
			Name: "who", Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return f() },
		}}}}
	}
	after := func(f func() dispatcher.Change) dispatcher.Options {
		return dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{
			Name: "who", After: func(context.Context, dispatcher.Call, []string) dispatcher.Change { return f() },
		}}}}
	}
	const who, gate = `interceptor "who": `, "Gates.If: "
	ifs := func(effect bool, blast func()) dispatcher.Options {
		return gated(dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) {
			if (a.Effect != "") == effect {
				blast()
			}
			return false, nil
		}})
	}
	for _, c := range []struct {
		place, named string
		options      func(blast func()) dispatcher.Options
	}{
		{"Before", who, func(blast func()) dispatcher.Options {
			return before(func() dispatcher.Ruling { blast(); return dispatcher.Continue() })
		}},
		{"Instead", who, func(blast func()) dispatcher.Options {
			return before(func() dispatcher.Ruling {
				return dispatcher.Instead(func(context.Context, any) ([]string, error) { blast(); return nil, nil })
			})
		}},
		{"After", who, func(blast func()) dispatcher.Options {
			return after(func() dispatcher.Change { blast(); return dispatcher.Keep() })
		}},
		{"Replace", who, func(blast func()) dispatcher.Options {
			return after(func() dispatcher.Change {
				return dispatcher.Replace(func(context.Context, any) ([]string, error) { blast(); return nil, nil })
			})
		}},
		{"InterruptIf", "InterruptIf: ", func(blast func()) dispatcher.Options {
			return dispatcher.Options{InterruptIf: func(dispatcher.Boundary) bool { blast(); return false }}
		}},
		{"Gates.If of the visit", gate, func(blast func()) dispatcher.Options { return ifs(false, blast) }},
		{"Gates.If of the effect", gate, func(blast func()) dispatcher.Options { return ifs(true, blast) }},
		{"node", "", func(func()) dispatcher.Options { // beside an interceptor who has done his part
			return after(func() dispatcher.Change { return dispatcher.Keep() })
		}},
	} {
		for kind, blast := range map[dag.FailureKind]func(){
			dag.FailedPanic:  func() { panic(errFire) },
			dag.FailedGoexit: runtime.Goexit,
		} {
			if kind == dag.FailedGoexit && c.place == "Gates.If of the effect" {
				continue // it ends the node's goroutine, as the node may
			}
			t.Run(c.place+"/"+string(kind), func(t *testing.T) {
				var store memory.Store
				g := callsGraph(t, func(ctx context.Context, _ *Tale) error {
					_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 1, nil })
					if c.place == "node" {
						blast()
					}
					return err
				})
				res, err := process(t, g, &store, c.options(blast)).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "only")
				var n *dispatcher.NodeError
				if !errors.As(err, &n) || n.Kind != kind || len(n.Stack) == 0 || kind == dag.FailedPanic && !errors.Is(err, errFire) {
					t.Errorf("the error is %v, want one of kind %s", err, kind)
				}
				what := map[dag.FailureKind]string{dag.FailedPanic: errFire.Error(), dag.FailedGoexit: "called runtime.Goexit"}[kind]
				if n.Err.Error() != c.named+what {
					t.Errorf("the error is %q, want %q", n.Err, c.named+what)
				}
				log := readLog(t, &store)
				i := len(log) - 1
				for ; i > 0 && log[i].Kind != checkpoint.AttemptFailed; i-- {
				}
				var f checkpoint.FailedAttempt
				if gatesDecode(t, log[i], &f); f.Message != c.named+what {
					t.Errorf("the log says %q, want %q", f.Message, c.named+what)
				}
			})
		}
	}
}
