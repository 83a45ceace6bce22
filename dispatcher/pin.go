package dispatcher

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A frozenPast is what the log told of a checkpoint that was kept for its name, when it was
// trimmed. It is in the machine that is kept: a [checkpoint.Pin] names that, and the store keeps
// both as they are. Whether the checkpoint was abandoned is not there: that may come later, and the
// head tells.
type frozenPast struct {
	At        time.Time `json:"at"`
	Path      string    `json:"path,omitempty"` // of its frame, as it was called there
	Superstep int       `json:"superstep,omitempty"`
	Cause     Cause     `json:"cause"`
	Visits    []string  `json:"visits,omitempty"`
	Author    string    `json:"author,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// named is what the log tells of those checkpoints of seqs, in order, that lie in it up to an
// entry.
func (c *core) named(ctx context.Context, info *checkpoint.Info, seqs []uint64, upTo uint64) (map[uint64]*frozenPast, error) {
	from, _ := slices.BinarySearch(seqs, info.First)
	if from == len(seqs) || seqs[from] > upTo {
		return nil, nil
	}
	of := make(map[uint64]*frozenPast)
	r := reading{c: c, of: &hindsight{info: *info}, after: seqs[from] - 1, upTo: upTo}
	for p, err := range r.past(ctx) {
		if err != nil {
			return nil, err
		}
		if _, is := slices.BinarySearch(seqs, p.Seq); is && !p.pinned {
			of[p.Seq] = &frozenPast{p.At, p.Path, p.Superstep, p.Cause, p.Visits, p.Author, p.Reason}
		}
	}
	return of, nil
}

// pinned is a checkpoint that was kept for its name. Of one that was kept before a machine said
// more, only the superstep of the run's own frame is known.
func (h *hindsight) pinned(pin *checkpoint.Pin, z *frozenMachine) Past {
	p := Past{pinned: true, Checkpoint: Checkpoint{
		Run: h.info.Run, Seq: pin.Seq, Turn: z.Turn, Superstep: z.Root.ended(), Cause: CauseSuperstep,
	}}
	if k := z.Kept; k != nil {
		p.At, p.Path, p.Superstep, p.Cause = k.At, k.Path, k.Superstep, k.Cause
		p.Visits, p.Author, p.Reason = k.Visits, k.Author, k.Reason
	}
	stood := chronicle{voids: len(z.Voids), renames: len(z.Renames)}
	p.Abandoned = h.abandoned(p.Seq) || h.voided(&p, &stood)
	return p
}

// reached is the last turn that a run was in up to an entry, where a machine stands: 0 if it was
// not rewound, since then that is the machine's.
func (c *core) reached(ctx context.Context, info *checkpoint.Info, m *machine, upTo uint64) (last int, err error) {
	if n := len(m.lineage); n == 0 || !m.lineage[n-1].Rewound {
		return 0, nil
	}
	if last = m.turn; info.First > 1 {
		z, err := c.base(ctx, info.Run, info.Base)
		if err != nil {
			return 0, err
		}
		last = max(last, z.reached(0))
	}
	r := reading{c: c, of: &hindsight{info: *info}, after: max(info.First, 1) - 1, upTo: upTo} // pins are of turns before
	for p, err := range r.past(ctx) {
		if err != nil {
			return 0, err
		}
		last = max(last, p.Turn)
	}
	return last, nil
}

// reached is the last turn that the run was in between an entry and where the machine stands, in
// the place of what was trimmed. Where the run was rewound in between, it is told; unless by an
// earlier build, and then it may be any.
func (z *frozenMachine) reached(from uint64) int {
	switch n := len(z.Lineage); {
	case n == 0 || !z.Lineage[n-1].Rewound || z.Lineage[n-1].At <= from:
		return z.Turn
	case z.Reached == 0:
		return math.MaxInt32
	}
	return z.Reached
}

// ended is the last superstep that has ended.
func (z *frozenFrame) ended() int {
	if len(z.Open) > 0 {
		return z.Step - 1
	}
	return z.Step
}
