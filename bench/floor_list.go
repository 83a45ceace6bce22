package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// appendsByHand is appendsOfRun by hand: a log in memory is given a list of so many notes; what
// that leaves behind is collected, in a node; and each of the nodes after the next one appends a
// note.
func appendsByHand(elements, appends int) probe {
	return func(times int) (took time.Duration, err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range times {
			err = beside(ctx, func() error {
				x := scribe{ctx: ctx, said: make([]byte, 0, 2*len(note))}
				if err := x.opens(elements); err != nil {
					return err
				}
				runtime.GC()
				if _, err := x.counts(""); err != nil {
					return err
				}
				began := time.Now()
				err := x.notes(appends)
				took += time.Since(began)
				return err
			})
			if err != nil {
				return 0, err
			}
		}
		return took, nil
	}
}

// opens writes a list of so many notes into the log. There is room behind it.
func (x *scribe) opens(elements int) (err error) {
	said := append(make([]byte, 0, elements*(len(note)+3)+64), `{"kind":"entered","delta":{"Notes":{"append":[`...)
	for i := range elements {
		if i > 0 {
			said = append(said, ',')
		}
		if said, err = quoted(said, note); err != nil {
			return err
		}
	}
	x.kept = append(x.kept, x.seal(append(said, "]}}}"...))) // a log is not forgotten
	x.log = make([]byte, 64<<10)[:0]
	return nil
}

// notes does so many nodes, each of which appends a note.
func (x *scribe) notes(appends int) error {
	for range appends {
		_, err := x.visit()
		if err == nil {
			x.said, err = sayNote(x.said[:0], 9, note)
		}
		if err != nil {
			return err
		}
		x.seal(x.said)
	}
	return nil
}

func listFloor(s session) ([]row, error) {
	long, short, times := s.scale(10_000, 1_000), 10, s.scale(8, 1)
	var rows []row
	for _, appends := range []int{10, 100} {
		all, err := s.probes([]int{times, times}, appendsByHand(long, appends), appendsByHand(short, appends))
		if err != nil {
			return nil, err
		}
		rows = append(rows, shown(fmt.Sprintf("floor/list-%d", appends), all[0].over(all[1]), "ratio",
			"for list/supersteps-%d: %d functions with a draft and a context each, and as many appends of 1 KB, as JSON by hand, to a log in memory, with a digest and "+
				"a checksum, behind a list of %d KB, %.3g µs, to those behind one of %d KB, %.3g µs", appends, appends, long, all[0].median()*1e-3, short, all[1].median()*1e-3))
	}
	return rows, nil
}
