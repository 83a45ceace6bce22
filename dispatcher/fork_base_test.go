package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// forkInfo is what the store knows of a run.
func forkInfo(t *testing.T, s checkpoint.Store, id string) checkpoint.Info {
	t.Helper()
	info, err := s.Stat(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// forkVerified checks that nothing is wrong with the run as it is stored.
func forkVerified(t *testing.T, s checkpoint.Store, id string) {
	t.Helper()
	for f, err := range checkpoint.Verify(t.Context(), s, id) {
		t.Errorf("Verify(%q) finds %v, %v", id, f, err)
	}
}

// forkLarge is a graph of a node that writes a text of that size to the state, and of nodes that
// ask outside.
func forkLarge(t testing.TB, bank *forkBank, size int) *dag.Graph[Tale] {
	b := dag.New[Tale]("large")
	last := dag.Step(b, "write", func(_ context.Context, s *Tale) error {
		noise := make([]byte, size*3/4) // of which compression takes a quarter of its text
		_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
		s.Notes.Put("text", base64.StdEncoding.EncodeToString(noise))
		return nil
	})
	for _, name := range []string{"b", "c"} {
		last = dag.Step(b, name, func(ctx context.Context, s *Tale) error {
			word, err := dag.Effect(ctx, "ask", s.Word.Get(), bank.word)
			s.Said.Append(word)
			return err
		}, last)
	}
	return frozen(t, b)
}

// Forks of one checkpoint begin with one base, whatever their effects are to do, whatever edit they
// begin with, however far the run has gone on since, and whether it is a fork of the checkpoint
// that is forked. Only what effects returned behind it, and what each log says, is their own; and
// each does what its own log says.
func TestForksOfOneCheckpointShareABase(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		bank := &forkBank{}
		graph := forkLarge(t, bank, 200<<10)
		stop := o
		stop.InterruptBefore = []string{"c"}
		d, until := callsDispatcher(t, graph, store, o), callsDispatcher(t, graph, store, stop)
		res, err := until.Run(t.Context(), run, func(s *Tale) { s.Word.Set("w") })
		rests(t, res, err, checkpoint.StatusInterrupted, "c")
		of := map[string]checkpoint.Info{}
		make := func(from, at, id string, w dispatcher.ForkOptions[Tale]) {
			t.Helper()
			w.Into = []string{id}
			if _, err := d.Fork(t.Context(), from, at, w); err != nil {
				t.Fatal(err)
			}
			of[id] = forkInfo(t, store, id)
		}
		edit := func(s *Tale) { s.Word.Set("v") }
		make(run, "1", "refuses", dispatcher.ForkOptions[Tale]{})
		make(run, "1", "asks", dispatcher.ForkOptions[Tale]{Effects: dispatcher.ReuseOrLive})
		make(run, "1", "lives", dispatcher.ForkOptions[Tale]{Effects: dispatcher.Live})
		make(run, "1", "edited", dispatcher.ForkOptions[Tale]{Effects: dispatcher.ReuseOrLive, Edit: edit})
		res, err = until.Resume(t.Context(), run)
		completes(t, res, err)
		make(run, "1", "later", dispatcher.ForkOptions[Tale]{Reason: "it has gone on"})
		make("later", "0", "of a fork", dispatcher.ForkOptions[Tale]{})
		for id, info := range of {
			if info.Base != of["refuses"].Base || len(info.Bases()) > 2 {
				t.Errorf("the bases of %q are %v, and of another %v", id, info.Bases(), of["refuses"].Bases())
			}
			forkVerified(t, store, id)
		}
		for id, shares := range map[string]string{"asks": "refuses", "edited": "refuses", "of a fork": "later"} {
			if got, want := of[id].Origin.Shelf, of[shares].Origin.Shelf; got != want || got == "" {
				t.Errorf("the shelf of %q is %q, and of %q %q", id, got, shares, want)
			}
		}
		if of["lives"].Origin.Shelf != "" || of["later"].Origin.Shelf == of["asks"].Origin.Shelf {
			t.Error("the shelf says nothing of what the run has done")
		}
		for _, c := range []struct {
			id    string
			asked []string
			fails bool
		}{
			{"refuses", nil, true}, {"asks", []string{"w"}, false}, {"lives", []string{"w", "w"}, false},
			{"edited", []string{"v", "v"}, false}, {"later", nil, false}, {"of a fork", nil, false},
		} {
			bank.asked = nil
			res, err := d.Run(t.Context(), c.id, nil)
			if c.fails {
				rests(t, res, err, checkpoint.StatusFailed, "c")
			} else {
				completes(t, res, err)
			}
			if !slices.Equal(bank.asked, c.asked) {
				t.Errorf("%q asked outside about %q, want %q", c.id, bank.asked, c.asked)
			}
			sameMachine(t, d, c.id)
		}
		line, err := d.Lineage(t.Context(), "of a fork")
		want := []dispatcher.Ancestor{{Run: "later", Seq: 1}, {Run: run, Seq: of["later"].Origin.Seq}}
		if err != nil || !slices.Equal(line, want) {
			t.Errorf("the lineage is %v, %v, want %v", line, err, want)
		}
	})
}

// A fork moves to another store with its base and its shelf, and goes on there: trimmed, forked and
// without any of the runs that it comes from.
func TestForkMovesWithItsShelf(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		bank := &forkBank{}
		graph := forkLarge(t, bank, 1000)
		d := callsDispatcher(t, graph, store, o)
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("w") })
		completes(t, res, err)
		forkOne(t, d, "1", "fork", dispatcher.ReuseOrRefuse)
		stop := o
		stop.InterruptBefore = []string{"c"}
		for _, trimmed := range []bool{false, true} {
			if trimmed { // behind b, so that only the shelf has what c is to return
				until := callsDispatcher(t, graph, store, stop)
				res, err := until.Run(t.Context(), "fork", nil)
				rests(t, res, err, checkpoint.StatusInterrupted, "c")
				if err := d.Trim(t.Context(), "fork", dispatcher.Retention{Last: 1}); err != nil {
					t.Fatal(err)
				}
			}
			var file bytes.Buffer
			if err := checkpoint.Export(t.Context(), store, "fork", &file); err != nil {
				t.Fatal(err)
			}
			to := new(memory.Store)
			if _, err := checkpoint.Import(t.Context(), to, &file, checkpoint.ImportOptions{}); err != nil {
				t.Fatal(err)
			}
			forkVerified(t, to, "fork")
			bank.asked = nil
			there := callsDispatcher(t, graph, to, o)
			ids, err := there.Fork(t.Context(), "fork", "", dispatcher.ForkOptions[Tale]{})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"fork", ids[0]} {
				forkVerified(t, to, id)
				res, err := there.Resume(t.Context(), id)
				completes(t, res, err)
				if !trimmed {
					sameMachine(t, there, id)
				}
				if err := to.Delete(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
			if len(bank.asked) > 0 {
				t.Errorf("trimmed: %v: outside was asked about %q", trimmed, bank.asked)
			}
		}
	})
}

// A run and its forks, of which one is a fork of a fork, are deleted in every order: Verify finds
// nothing in those that are left, which can all go on, with what the run has done.
func TestForksDeletedInEveryOrder(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		bank := &forkBank{}
		d := callsDispatcher(t, forkLarge(t, bank, 100<<10), store, o)
		for order := range 24 {
			res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("w") })
			completes(t, res, err)
			forkOne(t, d, "1", "a", dispatcher.ReuseOrRefuse)
			_, err = d.Fork(t.Context(), run, "1", dispatcher.ForkOptions[Tale]{
				Into: []string{"b"}, Edit: func(s *Tale) { s.Said.Append("edited") },
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = d.Fork(t.Context(), "a", "", dispatcher.ForkOptions[Tale]{Into: []string{"c"}}); err != nil {
				t.Fatal(err)
			}
			bank.asked = nil
			left := []string{run, "a", "b", "c"}
			for n := order; len(left) > 0; {
				k := n % len(left)
				n /= len(left)
				if err := store.Delete(t.Context(), left[k]); err != nil {
					t.Fatal(err)
				}
				left = slices.Delete(left, k, k+1)
				for _, id := range left {
					forkVerified(t, store, id)
				}
				if len(left) == 1 {
					res, err := d.Run(t.Context(), left[0], nil)
					completes(t, res, err)
				}
			}
			if len(bank.asked) > 0 || t.Failed() {
				t.Fatalf("in order %d outside was asked about %q", order, bank.asked)
			}
		}
	})
}

// A thousand forks of a checkpoint of 10 MiB, made by many calls while the run goes on, with
// every policy, and edited, take some hundred bytes each and the machine once; and as long as one
// of them is left, a fork of it takes no more.
func TestThousandForksOfOneCheckpoint(t *testing.T) {
	var written atomic.Int64
	store, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{
		Observe: func(g checkpoint.Group) { written.Add(int64(g.Bytes)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	const size, each = 10 << 20, 4 << 10
	bank := &forkBank{}
	graph := forkLarge(t, bank, size)
	d := callsDispatcher(t, graph, store, dispatcher.Options{})
	until := callsDispatcher(t, graph, store, dispatcher.Options{InterruptBefore: []string{"c"}})
	res, err := until.Run(t.Context(), run, func(s *Tale) { s.Word.Set("w") })
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	barriers := 0
	barrier := func() int64 { // a group is observed before the next one is written
		barriers++
		if err := store.PutGraph(t.Context(), fmt.Sprint("barrier ", barriers), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		return written.Load()
	}
	took := func(call func()) int64 {
		before := barrier()
		call()
		return barrier() - before
	}
	var all []string
	fork := func(from, at string, w dispatcher.ForkOptions[Tale]) {
		ids, err := d.Fork(t.Context(), from, at, w)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ids...)
	}
	if n := took(func() { fork(run, "1", dispatcher.ForkOptions[Tale]{}) }); n < size/2 || n > size+64<<10 {
		t.Errorf("the first fork takes %d bytes", n)
	}
	for i := range 9 {
		n := took(func() {
			w := dispatcher.ForkOptions[Tale]{N: 111, Effects: dispatcher.EffectsOfFork(i % 3)}
			if i%2 == 1 {
				w.Edit = func(s *Tale) { s.Word.Set(fmt.Sprint("edited ", i)) }
			}
			fork(run, "1", w)
		})
		if n > 111*each {
			t.Errorf("111 forks of call %d take %d bytes, %d each", i, n, n/111)
		}
		if i == 4 {
			res, err := until.Resume(t.Context(), run)
			completes(t, res, err)
		}
	}
	forkVerified(t, store, run)
	for i, id := range append([]string{run}, all[:len(all)-1]...) {
		if err := store.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if i%333 == 0 {
			forkVerified(t, store, all[len(all)-1])
		}
	}
	last := all[len(all)-1]
	if n := took(func() { fork(last, "0", dispatcher.ForkOptions[Tale]{Effects: dispatcher.Live}) }); n > each {
		t.Errorf("a fork of the last one takes %d bytes", n)
	}
	if err := store.Delete(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	forkVerified(t, store, all[len(all)-1])
	res, err = until.Run(t.Context(), all[len(all)-1], nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
}
