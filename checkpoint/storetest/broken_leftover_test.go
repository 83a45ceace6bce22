package storetest

import (
	"context"
	"encoding/binary"

	"github.com/pawlgo/pawl/checkpoint"
)

// leavesSnapshots forgets a run but not its snapshot, and looks for one at or before the head.
type leavesSnapshots struct {
	sound
	kept *set
}

func (s leavesSnapshots) PutSnapshot(ctx context.Context, l checkpoint.Lease, snap checkpoint.Snapshot) error {
	err := s.Faulty.PutSnapshot(ctx, l, snap)
	if err == nil {
		s.kept.add(l.Run, append(binary.BigEndian.AppendUint64(nil, snap.Head.Seq), snap.Data...))
	}
	return err
}

func (s leavesSnapshots) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	snap, err := s.Faulty.Snapshot(ctx, run, upTo)
	info, missing := s.Faulty.Stat(ctx, run)
	if left, ok := s.kept.get(run); err != nil && missing == nil && info.First == 1 && ok {
		at := binary.BigEndian.Uint64(left)
		if at <= info.Head.Seq && (upTo == 0 || at <= upTo) {
			return checkpoint.Snapshot{Head: checkpoint.Head{Seq: at}, Data: left[8:]}, nil
		}
	}
	return snap, err
}

// forksOnPosts takes messages away when a run is begun by an append, and not when it is deleted.
type forksOnPosts struct {
	sound
	left *set
}

func (s forksOnPosts) Delete(ctx context.Context, run string) error {
	all, _ := s.Faulty.Posts(ctx, run)
	err := s.Faulty.Delete(ctx, run)
	if err == nil && len(all) > 0 {
		s.left.add(run, []byte(all[0].ID))
	}
	return err
}

func (s forksOnPosts) Fork(ctx context.Context, f checkpoint.Fork) error {
	err := s.Faulty.Fork(ctx, f)
	for i := range f.Runs {
		if id, left := s.left.get(f.Runs[i].Run); err == nil && left {
			err = s.Faulty.Post(ctx, f.Runs[i].Run, checkpoint.Post{ID: string(id)})
		}
	}
	return err
}
