package main

import (
	"context"

	"golang.org/x/sync/errgroup"
)

const width = 100

// fans measures a fan-out and its join without a store, as a whole run, against an
// errgroup whose functions each get a copy of the state.
func fans(s session) ([]row, error) {
	all, err := s.contest(fanOuts(), groups())
	if err != nil {
		return nil, err
	}
	return []row{atMost("fan-100/run-to-errgroup", all[0].over(all[1]), "ratio", 1.2,
		"a run %.3g µs, an errgroup %.3g µs", all[0].median()*1e-3, all[1].median()*1e-3)}, nil
}

func fanOuts() contender { return started(fan(width), width+2) }

func groups() contender { return each(group) }

func group(ctx context.Context) error {
	p := new(plain)
	if err := plainStep(ctx, p); err != nil {
		return err
	}
	g, inner := errgroup.WithContext(ctx)
	var drafts [width]*plain
	for i := range drafts {
		g.Go(func() error {
			draft := *p
			drafts[i] = &draft
			return plainStep(inner, &draft)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	before := p.Count
	for _, draft := range drafts {
		p.Count += draft.Count - before
	}
	return plainStep(ctx, p)
}
