package dispatcher

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// locate finds the checkpoint of an address, "" for the last one that was not abandoned. What
// stands before the @ is the id of the run, or the path of a frame, behind the number of its turn;
// without a turn it is of the first. If both are meant, and are two checkpoints, nobody can tell
// which, and it is refused: with the turn before it, or as a number alone, each of them has an
// address of its own.
//
// An entry is found by its number, and a superstep by reading on from the last snapshot that is
// certainly before it, or else from the beginning of the log, until it is certain which it is.
func (c *core) locate(ctx context.Context, id, address string) (Checkpoint, error) {
	if err := c.exists(ctx, id); err != nil {
		return Checkpoint{}, err
	}
	var point Checkpoint
	err := c.steadily(ctx, id, func(*checkpoint.Info) (err error) {
		point, err = c.located(ctx, id, address)
		return err
	})
	return point, c.refuse(id, err)
}

func (c *core) located(ctx context.Context, id, address string) (Checkpoint, error) {
	if address == "" {
		return c.last(ctx, id)
	}
	before, number := "", address
	if i := strings.LastIndexByte(address, '@'); i >= 0 {
		before, number = address[:i], address[i+1:]
	} else if name, ok := strings.CutPrefix(address, tagAddress); ok {
		return c.tagged(ctx, id, name)
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n == 0 && before != "" || strconv.FormatUint(n, 10) != number { // each checkpoint has one address of a kind
		return Checkpoint{}, notThere(address)
	}
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return Checkpoint{}, err
	}
	path, turn := frameAddress(before, 1)
	var bySeq, byPath Checkpoint
	if before == id {
		if bySeq, err = c.checkpointAt(ctx, h, n); err != nil {
			return bySeq, err
		}
	}
	switch {
	case before == "" && n == 0:
		byPath, err = c.checkpointAt(ctx, h, 1)
	case turn > 0 && (bySeq.Seq == 0 || couldHold(c.plan, path) || couldHold(h.plan, path)):
		byPath, err = c.search(ctx, h, func(m *machine) bool {
			return m.turn < turn || path == "" && m.root.ended() < int(n)
		}, func(p *Past) bool {
			return p.Path == path && p.Superstep == int(n) && (p.Turn == turn || before == "")
		})
	}
	switch {
	case err != nil:
		return byPath, err
	case bySeq.Seq == 0 && byPath.Seq == 0:
		if h.info.First > 1 && (before == id && n < h.info.First || turn > 0 && c.supersteps(ctx, h, path) >= n) {
			return byPath, h.isGone(address)
		}
		return byPath, notThere(address)
	case bySeq.Seq == 0:
		return byPath, nil
	case byPath.Seq != 0 && byPath.Seq != bySeq.Seq:
		return byPath, fmt.Errorf("%w: %q is entry %d of the run, and superstep %d of frame %q",
			checkpoint.ErrCursor, address, n, n, path)
	}
	return bySeq, nil
}

// frameAddress is the path of a frame and the number of its turn, which may stand before it; else
// the turn is the one that is given. It is 0 of what is no frame.
func frameAddress(text string, turn int) (string, int) {
	first, path, more := strings.Cut(text, "/")
	if !more || !isIteration(first) {
		return text, turn
	}
	turn, err := strconv.Atoi(first)
	if err != nil || path == "" || strconv.Itoa(turn) != first {
		return path, 0
	}
	return path, turn
}

// tagged is the checkpoint that has a name.
func (c *core) tagged(ctx context.Context, id, name string) (Checkpoint, error) {
	tags, err := c.tags(ctx, id)
	if err != nil {
		return Checkpoint{}, err
	}
	if tags[name] == 0 {
		return Checkpoint{}, fmt.Errorf("%w: the run has no tag %q", checkpoint.ErrCursor, name)
	}
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return Checkpoint{}, err
	}
	point, err := c.checkpointAt(ctx, h, tags[name])
	if err == nil && point.Seq == 0 {
		err = h.isGone(tagAddress + name)
	}
	return point, err
}

// last is the last checkpoint that was not abandoned: the last one in the log, since where a run
// was rewound is one, unless its frame was voided behind it.
func (c *core) last(ctx context.Context, id string) (Checkpoint, error) {
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return Checkpoint{}, err
	}
	var seq uint64
	err = c.backward(ctx, &h.info, h.info.Head.Seq, func(e *checkpoint.Entry) (bool, error) {
		if isCheckpoint(e) {
			seq = e.Seq
		}
		return seq == 0, nil
	})
	switch {
	case err != nil:
		return Checkpoint{}, err
	case seq == 0 && len(h.info.Pins) > 0:
		seq = h.info.Pins[len(h.info.Pins)-1].Seq
	case seq == 0:
		return Checkpoint{}, &checkpoint.TrimmedError{Run: id, First: h.info.First}
	}
	point, err := c.checkpointAt(ctx, h, seq)
	if err != nil || !point.Abandoned {
		return point, err
	}
	var found Checkpoint
	r := reading{c: c, of: h}
	for p, err := range r.past(ctx) {
		if err != nil {
			return Checkpoint{}, err
		}
		if !p.Abandoned {
			found = p.Checkpoint
		}
	}
	if found.Seq == 0 {
		return Checkpoint{}, &checkpoint.TrimmedError{Run: id, First: h.info.First}
	}
	return found, nil
}

// isCheckpoint reports whether an entry is a checkpoint.
func isCheckpoint(e *checkpoint.Entry) bool {
	switch e.Kind {
	case checkpoint.Opened, checkpoint.TurnBegun, checkpoint.Edited, checkpoint.Rewound:
		return true
	case checkpoint.Superstep:
		return e.Outcome != outcomeFailed
	}
	return false
}

// checkpointAt is the checkpoint that an entry is; its Seq is 0 if the entry is none.
func (c *core) checkpointAt(ctx context.Context, h *hindsight, seq uint64) (Checkpoint, error) {
	if seq == 0 || seq > h.info.Head.Seq {
		return Checkpoint{}, nil
	}
	if seq >= h.info.First {
		for e, err := range c.store.Read(ctx, h.info.Run, seq, seq) {
			if err != nil || !isCheckpoint(&e) {
				return Checkpoint{}, err
			}
		}
	}
	r := reading{c: c, of: h, after: seq - 1, upTo: seq}
	for p, err := range r.past(ctx) {
		return p.Checkpoint, err
	}
	return Checkpoint{}, nil
}

// search finds the last checkpoint, or beginning of a frame, of those that are meant, of which all
// lie in one superstep of the run's own frame or in such that follow each other. before reports
// whether they come behind where a machine stands.
func (c *core) search(ctx context.Context, h *hindsight, before func(*machine) bool, meant func(*Past) bool) (Checkpoint, error) {
	var found Checkpoint
	r := reading{c: c, of: h, enters: true}
	if err := r.skip(ctx, before); err != nil {
		return found, err
	}
	for p, err := range r.past(ctx) {
		switch {
		case err != nil:
			return found, err
		case p.Abandoned:
		case (p.Cause == CauseSuperstep || p.Cause == CauseOpened || p.entered) && meant(&p): // a fork is opened where a superstep has ended
			found = p.Checkpoint // a loop that was voided and entered again counts the last time
		case found.Seq > 0 && p.Path == "" && (p.Cause == CauseSuperstep || p.Cause == CauseTurn):
			return found, nil
		}
	}
	return found, nil
}

// skip begins a reading at the newest snapshot that is before what is looked for.
func (r *reading) skip(ctx context.Context, before func(*machine) bool) error {
	for upTo := r.of.info.Head.Seq; upTo > 0; {
		left := r.c.opts.Limits.DecodeBytes
		m, at, err := r.c.restore(ctx, r.of.info.Run, upTo, &left)
		if err != nil || at == 0 {
			return err
		}
		if !r.of.abandoned(at) && before(m) {
			r.told = newChronicle(r.of.info.Run)
			r.told.seq = at
			r.told.stand(m)
			return nil
		}
		upTo = at - 1
	}
	return nil
}

// backward reads the log from an entry back, in pieces which it reads forward, each twice as long
// as the one before, until the caller says behind one that it has what it wants.
func (c *core) backward(ctx context.Context, info *checkpoint.Info, to uint64, more func(*checkpoint.Entry) (bool, error)) error {
	wanted := true
	for size := uint64(32); wanted && to >= max(info.First, 1); size *= 2 {
		from := max(info.First, 1)
		if to > size {
			from = max(from, to-size+1)
		}
		for e, err := range c.store.Read(ctx, info.Run, from, to) {
			if err == nil {
				wanted, err = more(&e)
			}
			if err != nil {
				return err
			}
		}
		to = from - 1
	}
	return nil
}

// couldHold reports whether a graph has a node that may hold a frame of this path.
func couldHold(plan *dag.Plan, frame string) bool {
	n := nodeAt(plan, frame)
	return frame == "" || n != nil && holds(n)
}

// nodeAt returns the node of a visit, or of one that holds a frame, by its path; nil if the graph
// has none.
func nodeAt(plan *dag.Plan, path string) (n *dag.PlanNode) {
	for name := range strings.SplitSeq(nodePath(path), "/") {
		if plan == nil {
			return nil
		}
		if n = nodeOf(plan, name); n == nil {
			return nil
		}
		plan = n.Body
	}
	return n
}

// supersteps is how many a frame may have ended in what was trimmed of a run.
func (c *core) supersteps(ctx context.Context, h *hindsight, path string) uint64 {
	if path != "" {
		if couldHold(c.plan, path) || couldHold(h.plan, path) {
			return math.MaxUint64
		}
		return 0
	}
	z, err := c.base(ctx, h.info.Run, h.info.Base)
	if err != nil {
		return 0
	}
	return uint64(z.Root.ended())
}

// isGone is the error of an address of what was trimmed.
func (h *hindsight) isGone(address string) error {
	return fmt.Errorf("%w: %q is no checkpoint that is left: the run was trimmed, and its log begins at entry %d: History lists what is there",
		checkpoint.ErrCursor, address, h.info.First)
}

func notThere(address string) error {
	return fmt.Errorf("%w: %q is no checkpoint of the run: History lists them", checkpoint.ErrCursor, address)
}
