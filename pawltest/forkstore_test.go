package pawltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

type forkstoreTally struct {
	Sum   state.Sum[int]
	Spent state.Sum[int]
}

// forkstoreGraph adds, pays, and adds so many times what it has.
func forkstoreGraph(t *testing.T, times int, paid *int) *dag.Graph[forkstoreTally] {
	t.Helper()
	b := dag.New[forkstoreTally]("tally")
	add := dag.Step(b, "add", func(_ context.Context, s *forkstoreTally) error { s.Sum.Add(1); return nil })
	pay := dag.Step(b, "pay", func(ctx context.Context, s *forkstoreTally) error {
		price, err := dag.Effect(ctx, "charge", 7, func(_ context.Context, in int) (int, error) { *paid++; return in, nil })
		s.Spent.Add(price)
		return err
	}, add)
	dag.Step(b, "double", func(_ context.Context, s *forkstoreTally) error { s.Sum.Add(times * s.Sum.Get()); return nil }, pay)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// forkstoreRecorder keeps what a Replay tells.
type forkstoreRecorder struct {
	*testing.T
	told []string
}

func (r *forkstoreRecorder) Errorf(format string, args ...any) {
	r.told = append(r.told, fmt.Sprintf(format, args...))
}

func forkstoreFile(t *testing.T, s checkpoint.Store, run string) string {
	t.Helper()
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, run, &file); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.log")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The log of a fork is a regression test like any other: it is tried from the machine it began
// with, with the effects that it took from its origin; what a node does otherwise is told. What was
// trimmed is refused.
func TestForkstoreReplay(t *testing.T) {
	t.Parallel()
	var store memory.Store
	paid := 0
	g := forkstoreGraph(t, 1, &paid)
	d, err := dispatcher.New(g, &store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Run(t.Context(), "run", nil); err != nil {
		t.Fatal(err)
	}
	_, err = d.Fork(t.Context(), "run", "1", dispatcher.ForkOptions[forkstoreTally]{Into: []string{"fork"}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), "fork", nil)
	if err != nil || res.State.Sum.Get() != 2 || res.State.Spent.Get() != 7 {
		t.Fatalf("the fork comes to %d, having spent %d: %v", res.State.Sum.Get(), res.State.Spent.Get(), err)
	}
	file := forkstoreFile(t, &store, "fork")
	pawltest.Replay(t, file, g)
	if paid != 1 {
		t.Errorf("it was paid %d times", paid)
	}
	r := &forkstoreRecorder{T: t}
	pawltest.Replay(r, file, forkstoreGraph(t, 2, &paid))
	if len(r.told) == 0 || !strings.Contains(fmt.Sprint(r.told), "double") || paid != 1 {
		t.Errorf("of a node that does otherwise Replay tells %q", r.told)
	}
	if err := forkstoreTrimRun(t.Context(), &store, "run"); err != nil {
		t.Fatal(err)
	}
	r = &forkstoreRecorder{T: t}
	pawltest.Replay(r, forkstoreFile(t, &store, "run"), g)
	if len(r.told) != 1 || !strings.Contains(r.told[0], `run "run" was trimmed`) {
		t.Errorf("of a run that was trimmed Replay tells %q", r.told)
	}
}

// forkstoreTrimRun trims a run as a store does it, to its third entry.
func forkstoreTrimRun(ctx context.Context, s checkpoint.Store, run string) error {
	l, err := s.Acquire(ctx, run, "owner")
	if err != nil {
		return err
	}
	info, err := s.Stat(ctx, run)
	if err != nil {
		return err
	}
	machine := []byte("{}")
	data, err := json.Marshal(checkpoint.Trimming{First: 3, Base: checkpoint.BaseDigest(machine)})
	if err != nil {
		return err
	}
	_, err = s.Trim(ctx, l, info.Head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, machine)
	return errors.Join(err, s.Release(ctx, l))
}
