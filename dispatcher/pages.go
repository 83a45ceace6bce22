package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A HistoryFilter selects checkpoints of a run. A checkpoint has to match every field that is set,
// and matches a field by any one of its values. An empty list is like nil. The zero HistoryFilter
// selects all.
type HistoryFilter struct {
	// Frames are paths of frames, as for History. Nil means all.
	Frames []string
	// Tags are names of checkpoints. Nil means all, with names or without.
	Tags []string
	// Visits are visits, by path or by node path; one of them has to have ended in the superstep.
	// Nil means all.
	Visits []string
	// Causes say why the state changed. Nil means all.
	Causes []Cause
	// After continues a listing behind the checkpoint of this number, the last one of the page
	// before. Zero means from the beginning.
	//
	// A dispatcher remembers where its last pages ended, so that paging through a run that rests
	// reads its log once. Any other page is read to its own end from a snapshot before it, or, if
	// there is none, from the beginning of the log.
	After uint64
	// Limit is how many checkpoints a page has at most. Zero means 100.
	Limit int
}

// HistoryOf lists a page of the checkpoints of a run, oldest first, each with what led to it. These
// are the ends of supersteps, as in History, and also the opening, turns, edits and rewindings. A
// page takes the memory of its checkpoints and of the supersteps that are open where it is read.
//
//   - checkpoint.ErrCursor: nobody gave the tag, or After is behind the head. Once the listing has
//     come to its end, which is a page that is not full, also for a frame or a visit that neither
//     the run nor the graph has.
//   - An [*OptionError]: Limit is below zero, or a Cause is none.
func (d *Dispatcher[S]) HistoryOf(ctx context.Context, run string, f HistoryFilter) ([]Past, error) {
	return d.inside().historyOf(ctx, run, &f)
}

func (c *core) historyOf(ctx context.Context, id string, f *HistoryFilter) ([]Past, error) {
	if err := c.exists(ctx, id); err != nil {
		return nil, err
	}
	var page []Past
	err := c.steadily(ctx, id, func(*checkpoint.Info) (err error) {
		page, err = c.page(ctx, id, f)
		return err
	})
	return page, c.refuse(id, err)
}

func (c *core) page(ctx context.Context, id string, f *HistoryFilter) ([]Past, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	posted, err := c.postedTags(ctx, id) // first, so that none is missed that is drained meanwhile
	if err != nil {
		return nil, err
	}
	h, err := c.hindsight(ctx, id)
	if err != nil {
		return nil, err
	}
	if f.After > h.info.Head.Seq {
		return nil, fmt.Errorf("%w: entry %d is behind the head of the run, %d", checkpoint.ErrCursor, f.After, h.info.Head.Seq)
	}
	names, err := f.names(posted, h.tags)
	if err != nil {
		return nil, err
	}
	var page []Past
	seen, told := f.unseen(), false // told: the last one of the page is the last one that was read
	r := reading{c: c, of: h, after: f.After, cancelled: func(k CancelInfo) {
		if told {
			last := &page[len(page)-1]
			last.Cancels = append(last.Cancels, k)
		}
	}}
	for p, err := range r.past(ctx) {
		if err != nil {
			return nil, err
		}
		if len(page) == cmp.Or(f.Limit, 100) {
			return page, nil
		}
		p.Tags = names[p.Seq]
		if told = f.selects(&p, seen); !told {
			continue
		}
		if page = append(page, p); len(page) == cmp.Or(f.Limit, 100) {
			c.marks.put(h, r.told)
		}
	}
	if len(page) == cmp.Or(f.Limit, 100) {
		return page, nil
	}
	c.marks.put(h, r.told)
	return page, c.allKnown(ctx, h, f, seen)
}

func (f *HistoryFilter) check() error {
	if f.Limit < 0 {
		return &OptionError{"HistoryFilter.Limit", "is negative"}
	}
	for _, cause := range f.Causes {
		switch cause {
		case CauseOpened, CauseSuperstep, CauseTurn, CauseEdited, CauseRewound:
		default:
			return &OptionError{"HistoryFilter.Causes", fmt.Sprintf("names %.40q, and may name %s, %s, %s, %s and %s",
				cause, CauseOpened, CauseSuperstep, CauseTurn, CauseEdited, CauseRewound)}
		}
	}
	return nil
}

// names are those that checkpoints have, by their numbers. What the filter asks for has to be
// there.
func (f *HistoryFilter) names(all ...map[string]uint64) (map[uint64][]string, error) {
	tags := map[string]uint64{}
	for _, some := range all {
		maps.Copy(tags, some)
	}
	for _, name := range f.Tags {
		if tags[name] == 0 {
			return nil, fmt.Errorf("%w: no checkpoint has the tag %q", checkpoint.ErrCursor, name)
		}
	}
	names := map[uint64][]string{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		names[tags[name]] = append(names[tags[name]], name)
	}
	return names, nil
}

// A sighting notes which of the frames and visits that a filter names were met.
type sighting struct{ frames, visits []bool }

func (f *HistoryFilter) unseen() *sighting {
	return &sighting{make([]bool, len(f.Frames)), make([]bool, len(f.Visits))}
}

func (s *sighting) all() bool {
	return !slices.Contains(s.frames, false) && !slices.Contains(s.visits, false)
}

// selects reports whether the filter selects a checkpoint, and notes what was met in it.
func (f *HistoryFilter) selects(p *Past, seen *sighting) bool {
	frame, visit := selected(p.Path, f.Frames, seen.frames), len(f.Visits) == 0
	for i, name := range f.Visits {
		if slices.ContainsFunc(p.Visits, func(v string) bool { return v == name || nodePath(v) == name }) {
			seen.visits[i], visit = true, true
		}
	}
	return frame && visit &&
		(len(f.Causes) == 0 || slices.Contains(f.Causes, p.Cause)) &&
		(len(f.Tags) == 0 || slices.ContainsFunc(f.Tags, func(name string) bool { return slices.Contains(p.Tags, name) }))
}

// allKnown returns an error that names a frame or a visit which the run never had, and which the
// graph could not have. What was not met behind After may be before it.
func (c *core) allKnown(ctx context.Context, h *hindsight, f *HistoryFilter, seen *sighting) error {
	for i, path := range f.Frames {
		seen.frames[i] = seen.frames[i] || couldHold(c.plan, path)
	}
	for i, path := range f.Visits {
		seen.visits[i] = seen.visits[i] || nodeAt(c.plan, path) != nil
	}
	if f.After > 0 && !seen.all() {
		r := reading{c: c, of: h, upTo: f.After}
		for p, err := range r.past(ctx) {
			if err != nil {
				return err
			}
			if f.selects(&p, seen); seen.all() {
				break
			}
		}
	}
	if i := slices.Index(seen.frames, false); i >= 0 {
		return noSuchFrame(f.Frames[i])
	}
	if i := slices.Index(seen.visits, false); i >= 0 {
		return fmt.Errorf("%w: no visit of the run is called %q", checkpoint.ErrCursor, f.Visits[i])
	}
	return nil
}
