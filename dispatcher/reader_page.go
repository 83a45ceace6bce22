package dispatcher

import (
	"context"
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
	for rd.seq < head {
		page, err := rd.page(ctx, head)
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

// page reads entries up to number head, and makes events of them: beside an error of those
// before it.
func (rd *reader) page(ctx context.Context, head uint64) (page []*telling, err error) {
	ctx, stop := rd.limited(ctx)
	defer stop()
	read, bytes := 0, 0
	for e, err := range rd.c.store.Read(ctx, rd.run, rd.seq+1, head) {
		if err != nil {
			return page, err
		}
		t, err := rd.telling(ctx, &e)
		if err != nil {
			return page, err
		}
		rd.seq = e.Seq
		if t != nil {
			page = append(page, t)
		}
		bytes += len(e.Delta) + len(e.Outer) + len(e.Data) + len(e.Path) + entryOverhead
		if read++; read == pageEntries || bytes > pageBytes {
			break
		}
	}
	return page, nil
}

// telling is what the reader is told of an entry, nil if it does not want it.
func (rd *reader) telling(ctx context.Context, e *checkpoint.Entry) (t *telling, err error) {
	rd.about = rd.about.after(e)
	if rd.m != nil {
		x := said(*e, nil)
		x.live = false
		if err := rd.c.planned(ctx, rd.m, rd.run, &x); err != nil {
			return nil, err
		}
		if err := rd.m.apply(&x); err != nil {
			return nil, &checkpoint.CorruptError{Run: rd.run, Seq: e.Seq, Reason: err.Error()}
		}
	}
	if !rd.listen.wants(eventKind(e.Kind)) {
		return nil, nil
	}
	own := *e // the memory of entries is lent
	own.Data = slices.Clone(e.Data)
	t = &telling{Event: rd.about.tell(&own)}
	if rd.listen.Deltas && (e.Kind == checkpoint.Done || e.Kind == checkpoint.Edited) {
		t.Delta = slices.Clone(e.Delta)
	}
	if rd.m != nil && ofTheRun(e.Kind, e.Path, e.Outcome) {
		t.state, err = rd.c.typed(rd.m, rd.m.root.view, rd.run, e.Seq)
	}
	return t, err
}

// ofTheRun reports whether an entry ends a superstep of the run's own frame.
func ofTheRun(k checkpoint.Kind, path, outcome string) bool {
	return k == checkpoint.Superstep && path == "" && outcome != outcomeFailed
}
