package continuation_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/pawltest"
)

// told is a test that keeps what it is told.
type told struct {
	*testing.T
	all []string
}

func (f *told) Errorf(format string, args ...any) {
	f.all = append(f.all, fmt.Sprintf(format, args...))
}

// A run that has waited for an instant agrees with its graph, however much later that is tried; a
// wait that is another one is told.
func TestReplayOfInstants(t *testing.T) {
	never := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	for name, wait := range map[string]func() continuation.Wait{
		"after": func() continuation.Wait { return continuation.Wait{Kind: continuation.KindTimer, After: time.Hour} },
		"at": func() continuation.Wait {
			return continuation.Wait{Kind: continuation.KindTimer, At: time.Now().Add(time.Hour)}
		},
		"beside": func() continuation.Wait {
			return continuation.Any(continuation.Wait{}, continuation.Wait{Kind: continuation.KindTimer, After: time.Hour})
		},
		"by default": func() continuation.Wait { return continuation.Wait{OnExpire: continuation.Default("hm")} },
		"again": func() continuation.Wait {
			return continuation.Wait{Key: "k", Within: time.Hour, OnExpire: continuation.Again(1)}
		},
		"never": func() continuation.Wait { return continuation.Wait{Key: "k", Until: never} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wait()
				graph := func() *dag.Graph[Talk] {
					b := dag.New[Talk]("outer")
					dag.Loop(b, "loop", waiting(t, w, dag.Policy{}, says), func(*Talk) bool { return true }, 3)
					return frozen(t, b)
				}
				p := talk(t, graph())
				lasts(61 * time.Minute)
				if _, err := p.rt.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if w.Key != "" {
					if _, err := p.rt.Trigger(t.Context(), reply2("t", w.Key)); err != nil {
						t.Fatal(err)
					}
				}
				p.stands(run, continuation.StatusResolved, continuation.Completed)
				var log bytes.Buffer
				if err := checkpoint.Export(t.Context(), p.store, run, &log); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), "run.log")
				if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				lasts(24 * time.Hour)
				w = wait()
				pawltest.Replay(t, file, graph())
				w.Question = "another one"
				differs := &told{T: t}
				pawltest.Replay(differs, file, graph())
				if !slices.ContainsFunc(differs.all, func(s string) bool { return strings.Contains(s, "visit loop/1/ask asked with") }) {
					t.Errorf("of another question is told %q", differs.all)
				}
			})
		})
	}
}
