package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// filtersAlike compares what a filter asks for as it likes.
type filtersAlike struct {
	sound
	text func(string) string
}

func (s filtersAlike) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	all, err := s.Faulty.List(ctx, checkpoint.Filter{After: f.After, Limit: 1 << 20})
	asked := s.alike(checkpoint.Info{Graph: f.Graph, Labels: f.Labels})
	f.Graph, f.Labels = asked.Graph, asked.Labels
	all = slices.DeleteFunc(all, func(i checkpoint.Info) bool { return !f.Matches(s.alike(i)) })
	return all[:min(len(all), f.Page())], err
}

func (s filtersAlike) alike(i checkpoint.Info) checkpoint.Info {
	labels := make(map[string]string)
	for key, value := range i.Labels {
		labels[s.text(key)] = s.text(value)
	}
	i.Graph, i.Labels = s.text(i.Graph), labels
	return i
}

// oldPlace lists runs by when there was the first one of their ids.
type oldPlace struct {
	sound
	deleted *set // ids, with the run that came next
}

func (s oldPlace) Delete(ctx context.Context, run string) error {
	all, _ := s.Faulty.List(ctx, checkpoint.Filter{Limit: 1 << 20})
	err := s.Faulty.Delete(ctx, run)
	if i := slices.IndexFunc(all, func(i checkpoint.Info) bool { return i.Run == run }); err == nil && i > 0 {
		s.deleted.add(run, []byte(all[i-1].Run))
	}
	return err
}

func (s oldPlace) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	all, err := s.Faulty.List(ctx, f)
	for i := range all {
		info := all[i]
		next, made := s.deleted.get(info.Run)
		at := slices.IndexFunc(all, func(i checkpoint.Info) bool { return i.Run == string(next) })
		if made && at > i {
			all = slices.Insert(slices.Delete(all, i, i+1), at, info)
		}
	}
	return all, err
}

// uncancelledDelete deletes, and then looks whether it was to.
type uncancelledDelete struct{ sound }

func (s uncancelledDelete) Delete(ctx context.Context, run string) error {
	return errors.Join(s.Faulty.Delete(context.WithoutCancel(ctx), run), ctx.Err())
}

// uncancelledFork makes forks so.
type uncancelledFork struct{ sound }

func (s uncancelledFork) Fork(ctx context.Context, f checkpoint.Fork) error {
	return errors.Join(s.Faulty.Fork(context.WithoutCancel(ctx), f), ctx.Err())
}

// uncancelledRestore restores runs so.
type uncancelledRestore struct{ sound }

func (s uncancelledRestore) Restore(ctx context.Context, l checkpoint.Lease, a checkpoint.Archive) (checkpoint.Info, error) {
	return s.Faulty.Restore(context.WithoutCancel(ctx), l, a)
}

// uncancelledAcquire takes a lease, and then looks whether it was to.
type uncancelledAcquire struct{ sound }

func (s uncancelledAcquire) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(context.WithoutCancel(ctx), run, owner)
	if err == nil {
		err = ctx.Err()
	}
	return l, err
}

// indexed selects runs by a status that it writes down only when one begins, is entered or rests.
type indexed struct {
	sound
	status *set
}

func (s indexed) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	head, err := s.Faulty.Append(ctx, l, after, entries)
	if err != nil {
		return head, err
	}
	switch entries[len(entries)-1].Kind {
	case checkpoint.Resumed, checkpoint.TurnBegun, checkpoint.Rewound:
	default:
		if info, err := s.Faulty.Stat(ctx, l.Run); err == nil {
			s.status.add(l.Run, []byte(info.Status))
		}
	}
	return head, nil
}

func (s indexed) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	all, err := s.Faulty.List(ctx, checkpoint.Filter{Limit: 1 << 20})
	if err != nil || len(f.Status) == 0 || f.Check() != nil {
		return s.Faulty.List(ctx, f)
	}
	return slices.DeleteFunc(all, func(i checkpoint.Info) bool {
		status, _ := s.status.get(i.Run)
		return !slices.Contains(f.Status, checkpoint.Status(status))
	}), nil
}

// takesNoMore refuses messages to a run that is completed.
type takesNoMore struct{ sound }

func (s takesNoMore) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if info, err := s.Faulty.Stat(ctx, run); err == nil && info.Status == checkpoint.StatusCompleted {
		return checkpoint.ErrConflict
	}
	return s.Faulty.Post(ctx, run, p)
}
