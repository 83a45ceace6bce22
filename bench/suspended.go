package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// suspended measures a store in which 100 000 runs wait against one in which 100 do, both reopened:
// to know where one run stands, to list a page of those that wait, and to go on with one of them,
// by a dispatcher that has never seen it, with its synced append.
func suspended(s session) ([]row, error) {
	many, few := s.scale(100_000, 2_000), 100
	// Each node of the chain is waited before: a run can be gone on with as often.
	g := chain(64, step)
	crowd, err := waiting(s, g, many)
	if err != nil {
		return nil, err
	}
	defer crowd.discard()
	handful, err := waiting(s, g, few)
	if err != nil {
		return nil, err
	}
	defer handful.discard()
	load, err := s.contest(crowd.load, handful.load)
	if err != nil {
		return nil, err
	}
	page, err := s.contest(crowd.page, handful.page, crowd.barePage, handful.barePage)
	if err != nil {
		return nil, err
	}
	const resumes = 20
	resume, err := s.turns([]int{resumes, resumes}, crowd.resume, handful.resume)
	if err != nil {
		return nil, err
	}
	of := fmt.Sprintf("among %d suspended runs to among %d", many, few)
	micro := func(all []series) string {
		return fmt.Sprintf("%.3g µs to %.3g µs", all[0].median()*1e-3, all[1].median()*1e-3)
	}
	return []row{
		atMost("suspended/load", load[0].over(load[1]), "ratio", 3, "where a run stands, %s: %s", of, micro(load)),
		atMost("suspended/page", page[0].over(page[1]), "ratio", 2, "a page of 50 of those interrupted, %s: %s", of, micro(page)),
		shown("suspended/page-of-bare", page[2].over(page[3]), "ratio",
			"the least of suspended/page: a bare Badger copies the rows of 50 runs and the last append of each, %s: %s", of, micro(page[2:])),
		atMost("suspended/resume", resume[0].over(resume[1]), "ratio", 1.2,
			"to go on with one, with its synced append, %s: %s", of, micro(resume)),
	}, nil
}

// A crowd is runs that wait in a store which was reopened.
type crowd struct {
	bed  *bed
	bare *badger.DB // of a copy
	dir  string     // of that
	g    *dag.Graph[Work]
	runs int
	next int // run to look at
	// listed is the first half of the runs, in the order of a listing: behind each of a hundred or
	// more is a page of 50.
	listed []string
}

func (c *crowd) discard() {
	c.bed.discard()
	_ = c.bare.Close()
	_ = os.RemoveAll(c.dir)
}

// waiting makes so many runs that wait before their third node, and opens their store anew.
func waiting(s session, g *dag.Graph[Work], runs int) (*crowd, error) {
	b, err := openBed(s, false)
	if err != nil {
		return nil, err
	}
	c := &crowd{bed: b, g: g, runs: runs}
	d := dispatch(g, checkpoint.Store(b.store), dispatcher.Options{InterruptBefore: []string{"node-3"}})
	const together = 64
	errs := make([]error, together)
	var all sync.WaitGroup
	for k := range together {
		all.Go(func() {
			for i := k; i < runs && errs[k] == nil; i += together {
				if _, err := d.Start(context.Background(), c.name(i), nil); !errors.Is(err, dispatcher.ErrInterrupted) {
					errs[k] = fmt.Errorf("run %d should be interrupted: %w", i, err)
				}
			}
		})
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	if c.listed, err = listed(b.store, runs/2); err != nil {
		return nil, err
	}
	copied, err := copyStore(s, b)
	if err != nil {
		return nil, err
	}
	c.dir = copied.bare
	if c.bare, err = openBadger(filepath.Join(c.dir, "db"), false); err != nil {
		return nil, err
	}
	c.bed, err = reopenBed(b.dir, true)
	return c, err
}

// listed returns the ids of the first n runs of a listing: they were begun by many at once, in no
// order of their names.
func listed(store checkpoint.Store, n int) ([]string, error) {
	var ids []string
	for info, err := range checkpoint.Runs(context.Background(), store, checkpoint.Filter{Limit: 1_000}) {
		if err != nil {
			return nil, err
		}
		if ids = append(ids, info.Run); len(ids) == n {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("%d runs listed of %d", len(ids), n)
}

func (c *crowd) name(i int) string { return "run-" + strconv.Itoa(i) }

// pick returns runs from all over the store, each once before any comes again.
func (c *crowd) pick() string {
	c.next++
	return c.name(c.next * 37 % c.runs)
}

// fresh has every node waited before.
func (c *crowd) fresh() *dispatcher.Dispatcher[Work] {
	return dispatch(c.g, checkpoint.Store(c.bed.store), dispatcher.Options{
		InterruptIf: func(b dispatcher.Boundary) bool { return !b.After },
	})
}

// load finds out where runs stand, none of which was gone on with.
func (c *crowd) load(times int) error {
	d := c.fresh()
	for range times {
		r, err := d.State(context.Background(), c.pick())
		if err != nil {
			return err
		}
		if err := errors.Join(endedSupersteps(r, 2), countsTo(r, 2)); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) page(times int) error {
	for range times {
		c.next++
		f := checkpoint.Filter{Status: []checkpoint.Status{checkpoint.StatusInterrupted}, Limit: 50, After: c.listed[c.next*37%len(c.listed)]}
		page, err := c.bed.store.List(context.Background(), f)
		if err != nil {
			return err
		}
		if len(page) < f.Limit {
			return fmt.Errorf("a page of %d runs", len(page))
		}
	}
	return nil
}

// barePage reads what page does, and no more: keys of rows are r and the number of the run, those
// of appends l, that, and the number of an entry. It finds the last append of each run by stepping,
// which is three steps for runs as short as these.
func (c *crowd) barePage(times int) error {
	var value []byte
	keep := func(v []byte) error {
		value = append(value[:0], v...)
		return nil
	}
	for range times {
		c.next++
		run := c.runs/2 + c.next*37%(c.runs/2) // so that the page is full
		if err := barePage(c.bare, binary.BigEndian.AppendUint64(nil, uint64(run)), keep); err != nil {
			return err
		}
	}
	return nil
}

func barePage(db *badger.DB, number []byte, keep func([]byte) error) error {
	txn := db.NewTransactionAt(db.MaxVersion(), false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues, o.Reverse = false, true
	o.Prefix = []byte("r")
	rows := txn.NewIterator(o)
	defer rows.Close()
	o.Prefix = []byte("l")
	logs := txn.NewIterator(o)
	defer logs.Close()
	logs.Seek(slices.Concat([]byte("l"), number, bytes.Repeat([]byte{0xff}, 8)))
	n := 0
	for rows.Seek(append([]byte("r"), number...)); rows.Valid() && n < 50; rows.Next() {
		n++
		run := rows.Item().Key()[1:]
		for logs.Valid() && bytes.Compare(logs.Item().Key()[1:9], run) > 0 {
			logs.Next()
		}
		if !logs.Valid() {
			break
		}
		if err := errors.Join(rows.Item().Value(keep), logs.Item().Value(keep)); err != nil {
			return err
		}
	}
	if n < 50 {
		return fmt.Errorf("a page of %d runs", n)
	}
	return nil
}

// resume goes on with runs that its dispatcher has not seen: each rests before its next node.
func (c *crowd) resume(times int) (func() error, func(), error) {
	d := c.fresh()
	return func() error {
		for range times {
			if _, err := d.Resume(context.Background(), c.pick()); !errors.Is(err, dispatcher.ErrInterrupted) {
				return fmt.Errorf("a run that is gone on with should wait again: %w", err)
			}
		}
		return nil
	}, nil, nil
}
