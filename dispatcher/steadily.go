package dispatcher

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// Who only looks at a run has no lease, and asks its store several things: what is known of the
// run, and then for the base or the entries that this names. Meanwhile the run may be trimmed, so
// that what was named is gone and something else is there in its place, or deleted.

// steadily calls f with what is known of a run, and again if f could not read what that names since
// the run was trimmed meanwhile, or deleted and begun anew. What f says of a run that has stayed
// counts: what it asks for was trimmed before, or is damaged.
func (c *core) steadily(ctx context.Context, id string, f func(info *checkpoint.Info) error) error {
	for {
		info, err := c.store.Stat(ctx, id)
		if err != nil {
			return err
		}
		if err = f(&info); err == nil || !unreadable(err) {
			return err
		}
		now, gone := c.store.Stat(ctx, id)
		if gone != nil {
			return gone
		}
		if now.First == info.First && now.Created.Equal(info.Created) {
			return err
		}
	}
}

// remains looks whether the run is still there of which info tells, and not another one under its
// id, by when they were created: which is told in milliseconds.
func (c *core) remains(ctx context.Context, info *checkpoint.Info) error {
	now, err := c.store.Stat(ctx, info.Run)
	if err == nil && !now.Created.Equal(info.Created) {
		err = another()
	}
	return err
}

// another is the error of a run that was deleted while it was read.
func another() error {
	return fmt.Errorf("%w: it was deleted, and another begun", checkpoint.ErrNotFound)
}

// loadAt replays a run up to the checkpoint of an address, and returns its head as well.
func (c *core) loadAt(ctx context.Context, id, address string) (point Checkpoint, m *machine, head checkpoint.Head, err error) {
	err = c.steadily(ctx, id, func(*checkpoint.Info) error {
		if point, err = c.locate(ctx, id, address); err == nil {
			m, head, err = c.load(ctx, id, point.Seq)
		}
		return err
	})
	return point, m, head, err
}
