package main

// sustained measures what supersteps of 1 KB cost when so many are written one after the other that
// what Badger has to merge counts: 500 MB, of one run after the other in a store that is not
// synced, and of a hundred at once in one that is. Bare Badger writes the same bytes, ever behind
// what it has, or into a hundred places. Every window has a directory of its own, and there are
// seven.
func sustained(s session) ([]row, error) {
	supersteps := s.scale(500_000, 2_000)
	s.rounds = min(s.rounds, 7)
	var rows []row
	for _, t := range []struct {
		name   string
		runs   int // at once
		length int
		synced bool
	}{{"sustained-1", 1, unsyncedLength, false}, {"sustained-100", 100, s.length, true}} {
		if !s.wants(t.name) {
			continue
		}
		g := chain(t.length, write)
		size, err := sizeOf(s, g)
		if err != nil {
			return rows, err
		}
		times := max(1, supersteps/t.runs/t.length)
		all, err := s.turns([]int{times, times},
			fresh(s, t.synced, func(b *bed) contender { return b.runs(g, t.runs) }),
			freshBare(s, size, t.synced, func(b *bare, n int) error { return b.groups(t.runs)(n * t.length) }))
		if err != nil {
			return rows, err
		}
		each := 1 / float64(t.runs*t.length)
		ours, theirs := all[0].times(each), all[1].times(each)
		rows = append(rows, shown(t.name+"/to-bare", ours.over(theirs), "ratio",
			"%d supersteps of %d bytes, %.3g µs each; in bare transactions of %d %.3g µs",
			times*t.runs*t.length, size, ours.median()*1e-3, t.runs, theirs.median()*1e-3))
	}
	return rows, nil
}
