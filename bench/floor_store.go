package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// A diary is a log in memory: a chain of digests of what is written into it as JSON, with checksums.
type diary struct {
	log    []byte
	digest [sha256.Size]byte
}

// append returns what v is in the log, which is valid until the next one.
func (d *diary) append(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(d.log) > 64<<10 {
		d.log = make([]byte, 0, 64<<10)
	}
	from := len(d.log)
	d.log = append(append(d.log, d.digest[:]...), data...)
	d.digest = sha256.Sum256(d.log[from:])
	_ = crc32.Checksum(d.log[from:], castagnoli)
	return d.log[from:], nil
}

// An excerpt is about what an entry of a log says.
type excerpt struct {
	Kind, Path string
	Delta      map[string]int
	Data       json.RawMessage
}

func about(kind, data string) excerpt {
	return excerpt{Kind: kind, Path: "node-9", Delta: map[string]int{"Count": 1}, Data: json.RawMessage(data)}
}

// answers does what a question takes, its answer and two nodes behind it: two calls beside their caller, which append one entry and three,
// and one between them.
func answers(times int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var d diary
	var b slab
	visit := func(then string, data string) error {
		if err := b.next(ctx, new(plain)).tryout(); err != nil {
			return err
		}
		_, err := d.append(about(then, data))
		return err
	}
	for range times {
		asks := func() error { return visit("waiting", `{"name":"sure","question":"Shall I go on?"}`) }
		goesOn := func() error {
			if _, err := d.append(about("resumed", "{}")); err != nil {
				return err
			}
			return firstError([]error{visit("superstep", "{}"), visit("completed", "{}")})
		}
		if err := beside(ctx, asks); err != nil {
			return err
		}
		if _, err := d.append(about("answered", `{"name":"sure","value":true}`)); err != nil {
			return err
		}
		if err := beside(ctx, goesOn); err != nil {
			return err
		}
	}
	return nil
}

func resumeFloor(s session) ([]row, error) {
	all, err := s.contest(answers)
	if err != nil {
		return nil, err
	}
	return []row{shown("floor/resume", all[0].times(1e-3), "µs", "for resume: two calls beside their caller, three functions with a draft and a context "+
		"each, and five small entries as JSON in a log in memory, with digests and checksums")}, nil
}

// A handover is what one of a crowd has written.
type handover struct {
	from  int
	value []byte
}

// crowd has so many goroutines each write a superstep as JSON, with a digest and a checksum, and hand it over;
// when it has those of all it commits them as one transaction, syncs Badger's log and tells them, each times.
func (b *bare) crowd(goroutines, each int) error {
	page := Page{Number: 1, Title: "a page of a thousand bytes"}
	empty, err := json.Marshal(page)
	if err != nil {
		return err
	}
	page.Text = noise(1, max(len(b.value)-len(empty)-sha256.Size, 1))
	queue := make(chan handover, goroutines)
	told := make([]chan struct{}, goroutines)
	for i := range told {
		told[i] = make(chan struct{}, 1)
		go func() { // ends when told is closed
			var d diary
			for ok := true; ok; _, ok = <-told[i] {
				value, err := d.append(page)
				if err != nil {
					panic(err) // it was JSON above
				}
				queue <- handover{i, value}
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
		all, err := s.stages(s.long,
			freshBare(s, size, false, func(b *bare, n int) error { return b.crowd(runs, n*s.length) }),
			freshBare(s, size, true, func(b *bare, n int) error { return b.groups(runs)(n * s.length) }))
		if err != nil {
			return nil, err
		}
		rows = append(rows, shown(fmt.Sprintf("floor/durable-%d-to-bare", runs), all[1].over(all[0]), "ratio",
			"for durable: %d goroutines, each of which writes its superstep as JSON with a digest and a checksum, and bare transactions for all of them: %.0f a second",
			runs, float64(runs*s.length)*1e9/all[0].median()))
	}
	return rows, nil
}
