package main

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A bed is a store in a directory of its own.
type bed struct {
	dir   string
	store *badgerstore.Store
	made  int // runs
}

// openBed makes a store in a new directory.
func openBed(s session, synced bool) (*bed, error) {
	return openBedWith(s, synced, badgerstore.Options{})
}

func openBedWith(s session, synced bool, o badgerstore.Options) (*bed, error) {
	dir, err := os.MkdirTemp(s.dir, "store-")
	if err != nil {
		return nil, err
	}
	return reopenBedWith(dir, synced, o)
}

// reopenBed opens the store that is in dir.
func reopenBed(dir string, synced bool) (*bed, error) {
	return reopenBedWith(dir, synced, badgerstore.Options{})
}

func reopenBedWith(dir string, synced bool, o badgerstore.Options) (b *bed, err error) {
	open := badgerstore.OpenUnsynced
	if synced {
		open = badgerstore.Open
	}
	b = &bed{dir: dir}
	b.store, err = open(context.Background(), dir, o)
	return b, err
}

func (b *bed) close() error { return b.store.Close() }

// discard is close for who needs nothing that is in it any more.
func (b *bed) discard() {
	_ = b.close()
	_ = os.RemoveAll(b.dir)
}

// runs begins so many runs of g, which is a chain, at once, and waits for all.
func (b *bed) runs(g *dag.Graph[Work], at int) contender {
	return b.runsWith(g, at, dispatcher.Options{})
}

func (b *bed) runsWith(g *dag.Graph[Work], at int, o dispatcher.Options) contender {
	d := dispatch(g, checkpoint.Store(b.store), o)
	nodes := len(g.Plan().Nodes)
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		errs := make([]error, at)
		last := make([]*dispatcher.Result[Work], at)
		for range times {
			var all sync.WaitGroup
			for i := range errs {
				b.made++
				run := "run-" + strconv.Itoa(b.made)
				all.Go(func() { last[i], errs[i] = d.Start(ctx, run, nil) })
			}
			all.Wait()
			if err := cmp.Or(errs...); err != nil {
				return err
			}
		}
		for i, r := range last {
			errs[i] = ranAll(r, nodes)
		}
		return cmp.Or(errs...)
	}
}

// ranAll checks the result of a chain of so many nodes, each of which is a step, or writes a text.
func ranAll(r *dispatcher.Result[Work], nodes int) error {
	if err := endedSupersteps(r, nodes); err != nil {
		return err
	}
	if title := r.State.Title.Get(); title == text || title == longText {
		return nil
	}
	return countsTo(r, nodes)
}
