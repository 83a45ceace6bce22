package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A handover is what one of a crowd has written.
type handover struct {
	from  int
	value []byte
}

// crowd has so many goroutines each say a superstep as JSON, with a digest and a checksum, and hand
// it over; when it has those of all it commits them as one transaction, syncs Badger's log and
// tells them, each times.
func (b *bare) crowd(goroutines, each int) error {
	const besideText = len(`{"kind":"done","path":"node-9","step":9,"delta":{"Title":{"set":""}}}{"kind":"superstep","step":9}`) + sha256.Size
	writes := noise(1, max(len(b.value)-besideText, 1))
	queue := make(chan handover, goroutines)
	told := make([]chan struct{}, goroutines)
	for i := range told {
		told[i] = make(chan struct{}, 1)
		go func() { // ends when told is closed
			var text []byte
			d := diary{log: make([]byte, 0, 2*len(b.value))}
			for ok := true; ok; _, ok = <-told[i] {
				var err error
				if text, err = say(text[:0], 9, writes); err != nil {
					panic(err) // the noise is JSON as it is
				}
				d.log = d.log[:0] // what it had is stored
				queue <- handover{i, d.seal(text)}
			}
		}()
	}
	defer func() {
		for _, c := range told {
			close(c)
		}
	}()
	values := make([][]byte, goroutines)
	for n := range each {
		for range goroutines {
			h := <-queue
			values[h.from] = h.value
		}
		if err := b.commitValues('l', b.ts.Add(1), values); err != nil {
			return err
		}
		if err := b.syncLog(); err != nil {
			return err
		}
		for _, c := range told {
			if n < each-1 {
				c <- struct{}{}
			}
		}
	}
	return nil
}

// syncLog syncs the newest file of Badger's log, as a store does.
func (b *bare) syncLog() error {
	for {
		next, err := os.Open(filepath.Join(b.dir, fmt.Sprintf("%05d.mem", b.logs+1)))
		switch {
		case err == nil:
			_ = b.log.Close()
			b.log, b.logs = next, b.logs+1
		case errors.Is(err, fs.ErrNotExist) && b.log != nil:
			return syncData(b.log)
		default:
			return err
		}
	}
}

// durableFloor is the rows of durable with bare Badger and what runs can't be without.
func durableFloor(s session) ([]row, error) {
	size, err := sizeOf(s, chain(s.length, write))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, runs := range []int{10, 100, 1_000} {
		all, err := besideBare(s, runs, size,
			freshBare(s, size, false, func(b *bare, n int) error { return b.crowd(runs, n*s.length) }))
		if err != nil {
			return rows, err
		}
		rows = append(rows, shown(fmt.Sprintf("floor/durable-%d-to-bare", runs), all[1].over(all[0]), "ratio",
			"for durable: %d goroutines, each of which writes its superstep as JSON with a digest and a checksum, and bare transactions for all of them: %.0f a second",
			runs, float64(runs*s.length)*1e9/all[0].median()))
		if runs == 100 {
			rows = append(rows, shown("floor/durable-100-to-alone", all[2].times(float64(s.length)).over(all[0]), "ratio",
				"for durable-100/to-bare-alone: the same, to bare transactions of their own"))
		}
	}
	return rows, nil
}
