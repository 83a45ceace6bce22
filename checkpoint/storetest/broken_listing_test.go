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

// uncancelledAcquire takes a lease, and then looks whether it was to.
type uncancelledAcquire struct{ sound }

func (s uncancelledAcquire) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	l, err := s.Faulty.Acquire(context.WithoutCancel(ctx), run, owner)
	if err == nil {
		err = ctx.Err()
	}
	return l, err
}
