package dispatcher

import (
	"context"
	"slices"
	"strconv"
)

// An Ancestor is a checkpoint from which a run has gone on.
type Ancestor struct {
	Run     string
	Seq     uint64 // position in that run's log
	Rewound bool   // by Rewind, in the same log; else as a fork
}

// Address is the checkpoint's address, run@seq.
func (a Ancestor) Address() string { return a.Run + "@" + strconv.FormatUint(a.Seq, 10) }

// Lineage tells from where a run has gone on: the checkpoint from which it was forked or to which
// it was rewound, then where that came from, and so on. It needs none of those runs; they may have
// been deleted. For a run that comes from nowhere it is empty. The run may be of another graph than
// the dispatcher's.
func (d *Dispatcher[S]) Lineage(ctx context.Context, run string) ([]Ancestor, error) {
	return d.inside().ancestors(ctx, run)
}

func (c *core) ancestors(ctx context.Context, id string) ([]Ancestor, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	m, _, err := c.load(ctx, id, 0)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	var all []Ancestor
	for _, a := range slices.Backward(m.lineage) {
		all = append(all, Ancestor{Run: a.Run, Seq: a.Seq, Rewound: a.Rewound})
	}
	return all, nil
}
