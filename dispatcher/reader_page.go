package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// round tells what there is at the moment. The head is looked at before notices are taken,
// so that all those are there that are older than the entries up to it.
func (rd *reader) round(ctx context.Context) error {
	head, err := rd.head(ctx)
	if err != nil {
		return err
	}
	rd.take()
	for rd.seq < head || len(rd.page) > 0 {
		err := rd.turnPage(ctx, head)
		if gone := rd.still(ctx, err); gone != nil {
			return gone
		}
		page := rd.page
		rd.page = nil
		for _, t := range page {
			if !rd.tellNotices(t.Seq-1) || !rd.tell(t) {
				return errLeft
			}
		}
		if err != nil {
			return err
		}
	}
	if !rd.tellNotices(rd.seq) {
		return errLeft
	}
	return nil
}

// take takes the notices that are there, and the word that some are not.
func (rd *reader) take() {
	if rd.ears == nil {
		return
	}
	dropped := rd.ears.dropped.Swap(0) // those came behind the ones that are there now
	for range noticesMost {
		select {
		case t := <-rd.ears.notices:
			rd.notices = append(rd.notices, rd.ears.taken(t))
			continue
		default:
		}
		break
	}
	if dropped == 0 {
		return
	}
	t := &telling{Event: rd.about.event(Lagged, rd.seq)}
	if n := len(rd.notices); n > 0 {
		t.Seq = rd.notices[n-1].Seq
	}
	t.Live, t.Dropped, t.At = true, int(dropped), time.Now()
	rd.notices = append(rd.notices, t)
}

// tellNotices tells those that came before the entry behind seq.
func (rd *reader) tellNotices(seq uint64) bool {
	for len(rd.notices) > 0 && rd.notices[0].Seq <= seq {
		t := *rd.notices[0] // others are told of it as well
		rd.notices = rd.notices[1:]
		if !rd.tell(&t) {
			return false
		}
	}
	return true
}

// turnPage reads entries up to number head, and makes events of them: beside an error of those
// before it. A page that nobody has been told of comes first.
func (rd *reader) turnPage(ctx context.Context, head uint64) error {
	if len(rd.page) > 0 {
		return nil
	}
	ctx, stop := rd.limited(ctx)
	defer stop()
	read, bytes := 0, 0
	for e, err := range rd.c.store.Read(ctx, rd.run, rd.seq+1, head) {
		if errors.Is(err, checkpoint.ErrTrimmed) && rd.fromOldest() && rd.seq == rd.from { // since begin has looked
			rd.created = time.Time{}
			return rd.begin(ctx)
		}
		if err != nil {
			return err
		}
		t, err := rd.telling(ctx, &e)
		if err != nil {
			return err
		}
		rd.seq = e.Seq
		if t != nil {
			rd.page = append(rd.page, t)
		}
		bytes += sizeOf(&e)
		if read++; read == pageEntries || bytes > pageBytes {
			break
		}
	}
	if read == 0 { // the log that was looked at went farther
		return another()
	}
	return nil
}

// still looks, behind a page, whether it is of the run that the reader began with: the run may have
// been deleted and begun anew since the head was looked at. To learn that takes a fraction of what
// it takes to read one entry. Another run of the same millisecond whose log is as long can't be
// told apart. err is how the page has ended: it counts unless the run is gone.
func (rd *reader) still(ctx context.Context, err error) error {
	_, gone := rd.head(ctx)
	if gone != nil && err != nil && !errors.Is(gone, checkpoint.ErrNotFound) {
		return err
	}
	return gone
}

// telling is what the reader is told of an entry, nil if it does not want it.
func (rd *reader) telling(ctx context.Context, e *checkpoint.Entry) (t *telling, err error) {
	if err := readable(e); err != nil {
		return nil, rd.damage(e, err)
	}
	rd.about = rd.about.after(e)
	if rd.m != nil {
		if err := rd.c.replay(ctx, rd.m, rd.run, e, nil, nil); err != nil {
			return nil, err
		}
	}
	if !rd.listen.wants(eventKind(e.Kind)) {
		return nil, nil
	}
	if rd.about.digest != rd.asked { // what is not found is asked for once: events can be told without
		rd.asked = rd.about.digest
		_, _ = rd.c.planOf(ctx, rd.run, rd.asked)
	}
	own := *e // the memory of entries is lent
	own.Data = slices.Clone(e.Data)
	t = &telling{Event: rd.about.tell(&own)}
	if rd.listen.Deltas && (e.Kind == checkpoint.Done || e.Kind == checkpoint.Edited) {
		t.Delta = slices.Clone(e.Delta)
	}
	if rd.m != nil && ofTheRun(e.Kind, e.Path, e.Outcome) {
		t.state, err = rd.c.typed(rd.m, rd.m.root.view, rd.run, e.Seq)
		if err != nil {
			t.state, err = rd.c.carriedState(rd.run, rd.m, "", err)
		}
	}
	return t, err
}

// eventData is what events read of the data of entries, by their kind. Of all others they have
// the data as it is, or nothing of it.
var eventData = map[checkpoint.Kind]func() any{
	checkpoint.Opened:        func() any { return new(checkpoint.Opening) },
	checkpoint.TurnBegun:     func() any { return new(checkpoint.Turn) },
	checkpoint.AttemptFailed: func() any { return new(checkpoint.FailedAttempt) },
	checkpoint.EffectBegun:   func() any { return new(checkpoint.BegunEffect) },
	checkpoint.EffectEnded:   func() any { return new(checkpoint.EndedEffect) },
	checkpoint.Interrupted:   func() any { return new(checkpoint.Interrupt) },
	checkpoint.Answered:      func() any { return new(checkpoint.Answer) },
	checkpoint.Cancelled:     func() any { return new(checkpoint.Resting) },
	checkpoint.TimedOut:      func() any { return new(checkpoint.Resting) },
	checkpoint.Failed:        func() any { return new(checkpoint.Resting) },
	checkpoint.Completed:     func() any { return new(checkpoint.Resting) },
	checkpoint.Waiting:       func() any { return new(checkpoint.Resting) },
	checkpoint.Migrated:      func() any { return new(checkpoint.Migration) },
	checkpoint.Edited:        func() any { return new(checkpoint.Edit) },
	checkpoint.Trimmed:       func() any { return new(checkpoint.Trimming) },
	checkpoint.Tagged:        func() any { return new(checkpoint.Tag) },
	checkpoint.Rewound:       func() any { return new(checkpoint.Rewinding) },
}

// readable returns why the event of an entry can't be told. A live run tells of entries that it
// has written itself; what is read from a log may be damaged, and an event without what was in
// it would be taken for the truth.
func readable(e *checkpoint.Entry) error {
	kind := eventData[e.Kind]
	if kind == nil || len(e.Data) == 0 {
		return nil
	}
	return json.Unmarshal(e.Data, kind())
}

// damage says that an entry of the log can't be told.
func (rd *reader) damage(e *checkpoint.Entry, err error) error {
	return &checkpoint.CorruptError{Run: rd.run, Seq: e.Seq, Reason: err.Error()}
}

// ofTheRun reports whether an entry ends a superstep of the run's own frame.
func ofTheRun(k checkpoint.Kind, path, outcome string) bool {
	return k == checkpoint.Superstep && path == "" && outcome != outcomeFailed
}
