package dispatcher

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A staleness says which dependencies can't be relied on at a moment, so that what they led to
// is not to count.
type staleness struct{ now time.Time }

func (s staleness) invalid(d *dependent) bool {
	return dag.OnStale(d.OnStale) == dag.Invalidate && s.now.Sub(d.Captured) > d.StaleAfter
}

// stuck reports whether a run that stands as m does can't go on: something that is stale has
// led to what is merged.
func (s staleness) stuck(m *machine) bool {
	return slices.ContainsFunc(m.dependents(), func(d dependent) bool {
		return s.invalid(&d) && !m.voidable(d.path)
	})
}

// voidable reports whether what a visit has written is not merged yet, whether it counts for now or
// stands behind an item that failed and may run again.
func (m *machine) voidable(path string) bool {
	t := m.find(path)
	return t != nil && t.phase == finished && !t.salvaged()
}

// before is a turn, and the last superstep in it at which nothing that is stale in m can be merged.
func (s staleness) before(m *machine) (turn, step int) {
	step = math.MaxInt
	for _, d := range m.dependents() {
		if s.invalid(&d) {
			step = min(step, d.step-1)
		}
	}
	return m.turn, step
}

// advise completes the error about a run that is stuck by the checkpoint that is the last one from
// which it can go on: of the run itself, or, if that has none any more, since it is a fork or was
// trimmed, of the run that it is a fork of, and so on as long as those are there.
func (c *core) advise(ctx context.Context, e *StaleError, s staleness, m *machine) error {
	turn, step := s.before(m)
	id, upTo := e.Run, uint64(0)
	for {
		p, err := c.unstuck(ctx, id, upTo, s, turn, step)
		switch {
		case err != nil && (id == e.Run || !unreadable(err)):
			return err
		case err != nil: // of another run: nobody needs it
			return nil
		case p.Seq > 0 && id == e.Run:
			e.Rewind = c.shortest(ctx, p)
			return nil
		case p.Seq > 0:
			e.Ancestor = Ancestor{Run: id, Seq: p.Seq}
			return nil
		}
		if id, upTo, err = c.parent(ctx, id); err != nil || id == "" {
			return err
		}
	}
}

// unstuck is the last checkpoint that led to an entry (0 is the head), up to a superstep, from
// which a run can go on.
func (c *core) unstuck(ctx context.Context, id string, upTo uint64, s staleness, turn, step int) (Checkpoint, error) {
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return Checkpoint{}, err
	}
	led := h.led
	if upTo > 0 {
		if led, err = c.spans(ctx, id, upTo); err != nil {
			return Checkpoint{}, err
		}
	}
	var all []Checkpoint
	r := reading{c: c, of: h}
	for p, err := range r.past(ctx) {
		if err != nil {
			return Checkpoint{}, err
		}
		in := func(s span) bool { return s.from <= p.Seq && p.Seq <= s.to }
		if p.Path == "" && slices.ContainsFunc(led, in) && (p.Turn < turn || p.Turn == turn && p.Superstep <= step) {
			all = append(all, p.Checkpoint)
		}
	}
	for _, p := range slices.Backward(all) {
		m, _, err := c.load(ctx, id, p.Seq)
		if err != nil {
			return Checkpoint{}, err
		}
		if m.calm(); !s.stuck(m) && c.carries(id, m) == nil {
			return p, nil
		}
	}
	return Checkpoint{}, nil
}

// shortest is the number of a checkpoint's superstep, if that is an address of it, and else the
// whole address. Where a fork begins it is the whole one, since a number would mean the same
// superstep in the run that was forked.
func (c *core) shortest(ctx context.Context, p Checkpoint) string {
	if p.Cause == CauseOpened && p.Superstep > 0 {
		return p.Address()
	}
	number := strconv.Itoa(p.Superstep)
	if found, err := c.locate(ctx, p.Run, number); err == nil && found.Seq == p.Seq {
		return number
	}
	return p.Address()
}

// parent is the run, and the entry in it, of which a run is a fork: "" if it is none, or if that
// run is gone, or can't be read there, or is another one of its name.
func (c *core) parent(ctx context.Context, id string) (string, uint64, error) {
	info, err := c.store.Stat(ctx, id)
	if err != nil || info.Origin == nil {
		return "", 0, err
	}
	m, _, err := c.load(ctx, info.Origin.Run, info.Origin.Seq)
	switch {
	case err != nil && unreadable(err):
		return "", 0, nil
	case err != nil:
		return "", 0, err
	}
	if m.fork(); checkpoint.BaseDigest(m.encode()) != info.Origin.Base {
		return "", 0, nil
	}
	return info.Origin.Run, info.Origin.Seq, nil
}

// unreadable reports whether an error is about what a run has, and not about how its store does.
func unreadable(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit) || slices.ContainsFunc(
		[]error{checkpoint.ErrNotFound, checkpoint.ErrTrimmed, checkpoint.ErrCursor, checkpoint.ErrCorrupt},
		func(target error) bool { return errors.Is(err, target) })
}
