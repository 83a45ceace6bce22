package dispatcher

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// A Past is a checkpoint and what led to it.
type Past struct {
	Checkpoint
	// Visits are the visits that ended in the superstep, done or failed, in the order of their
	// paths.
	Visits []string
	// Tags are the names of the checkpoint.
	Tags []string
	// Author and Reason are those of an edit or of a Rewind.
	Author, Reason string
	// Cancels tell each time that the run was cancelled between this checkpoint and the next.
	Cancels []CancelInfo

	pinned  bool // only its machine is kept
	entered bool // it is no checkpoint: the frame has begun
}

// A CancelInfo tells that a run was cancelled, by its id or with the context of a call.
type CancelInfo struct {
	At     time.Time
	Author string // "" if nobody has said so
	Reason string // the text of the cause
}

// A hindsight is what the head of a run tells of its past. It never changes.
type hindsight struct {
	info checkpoint.Info
	plan *dag.Plan         // the graph that the run has at the head
	tags map[string]uint64 // in the log
	led  []span            // the parts of the log that led to the head: what is in none was abandoned
	// voids are what was voided on the way to the head, oldest first: what happened inside before
	// was abandoned too.
	voids   []voided
	renames renames // of the head
}

// hindsight reads what the head of a run tells of its past, unless that is known.
func (c *core) hindsight(ctx context.Context, id string) (h *hindsight, err error) {
	err = c.steadily(ctx, id, func(info *checkpoint.Info) error {
		if h = c.marks.known(info); h != nil {
			return nil
		}
		m, _, err := c.loadFrom(ctx, info, 0, nil)
		if err == nil {
			err = c.remains(ctx, info)
		}
		if err == nil {
			h = &hindsight{*info, m.plan, m.tags, m.led(info.Head.Seq), m.voids, m.renames}
		}
		return err
	})
	return h, err
}

// A span is a part of a log.
type span struct{ from, to uint64 }

// spans are the parts of a log that led to an entry, oldest first: without what was abandoned
// before it.
func (c *core) spans(ctx context.Context, id string, upTo uint64) ([]span, error) {
	m, _, err := c.load(ctx, id, upTo)
	if err != nil {
		return nil, err
	}
	return m.led(upTo), nil
}

// led are the parts of the log that led to m, which stands at an entry, oldest first.
func (m *machine) led(at uint64) []span { return led(m.lineage, at) }

// led are those that led to a machine of that lineage.
func led(lineage []ancestor, at uint64) (spans []span) {
	for _, a := range slices.Backward(lineage) {
		if !a.Rewound {
			break
		}
		spans = append(spans, span{from: a.At, to: at})
		at = a.Seq
	}
	spans = append(spans, span{from: 1, to: at})
	slices.Reverse(spans)
	return spans
}

// abandoned reports whether the run was rewound to before an entry.
func (h *hindsight) abandoned(seq uint64) bool { return !within(h.led, seq) }

// within reports whether an entry is in one of the parts.
func within(spans []span, seq uint64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from <= seq && seq <= s.to })
}

// voided reports whether a checkpoint, which led to the head, stands in a frame that was voided
// behind it, under whatever name. It is told where told is.
func (h *hindsight) voided(p *Past, told *chronicle) bool {
	return p.Path != "" && slices.ContainsFunc(h.voids[min(told.voids, len(h.voids)):], func(v voided) bool {
		switch {
		case v.Turn != p.Turn:
			return false
		case v.Renames <= told.renames:
			return isOrIn(p.Path, v.Path)
		}
		was, is := h.renames[:told.renames], h.renames[:v.Renames]
		for path := p.Path; path != ""; path = frameOf(path) { // what is inside it may have been forgotten
			if now, there := is.called(path, was); there && now == v.Path {
				return true
			}
		}
		return false
	})
}

// A reading is a walk along the past of a run.
type reading struct {
	c     *core
	of    *hindsight
	after uint64     // checkpoints behind this entry are wanted
	upTo  uint64     // 0: the head that of tells of
	told  *chronicle // where it begins, and, while it goes on, how far it has come
	// cancelled is told of each time that the run was cancelled, behind the checkpoint that was
	// yielded last; nil if nobody asks.
	cancelled func(CancelInfo)
	enters    bool // where frames inside the run have begun is wanted as well
}

// past yields the checkpoints of a run behind an entry, oldest first. Their Tags are left out.
//
// It keeps no more than is open where it reads, and begins as near before the entry as it can: at
// a bookmark, a snapshot, or else where the log begins.
func (r *reading) past(ctx context.Context) iter.Seq2[Past, error] {
	return func(yield func(Past, error) bool) {
		info := &r.of.info
		if r.told == nil {
			pinned, err := r.begin(ctx)
			if err != nil {
				yield(Past{}, err)
				return
			}
			for _, p := range pinned {
				if !yield(p, nil) {
					return
				}
			}
		}
		upTo := info.Head.Seq
		if r.upTo > 0 {
			upTo = min(upTo, r.upTo)
		}
		if r.told.seq >= upTo {
			return
		}
		for e, err := range r.c.store.Read(ctx, info.Run, r.told.seq+1, upTo) {
			var p Past
			var is bool
			if err == nil {
				p, is, err = r.told.hear(ctx, r.c, &e)
			}
			if err == nil && e.Kind == checkpoint.Cancelled && r.cancelled != nil {
				err = r.tellCancelled(&e)
			}
			if err != nil {
				yield(Past{}, err)
				return
			}
			p.entered = r.enters && e.Kind == checkpoint.Entered && e.Path != ""
			if !is && !p.entered || p.Seq <= r.after {
				continue
			}
			if p.Abandoned = r.of.abandoned(p.Seq) || r.of.voided(&p, r.told); !yield(p, nil) {
				return
			}
		}
	}
}

func (r *reading) tellCancelled(e *checkpoint.Entry) error {
	var how checkpoint.Resting
	if err := json.Unmarshal(e.Data, &how); err != nil {
		return damaged(r.of.info.Run, e.Seq, err)
	}
	r.cancelled(CancelInfo{e.At, how.By, how.Cause})
	return nil
}

// begin finds where the reading begins. Of what was trimmed only those checkpoints are left, and
// returned, that were kept for their names.
func (r *reading) begin(ctx context.Context) (pinned []Past, err error) {
	info := &r.of.info
	mark := r.c.marks.find(info, r.after)
	if mark != nil && mark.told.seq == r.after {
		r.told = mark.told.clone()
		return nil, nil
	}
	r.told = newChronicle(info.Run)
	if r.after > 0 {
		left := r.c.opts.Limits.DecodeBytes
		m, at, err := r.c.restore(ctx, info.Run, r.after, &left)
		if err != nil {
			return nil, err
		}
		if at > 0 && (mark == nil || mark.told.seq < at) {
			r.told.seq = at
			r.told.stand(m)
			return nil, nil
		}
	}
	switch {
	case mark != nil:
		r.told = mark.told.clone()
		return nil, nil
	case info.First <= 1:
		return nil, nil
	}
	return r.beginTrimmed(ctx)
}

func (r *reading) beginTrimmed(ctx context.Context) (pinned []Past, err error) {
	info := &r.of.info
	for _, pin := range info.Pins {
		if pin.Seq <= r.after || r.upTo > 0 && pin.Seq > r.upTo {
			continue
		}
		z, err := r.c.base(ctx, info.Run, pin.Base)
		if err != nil {
			return nil, err
		}
		pinned = append(pinned, r.of.pinned(&pin, z))
	}
	z, err := r.c.base(ctx, info.Run, info.Base)
	if err != nil {
		return nil, err
	}
	r.told.seq = info.First - 1
	return pinned, r.told.thaw(ctx, r.c, z)
}
