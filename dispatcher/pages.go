package dispatcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A HistoryFilter selects checkpoints of a run. What is given in several fields has to be true
// together, of what is given in one field something. The zero HistoryFilter selects all.
type HistoryFilter struct {
	// Frames are paths of frames, as for History. Nil means all.
	Frames []string
	// Tags are names of checkpoints. Nil means all, with names or without.
	Tags []string
	// Visits are visits, by path or by node path, of which one ended in the superstep. Nil means
	// all.
	Visits []string
	// Causes say why the state changed. Nil means all.
	Causes []Cause
	// After continues a listing behind the checkpoint of this number, the last one of the page
	// before. Zero means from the beginning.
	After uint64
	// Limit is how many checkpoints a page has at most. Zero means 100.
	Limit int
}

// HistoryOf lists a page of the checkpoints of a run, oldest first: the ends of supersteps, as
// History does, and also the opening, turns, edits and rewindings, each with what led to it.
// checkpoint.ErrCursor for a frame that the graph does not have, or a tag that nobody gave.
func (d *Dispatcher[S]) HistoryOf(ctx context.Context, run string, f HistoryFilter) ([]Past, error) {
	return d.inside().historyOf(ctx, run, &f)
}

func (c *core) historyOf(ctx context.Context, id string, f *HistoryFilter) ([]Past, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	if f.Limit < 0 {
		return nil, c.refuse(id, &OptionError{"HistoryFilter.Limit", "is negative"})
	}
	tags, err := c.tags(ctx, id)
	if err != nil {
		return nil, c.refuse(id, err)
	}
	for _, name := range f.Tags {
		if tags[name] == 0 {
			return nil, c.refuse(id, fmt.Errorf("%w: no checkpoint has the tag %q", checkpoint.ErrCursor, name))
		}
	}
	names := map[uint64][]string{}
	for name, seq := range tags {
		names[seq] = append(names[seq], name)
	}
	var page []Past
	some := make([]bool, len(f.Frames))
	for p, err := range c.past(ctx, id) {
		if err != nil {
			return nil, c.refuse(id, err)
		}
		p.Tags = names[p.Seq]
		slices.Sort(p.Tags)
		if !selected(p.Path, f.Frames, some) || p.Seq <= f.After || !f.selects(&p) {
			continue
		}
		if page = append(page, p); len(page) == orDefault(f.Limit, 100) {
			return page, nil
		}
	}
	for i, path := range f.Frames {
		if !some[i] && !c.couldBe(path) {
			return nil, c.refuse(id, fmt.Errorf("%w: no frame of the run is called %q", checkpoint.ErrCursor, path))
		}
	}
	return page, nil
}

func (f *HistoryFilter) selects(p *Past) bool {
	return (f.Causes == nil || slices.Contains(f.Causes, p.Cause)) &&
		(f.Tags == nil || slices.ContainsFunc(f.Tags, func(name string) bool { return slices.Contains(p.Tags, name) })) &&
		(f.Visits == nil || slices.ContainsFunc(p.Visits, func(v string) bool {
			return slices.Contains(f.Visits, v) || slices.Contains(f.Visits, nodePath(v))
		}))
}
