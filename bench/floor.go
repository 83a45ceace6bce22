package main

import (
	"context"
	"math"
	"sync/atomic"
)

// floors measures what other rows can't be without, written by hand with nothing above it, and as
// those rows are measured. So of a target that is missed it can be said how much of the way is
// pawl's. These rows have none.
func floors(s session) ([]row, error) {
	var rows []row
	for _, f := range []struct {
		name    string
		measure func(session) ([]row, error)
	}{
		{"run", runFloor}, {"superstep", superstepFloor}, {"resume", resumeFloor}, {"badger", badgerFloor}, {"items", itemsFloor}, {"list", listFloor},
		{"durable", durableFloor},
	} {
		if !s.wants("floor/" + f.name) {
			continue
		}
		some, err := f.measure(s)
		rows = append(rows, some...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// A footing is about what a node has beside its draft: a context of its own, which ends when it
// does.
type footing struct {
	context.Context
	draft *plain
	word  atomic.Int32
}

// tryout does what a node does, unless somebody has given up waiting for it.
func (f *footing) tryout() error {
	if !f.word.CompareAndSwap(0, 1) {
		return f.Err()
	}
	err := plainStep(f, f.draft)
	if !f.word.CompareAndSwap(1, 2) {
		return f.Err()
	}
	return err
}

// A slab has memory for a few nodes, which is not used again.
type slab struct {
	drafts   []plain
	footings []footing
}

func (b *slab) next(ctx context.Context, from *plain) *footing {
	if len(b.footings) == 0 {
		b.drafts, b.footings = make([]plain, 16), make([]footing, 16)
	}
	f, draft := &b.footings[0], &b.drafts[0]
	b.drafts, b.footings = b.drafts[1:], b.footings[1:]
	*draft = *from
	f.Context, f.draft = ctx, draft
	return f
}

// beside does it in a goroutine beside the caller, who would return without it if ctx were done.
func beside(ctx context.Context, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }() // ends soon
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// apart is a contender that does it beside itself.
func apart(do func(ctx context.Context) error) contender {
	return each(func(ctx context.Context) error { return beside(ctx, func() error { return do(ctx) }) })
}

// inTurn does what n nodes do, one after the other, each of which turns so often besides.
func inTurn(n, turns int) contender {
	return apart(func(ctx context.Context) error {
		var p plain
		var b slab
		for range n {
			f := b.next(ctx, &p)
			if err := f.tryout(); err != nil {
				return err
			}
			p.Count = f.draft.Count + turned(turns)
		}
		return nil
	})
}

// turned keeps a processor busy for that many turns, of about a nanosecond, and returns 0.
func turned(turns int) int {
	x := uint64(turns)
	for range turns {
		x = x*6364136223846793005 + 1442695040888963407 // waits for the one before
	}
	return int(x >> 63 >> 1)
}

func runFloor(s session) ([]row, error) {
	all, err := s.contest(inTurn(10, 0), inTurn(1, 0), inTurn(1_000, 0))
	if err != nil {
		return nil, err
	}
	node := all[2].per(all[1], 999)
	slow, err := ofTarget(s, node.median())
	if err != nil {
		return nil, err
	}
	return []row{
		shown("floor/run-10", all[0].times(1e-3), "µs", "for chain-10/run: ten functions, each with a draft and a context of its own, "+
			"in a goroutine beside a caller who can give it up"),
		shown("floor/run-1", all[1].times(1e-3), "µs", "for chain-10/run: the same with one"),
		shown("floor/run-node", node.times(1e-3), "µs", "for chain/node: a further one of a thousand"),
		shown("floor/run-10-of-target", slow[0].times(1e-3), "µs", "for chain-10/run: floor/run-10 of functions that take as long as a node may: "+
			"a further one of a thousand %.0f ns", slow[2].per(slow[1], 999).median()),
		shown("floor/run-10-of-target-to-handover", slow[0].per(slow[1], 9).over(slow[3].per(slow[4], 9)), "ratio",
			"for chain-10/node-to-handover: a further one of the ten, %.0f ns", slow[0].per(slow[1], 9).median()),
	}, nil
}

// ofTarget lets ten functions, one and a thousand take turns with hand-overs of ten and one. The
// functions turn until a further one of a thousand takes what a node may, where one that doesn't
// turn takes bare: how often is corrected by what the last contest measured, a few times at most,
// until that is within three hundredths.
func ofTarget(s session, bare float64) ([]series, error) {
	const target = nodeTarget * 1e3
	turns := max(0, target-bare) // of a nanosecond each, at first
	for tries := 1; ; tries++ {
		n := int(turns)
		all, err := s.contest(inTurn(10, n), inTurn(1, n), inTurn(1_000, n), handOvers(10), handOvers(1))
		if err != nil {
			return nil, err
		}
		took := all[2].per(all[1], 999).median()
		if n == 0 || tries == 5 || math.Abs(took-target) <= 0.03*target {
			return all, nil
		}
		turns = corrected(turns, target-bare, took-bare)
	}
}

// corrected is how many turns take want, of which the last ones took so long. It doubles them at
// most: what took next to nothing says nothing.
func corrected(turns, want, took float64) float64 { return turns * want / max(took, want/2) }

// aPage is about what keep sets.
var aPage = page(1, pageText)

// sealing writes supersteps that set a struct into a log in memory.
func sealing(sets any) contender {
	return func(times int) error {
		var d diary
		c := newClerk()
		for range times {
			said, err := c.say(9, sets)
			if err != nil {
				return err
			}
			d.seal(said)
		}
		return nil
	}
}

func superstepFloor(s session) ([]row, error) {
	all, err := s.contest(sealing(aPage))
	if err != nil {
		return nil, err
	}
	return []row{shown("floor/superstep-1KB", all[0].times(1e-3), "µs",
		"for memory/superstep-1KB: the struct by encoding/json without HTML escapes, the rest of its JSON by hand, SHA-256, CRC-32C and one copy")}, nil
}
