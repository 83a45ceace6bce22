package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// A slip is what is kept of an item until all are done: which it was, and what it wrote.
type slip struct {
	path  string
	delta json.RawMessage
}

// sheaf is how many items share an append.
const sheaf = 1_000

// itemsByHand is eachOf by hand, times in a window.
func itemsByHand(items, times int) probe {
	return func(int) (time.Duration, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		began := time.Now()
		for range times {
			if err := beside(ctx, func() error { return sheaves(ctx, items) }); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
}

// sheaves does so many functions, each of which has a draft and a context before the first one
// begins, since all could run side by side. What they write is kept until all are done, and a
// thousand at a time are written into a log in memory.
func sheaves(ctx context.Context, items int) error {
	var b slab
	var d diary
	visits, slips, log := make([]*footing, items), make([]slip, items), make([][]byte, 0, items/sheaf)
	for i := range visits {
		visits[i] = b.next(ctx, new(plain))
	}
	said := make([]byte, 0, 80*sheaf)
	for i, f := range visits {
		if err := f.tryout(); err != nil {
			return err
		}
		s := &slips[i]
		s.path = "items/" + strconv.Itoa(i)
		said = append(append(append(said, `{"kind":"done","path":"`...), s.path...), `","delta":`...)
		from := len(said)
		said = append(strconv.AppendInt(append(said, `{"Count":{"add":`...), int64(f.draft.Count), 10), "}}}"...)
		s.delta = json.RawMessage(said[from : len(said)-1])
		if i%sheaf == sheaf-1 {
			log, said = append(log, d.seal(said)), make([]byte, 0, 80*sheaf)
		}
	}
	if len(log) != items/sheaf {
		return fmt.Errorf("%d items make %d appends", items, len(log))
	}
	return nil
}

func itemsFloor(s session) ([]row, error) {
	many, few := s.scale(100_000, sheaf), sheaf
	all, err := s.probes([]int{many, few}, itemsByHand(many, 1), itemsByHand(few, many/few))
	if err != nil {
		return nil, err
	}
	return []row{shown("floor/items", all[0].over(all[1].times(float64(few)/float64(many))), "ratio",
		"for scale/items: %d functions, each with a draft and a context, whose deltas are kept until all are done, and JSON of a thousand at a time "+
			"in a log in memory, with a digest and a checksum, %.3g µs for each, to %d of them", many, all[0].median()*1e-3, few)}, nil
}
