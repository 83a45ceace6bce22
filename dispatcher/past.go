package dispatcher

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Past is a checkpoint and what led to it.
type Past struct {
	Checkpoint
	// Visits are those that ended in the superstep, done or failed, in the order in which
	// they did.
	Visits []string
	// Tags are the names of the checkpoint.
	Tags []string
	// Author and Reason are those of an edit, or of who had the run go back.
	Author, Reason string
	// Cancels tell of each time that the run was cancelled between this checkpoint and the next.
	Cancels []CancelInfo

	pinned bool // only its machine is kept
}

// A CancelInfo tells that a run was cancelled: by its id, or with the context of a call.
type CancelInfo struct {
	At     time.Time
	Author string // "" if nobody has said so
	Reason string // the text of the cause
}

// cancelled adds to the last of them what an entry tells. Nothing is added if there is none left
// in a log that was trimmed.
func cancelled(all []Past, e *checkpoint.Entry) {
	var how checkpoint.Resting
	if len(all) == 0 || json.Unmarshal(e.Data, &how) != nil {
		return
	}
	last := &all[len(all)-1]
	last.Cancels = append(last.Cancels, CancelInfo{e.At, how.By, how.Cause})
}

// A chronicle makes what a log says into its past: one entry after the other.
type chronicle struct {
	run   string
	turn  int
	back  uint64              // of the last rewinding: the entry that it goes back to
	ended map[string][]string // visits of open supersteps that have, by the path of their frame
	steps map[string]int      // the last superstep that ended, by the path of its frame
}

// past yields the checkpoints of a run, oldest first. Their Tags are left out. Which of them were
// abandoned only later entries tell, so it reads the whole log before it yields the first.
func (c *core) past(ctx context.Context, id string) iter.Seq2[Past, error] {
	return func(yield func(Past, error) bool) {
		var all []Past
		var rewound []span
		t := chronicle{run: id, turn: 1, ended: map[string][]string{}, steps: map[string]int{}}
		if err := c.pastOf(ctx, &t, &all); err != nil {
			yield(Past{}, err)
			return
		}
		for e, err := range c.store.Read(ctx, id, 0, 0) {
			if err != nil {
				yield(Past{}, err)
				return
			}
			if e.Kind == checkpoint.Cancelled {
				cancelled(all, &e)
			}
			p, ok := t.tell(&e)
			if !ok {
				continue
			}
			if p.Cause == CauseRewound {
				rewound = append(rewound, span{from: p.Seq, to: t.back})
			}
			all = append(all, p)
		}
		led := spansOf(rewound, math.MaxUint64)
		for _, p := range all {
			p.Abandoned = !slices.ContainsFunc(led, func(s span) bool { return s.from <= p.Seq && p.Seq <= s.to })
			if !yield(p, nil) {
				return
			}
		}
	}
}

// pastOf begins the chronicle of a run that was trimmed, where its log begins now. Of what was
// before only those checkpoints are there that were kept for their names.
func (c *core) pastOf(ctx context.Context, t *chronicle, all *[]Past) error {
	info, err := c.store.Stat(ctx, t.run)
	if err != nil || info.First <= 1 {
		return err
	}
	for _, pin := range info.Pins {
		z, err := c.base(ctx, t.run, pin.Base)
		if err != nil {
			return err
		}
		*all = append(*all, Past{pinned: true, Checkpoint: Checkpoint{
			Run: t.run, Seq: pin.Seq, Turn: z.Turn, Superstep: z.Root.ended(), Cause: CauseSuperstep,
		}})
	}
	z, err := c.base(ctx, t.run, info.Base)
	if err == nil {
		t.turn, t.steps[""] = z.Turn, z.Root.ended()
	}
	return err
}

// ended is the last superstep that has ended.
func (z *frozenFrame) ended() int {
	if len(z.Open) > 0 {
		return z.Step - 1
	}
	return z.Step
}

// tell takes the next entry, and returns the checkpoint that it makes, if it makes one. It
// keeps nothing of the memory of e.
func (t *chronicle) tell(e *checkpoint.Entry) (Past, bool) {
	p := Past{Checkpoint: Checkpoint{Run: t.run, Seq: e.Seq, At: e.At, Path: strings.Clone(e.Path)}}
	switch e.Kind {
	case checkpoint.Opened:
		var o checkpoint.Opening
		if json.Unmarshal(e.Data, &o) == nil && o.Origin != nil {
			t.turn, t.steps[""] = max(o.Origin.Turn, 1), o.Origin.Step
			p.Superstep, p.Author, p.Reason = o.Origin.Step, o.Origin.Author, o.Origin.Reason
		}
		p.Cause = CauseOpened
	case checkpoint.TurnBegun:
		t.turn++
		t.forget("")
		p.Cause, p.Superstep = CauseTurn, t.steps[""]
	case checkpoint.Entered:
		t.forget(e.Path)
		delete(t.steps, e.Path)
	case checkpoint.Done:
		t.end(e.Path)
	case checkpoint.AttemptFailed:
		var a checkpoint.FailedAttempt
		if json.Unmarshal(e.Data, &a) == nil && a.Final {
			t.end(e.Path)
		}
	case checkpoint.Voided:
		var paths []string
		_ = json.Unmarshal(e.Data, &paths)
		t.void(paths)
	case checkpoint.Edited:
		var d checkpoint.Edit
		_ = json.Unmarshal(e.Data, &d)
		t.void(d.Voids)
		p.Cause, p.Author, p.Reason, p.Superstep = CauseEdited, d.Author, d.Reason, t.steps[p.Path]
	case checkpoint.Rewound:
		var w checkpoint.Rewinding
		_ = json.Unmarshal(e.Data, &w)
		t.rewind(&w)
		t.back = w.To
		p.Cause, p.Author, p.Reason, p.Superstep = CauseRewound, w.Author, w.Reason, t.steps[""]
	case checkpoint.Superstep:
		p.Superstep, p.Visits = e.Step, t.ended[e.Path]
		delete(t.ended, e.Path)
		if e.Outcome == outcomeFailed {
			return p, false
		}
		t.steps[p.Path] = e.Step
		p.Cause = CauseSuperstep
	}
	p.Turn = t.turn
	return p, p.Cause != ""
}

// end notes that a visit has ended.
func (t *chronicle) end(path string) {
	frame := frameOf(path)
	if !slices.Contains(t.ended[frame], path) { // a failed one that a resume has run again
		t.ended[strings.Clone(frame)] = append(t.ended[frame], strings.Clone(path))
	}
}

// void forgets what visits did.
func (t *chronicle) void(paths []string) {
	for _, path := range paths {
		frame := frameOf(path)
		t.ended[frame] = slices.DeleteFunc(t.ended[frame], func(v string) bool { return v == path })
		t.forget(path)
	}
}

// forget forgets what ended in a frame, and inside it.
func (t *chronicle) forget(frame string) {
	for f := range t.ended {
		if f == frame || frame == "" || strings.HasPrefix(f, frame+"/") {
			delete(t.ended, f)
		}
	}
}

// rewind goes back to where the machine of a rewinding stands.
func (t *chronicle) rewind(w *checkpoint.Rewinding) {
	t.forget("")
	clear(t.steps)
	var z frozenMachine
	if json.Unmarshal(w.Machine, &z) != nil || z.Root == nil {
		return
	}
	t.turn, t.steps[""] = z.Turn, z.Root.Step
	if len(z.Root.Open) > 0 {
		t.steps[""]--
	}
}

// frameOf is the path of the frame that a visit is in.
func frameOf(visit string) string {
	i := strings.LastIndexByte(visit, '/')
	return visit[:max(i, 0)]
}
