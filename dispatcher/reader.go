package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

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
	asked   string          // digest of the graph that was asked for last, to tell of its nodes
	ears    *listener       // nil if the reader does not tail
	follows <-chan struct{} // from the store, if that can tell
	seq     uint64          // of the last entry read
	first   uint64          // number of the first entry that is left, when head looked last
	created time.Time       // of the run, zero if there is none yet
	newest  checkpoint.Head // of the log, when head looked last
	early   bool            // the run may not be there yet
	oldest  bool            // a Since of zero means the oldest entry that is kept
	from    uint64          // number of the entry behind which begin has begun
	until   time.Time       // when store calls have to end; zero means with the context alone
	m       *machine        // Listen.States: the run at seq
	page    []*telling      // read up to seq, and not told yet
	notices []*telling      // taken, and not told yet
	tell    func(*telling) bool
}

// Bounds of what is read from the store at once: while it tells the reader holds nothing of
// the store.
const (
	pageEntries = 256
	pageBytes   = 1 << 20
)

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
	case rd.first > 1 && rd.seq+1 < rd.first:
		if !rd.fromOldest() {
			return &checkpoint.TrimmedError{Run: rd.run, First: rd.first}
		}
		rd.seq = rd.first - 1
	}
	rd.from = rd.seq
	if err = rd.beginTurn(ctx, head); err == nil {
		err = rd.beginState(ctx)
	}
	if errors.Is(err, checkpoint.ErrTrimmed) && (rd.listen.Since == Now || rd.fromOldest()) { // the run has gone on: now is later
		rd.created = time.Time{}
		return rd.begin(ctx)
	}
	return err
}

// fromOldest reports whether the reader begins at whatever is kept.
func (rd *reader) fromOldest() bool { return rd.oldest && rd.listen.Since == 0 }

// beginState finds the state where the reader begins, if it tells of states.
func (rd *reader) beginState(ctx context.Context) (err error) {
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

// beginTurn finds in which turn the reader begins, and which graph the run has there, if that is
// not the one at the head: by the entries behind it that change them next, or by what is before,
// whichever is less to read. If what is before can't be read, as behind damage, those behind it
// tell, or what is at the head holds: a reader of what is whole isn't refused for what is not.
func (rd *reader) beginTurn(ctx context.Context, head uint64) error {
	if rd.seq == head || rd.seq == 0 { // the entry that opened the run tells
		return nil
	}
	if rd.seq < head-rd.seq {
		if m, _, err := rd.c.load(ctx, rd.run, rd.seq); err == nil {
			rd.about.graph, rd.about.digest, rd.about.turn = m.plan.Name, m.plan.Digest, m.turn
			return nil
		}
	}
	turn, graph := false, false
	for e, err := range rd.c.store.Read(ctx, rd.run, rd.seq+1, head) {
		if err != nil && turn { // whoever reads as far as that is told
			return nil
		}
		if err != nil {
			return err
		}
		was, changed, err := rd.before(ctx, &e)
		if err != nil {
			return rd.damage(&e, err)
		}
		if was.turn > 0 && !turn {
			rd.about.turn, turn = was.turn, true
		}
		if changed && !graph {
			rd.about.graph, graph = cmp.Or(was.graph, rd.about.graph), true
			rd.about.digest = cmp.Or(was.digest, rd.about.digest)
		}
		if turn && graph {
			return nil
		}
	}
	return nil
}

// before is what an entry says of the turn and the graph before it. changed: it may have changed
// the graph.
func (rd *reader) before(ctx context.Context, e *checkpoint.Entry) (was about, changed bool, err error) {
	switch e.Kind {
	case checkpoint.TurnBegun:
		var t checkpoint.Turn
		err = json.Unmarshal(e.Data, &t)
		was.turn = t.Number - 1
	case checkpoint.Rewound:
		var w checkpoint.Rewinding
		err = json.Unmarshal(e.Data, &w)
		was.turn, changed = w.Left, true
		if m, _, err := rd.c.load(ctx, rd.run, e.Seq-1); err == nil {
			was.graph, was.digest = m.plan.Name, m.plan.Digest
		}
	case checkpoint.Migrated:
		var m checkpoint.Migration
		err = json.Unmarshal(e.Data, &m)
		was.digest, changed = m.From, true
		if plan, err := rd.c.planOf(ctx, rd.run, m.From); err == nil {
			was.graph = plan.Name
		}
	}
	return was, changed, err
}

// head returns the number of the last entry of the log.
func (rd *reader) head(ctx context.Context) (uint64, error) {
	if rd.c.store == nil {
		return 0, nil
	}
	ctx, stop := rd.limited(ctx)
	defer stop()
	info, err := rd.c.store.Stat(ctx, rd.run)
	rd.first = info.First
	switch {
	case errors.Is(err, checkpoint.ErrNotFound) && rd.early && rd.created.IsZero():
		return 0, nil
	case err != nil:
		return 0, err
	case rd.created.IsZero():
		rd.created, rd.about.graph, rd.about.digest = info.Created, info.Graph, info.Digest
		rd.about.labels, rd.about.correlation = info.Labels, info.Correlation
		rd.about.turn = info.Turn // at the head; begin finds that of where the reader begins
	case !rd.created.Equal(info.Created) || info.Head.Seq < rd.seq:
		return 0, another()
	case info.Head.Seq == rd.newest.Seq && info.Head != rd.newest: // made within the millisecond in which the other one was
		return 0, another()
	}
	rd.newest = info.Head
	return info.Head.Seq, nil
}

func (rd *reader) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if rd.until.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, rd.until)
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
			return sound(context.Cause(ctx))
		}
		return nil
	}
}
