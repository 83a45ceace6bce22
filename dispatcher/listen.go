package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Now, as [Listen.Since], means that a reader wants only what comes from now on.
const Now = ^uint64(0)

// Listen says what a reader wants of the events of a run. The zero Listen is all events of
// the log from the first one on.
type Listen struct {
	// Since is the number of the last entry that the reader has seen: it gets those behind
	// it. Zero means all.
	Since uint64
	// Tail goes on at the end of the log with what becomes true from then on, live notices
	// included. False ends there. A Stream goes on until its call returns, whatever Tail says.
	Tail bool
	// Only selects channels. Zero means all. A Lagged event is never left out.
	Only Channel
	// States adds the state to each SuperstepEnded of the run's own frame: to a Stream as
	// Item.State, to Events as JSON. The reader folds the log for it. False means none.
	States bool
	// Deltas adds what was written to each VisitDone and StateEdited. False means none.
	Deltas bool
}

func (l *Listen) wants(k EventKind) bool {
	return l.Only == 0 || l.Only&k.Channel() != 0 || k == Lagged
}

// A reader tells the events of one run, in its caller's goroutine.
//
// Entries come from the log and from nowhere else, each exactly once, because the reader
// knows the number of the last one it has read; it is only woken to look again. Live
// notices come through its listener, and are told before the first entry that is behind
// the one that they name.
type reader struct {
	c       *core
	run     string
	listen  Listen
	about   *about
	ears    *listener       // nil if the reader does not tail
	follows <-chan struct{} // from the store, if that can tell
	seq     uint64          // of the last entry read
	created time.Time       // of the run, zero if there is none yet
	early   bool            // the run may not be there yet
	limit   time.Duration   // of a store call; zero means none but the context's
	m       *machine        // Listen.States: the run at seq
	notices []*telling      // taken, and not told yet
	tell    func(*telling) bool
}

// Bounds of what is read from the store at once: while it tells the reader holds nothing of
// the store.
const (
	pageEntries = 256
	pageBytes   = 1 << 20
)

// events is Events.
func (c *core) events(ctx context.Context, id string, l Listen) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := c.exists(ctx, id); err != nil {
			yield(Event{}, err)
			return
		}
		rd := c.newReader(id, l, func(t *telling) bool {
			if t.state != nil {
				t.State, _ = json.Marshal(t.state)
			}
			return yield(t.Event, nil)
		})
		if l.Tail {
			defer rd.attach()()
		}
		err := rd.begin(ctx)
		if err == nil {
			err = rd.read(ctx, nil)
		}
		if err != nil && err != errLeft {
			yield(Event{}, c.refuse(id, err))
		}
	}
}

func (c *core) newReader(id string, l Listen, tell func(*telling) bool) *reader {
	return &reader{c: c, run: id, listen: l, tell: tell, about: &about{c: c, run: id, graph: c.plan.Name, turn: 1}}
}

// attach begins to listen to what is live, and returns what ends that. It comes before the
// log is looked at for the first time, so that nothing is missed between the two.
func (rd *reader) attach() (detach func()) {
	rd.ears = newListener(rd.listen)
	stop := func() {}
	if f, ok := rd.c.store.(checkpoint.Follower); ok {
		rd.follows, stop = f.Follow(rd.run)
	}
	rd.c.hub.add(rd.run, rd.ears)
	return func() {
		rd.c.hub.remove(rd.run, rd.ears)
		stop()
	}
}

// read tells events until the log ends and the reader does not tail, ended is closed, the
// context is done, or whoever is told has enough: then it returns errLeft.
func (rd *reader) read(ctx context.Context, ended <-chan struct{}) error {
	pause, last := pauseLeast, rd.ears == nil
	for {
		select {
		case <-ended: // before the head is looked at: nothing of the call comes after it
			last, ended = true, nil
		default:
		}
		before := rd.seq
		if err := rd.round(ctx); err != nil || last && len(rd.notices) == 0 {
			return err
		}
		if len(rd.notices) > 0 {
			continue // they name entries behind the head that was looked at
		}
		if pause = min(2*pause, pauseMost); rd.seq > before {
			pause = pauseLeast
		}
		if err := rd.wait(ctx, ended, pause); err != nil {
			return err
		}
	}
}

// begin finds where the reader begins.
func (rd *reader) begin(ctx context.Context) error {
	head, err := rd.head(ctx)
	if err != nil {
		return err
	}
	switch rd.seq = rd.listen.Since; {
	case rd.seq == Now:
		rd.seq = head
	case rd.seq > head:
		return fmt.Errorf("%w: there is no entry %d: the log ends at %d",
			checkpoint.ErrCursor, rd.seq, head)
	}
	if err := rd.beginTurn(ctx, head); err != nil {
		return err
	}
	if !rd.listen.States || rd.c.store == nil {
		return nil
	}
	if rd.seq > 0 {
		rd.m, _, err = rd.c.load(ctx, rd.run, rd.seq)
		return err
	}
	rd.m = newMachine(rd.c.plan)
	rd.m.replaying = true
	return nil
}

// beginTurn finds in which turn the reader begins: the first entry behind that which changes
// the turn tells.
func (rd *reader) beginTurn(ctx context.Context, head uint64) error {
	if rd.seq == head || rd.seq == 0 { // the entry that opened the run tells
		return nil
	}
	for e, err := range rd.c.store.Read(ctx, rd.run, rd.seq+1, head) {
		if err != nil {
			return err
		}
		var t checkpoint.Turn
		var w checkpoint.Rewinding
		switch {
		case e.Kind == checkpoint.TurnBegun && json.Unmarshal(e.Data, &t) == nil:
			rd.about.turn = t.Number - 1
			return nil
		case e.Kind == checkpoint.Rewound && json.Unmarshal(e.Data, &w) == nil:
			rd.about.turn = w.Left
			return nil
		}
	}
	return nil
}

// head returns the number of the last entry of the log.
func (rd *reader) head(ctx context.Context) (uint64, error) {
	if rd.c.store == nil {
		return 0, nil
	}
	ctx, stop := rd.limited(ctx)
	defer stop()
	info, err := rd.c.store.Stat(ctx, rd.run)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound) && rd.early && rd.created.IsZero():
		return 0, nil
	case err != nil:
		return 0, err
	case rd.created.IsZero():
		rd.created, rd.about.graph = info.Created, info.Graph
		rd.about.labels, rd.about.correlation = info.Labels, info.Correlation
		rd.about.turn = info.Turn // at the head; begin finds that of where the reader begins
	case !rd.created.Equal(info.Created) || info.Head.Seq < rd.seq:
		return 0, fmt.Errorf("%w: it was deleted, and another begun", checkpoint.ErrNotFound)
	}
	return info.Head.Seq, nil
}

func (rd *reader) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if rd.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, rd.limit)
}

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

// How long a reader waits until it looks again, if the store can't tell of the appends of
// others.
const (
	pauseLeast = 5 * time.Millisecond
	pauseMost  = time.Second
)

// wait blocks until there may be something to tell. Notices that no entry comes before, as
// most do while a node emits values, are told here: that takes no look at the store.
func (rd *reader) wait(ctx context.Context, ended <-chan struct{}, pause time.Duration) error {
	var again <-chan time.Time
	grown := rd.follows
	if grown == nil && rd.c.store != nil {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		grown, again = rd.ears.grown, timer.C
	}
	for {
		select {
		case t := <-rd.ears.notices:
			rd.notices = append(rd.notices, rd.ears.taken(t))
			if !rd.tellNotices(rd.seq) {
				return errLeft
			}
			if len(rd.notices) == 0 && rd.ears.dropped.Load() == 0 {
				continue
			}
		case <-grown:
		case <-again:
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return nil
	}
}
