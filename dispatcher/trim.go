package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Retention says what of a run's past stays when the run is trimmed. A checkpoint stays if any of
// the fields keeps it, and so does the last one with all that follows it. The zero Retention keeps
// everything.
type Retention struct {
	// Last is how many checkpoints stay, counted back from the last one. Ends of supersteps, of any
	// frame, count, and so does the opening. Checkpoints in frames that were voided don't count;
	// they stay if what is before them stays. Zero means that only the last one stays by its
	// number.
	Last int
	// Age is how old a checkpoint may be and stay. Zero means that none stays by its age.
	Age time.Duration
	// Tagged keeps the checkpoints that have a name, however old they are. At, Fork, Rewind and
	// Diff can read them, by their names and all their other addresses: the state of the whole run,
	// in every frame. The entries around them go, and so do the results of effects behind them; see
	// Fork. HistoryOf tells of them what it told before, except Past.Cancels. Zero means that they
	// go like others.
	Tagged bool
}

func (k *Retention) check(option string) error {
	switch {
	case k.Last < 0:
		return &OptionError{option + ".Last", "is negative"}
	case k.Age < 0:
		return &OptionError{option + ".Age", "is negative"}
	}
	return nil
}

// Trim drops the past of a run that nobody is at work on, except what keep keeps: it drops the
// entries before the oldest checkpoint that stays. The store keeps a machine in their place, and an
// entry says so. So the log can still be verified, and the run goes on as before. Trim returns when
// that is durable; if nothing is to be dropped it does nothing.
//
// What was dropped is checkpoint.ErrTrimmed for events and checkpoint.ErrCursor as an address, and
// Blame names nobody for it. Forks of the run keep all that they need. [Author] says who trims.
//
// ErrBusy if the run is live; checkpoint.ErrUnsupported if the store can't trim. A zero Retention
// is refused: to keep only the last checkpoint, say Last: 1.
func (d *Dispatcher[S]) Trim(ctx context.Context, run string, keep Retention, options ...RunOption) error {
	return d.inside().trim(ctx, run, keep, options)
}

func (c *core) trim(ctx context.Context, id string, keep Retention, options []RunOption) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	by, err := c.author(options)
	if err == nil {
		err = keep.check("Retention")
	}
	if err == nil && keep == (Retention{}) {
		err = &OptionError{"Retention", "keeps everything: say at least Last: 1"}
	}
	if err != nil {
		return c.refuse(id, err)
	}
	_, err = c.trimmed(ctx, id, keep, by)
	return c.refuse(id, err)
}

// trims is behind the name of an amender that trims the run: what is posted it may have read
// before.
const trims = " (trim)"

// trimmed trims a run that nobody is at work on, and returns where it stands then, or 0 if there
// was nothing to drop.
func (c *core) trimmed(ctx context.Context, id string, keep Retention, by string) (uint64, error) {
	if err := c.stillRunning(id); err != nil {
		return 0, err
	}
	lease, asked, err := c.acquire(ctx, id, c.trimmer)
	if err != nil {
		return 0, err
	}
	held, had := c.moment(ctx, lease, asked)
	defer had.giveBack()
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		return 0, err
	}
	t, bases, err := c.trimming(held, &info, keep)
	if err == nil && t.First > 0 {
		err = had.hold.fenced()
	}
	if err != nil || t.First == 0 {
		return 0, had.why(ctx, err)
	}
	t.Author = by
	m := c.kept.take(id, info.Head)
	now, err := c.store.Trim(ctx, lease, info.Head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: encode(t)}, bases...)
	had.hold.refused(err)
	c.hub.grown(id)
	if err == nil && m != nil { // the entry says nothing that changes it
		c.keep(id, now, m, m.read)
	}
	return now.Seq, err
}

// trimming says what is dropped, and makes the machines that take its place. If nothing is, First
// is 0.
func (c *core) trimming(ctx context.Context, info *checkpoint.Info, keep Retention) (t checkpoint.Trimming, bases [][]byte, err error) {
	cut, err := c.cut(ctx, info, keep)
	if err != nil || cut <= max(info.First, 1) {
		return t, nil, err
	}
	// Nobody can verify afterwards what is dropped.
	for _, err := range c.store.Read(checkpoint.WithDigests(ctx), info.Run, 0, cut) {
		if err != nil {
			return t, nil, err
		}
	}
	m, _, err := c.load(ctx, info.Run, cut-1)
	if err != nil {
		return t, nil, err
	}
	z := m.frozen()
	if z.Reached, err = c.reached(ctx, info, m, cut-1); err != nil {
		return t, nil, err
	}
	base, err := c.baseOf(ctx, info.Run, cut-1, z)
	if err != nil {
		return t, nil, err
	}
	t = checkpoint.Trimming{First: cut, Base: checkpoint.BaseDigest(base)}
	bases = [][]byte{base}
	given := map[string]bool{t.Base: true}
	if !keep.Tagged {
		return t, bases, nil
	}
	tags, err := c.tags(ctx, info.Run)
	if err != nil {
		return t, nil, err
	}
	seqs := slices.Compact(slices.Sorted(maps.Values(tags)))
	named, err := c.named(ctx, info, seqs, cut-1)
	if err != nil {
		return t, nil, err
	}
	for _, seq := range seqs {
		if seq >= cut {
			break
		}
		i := slices.IndexFunc(info.Pins, func(p checkpoint.Pin) bool { return p.Seq == seq })
		if i >= 0 {
			t.Pins = append(t.Pins, info.Pins[i])
			continue
		}
		if seq < info.First { // somebody has trimmed it who did not keep it: of the last one the machine alone is there
			continue
		}
		m, _, err := c.load(ctx, info.Run, seq)
		if err != nil {
			return t, nil, err
		}
		z := m.frozen()
		z.Kept = named[seq]
		base, err := c.baseOf(ctx, info.Run, seq, z)
		if err != nil {
			return t, nil, err
		}
		p := checkpoint.Pin{Seq: seq, Base: checkpoint.BaseDigest(base)}
		if !given[p.Base] {
			given[p.Base] = true
			bases = append(bases, base)
		}
		t.Pins = append(t.Pins, p)
	}
	return t, bases, nil
}

// baseOf encodes the machine of a run at an entry, to take the place of all before it. What can't
// be read again would be found when that is gone, so it is read once before.
func (c *core) baseOf(ctx context.Context, id string, at uint64, z *frozenMachine) ([]byte, error) {
	base := encode(z)
	z, err := parseMachine(base)
	if err == nil {
		err = c.thaw(ctx, newMachine(c.plan), id, at, z)
	}
	if err != nil {
		return nil, fmt.Errorf("dispatcher: nothing was dropped, since what would take its place can't be read: %w", err)
	}
	return base, nil
}

// cut finds the oldest checkpoint that stays, and all behind it: 0 if there is none.
func (c *core) cut(ctx context.Context, info *checkpoint.Info, keep Retention) (uint64, error) {
	cut, voids, err := c.cutBy(ctx, &hindsight{info: *info}, keep)
	if err != nil || !voids {
		return cut, err
	}
	h, err := c.hindsight(ctx, info.Run)
	if err != nil {
		return 0, err
	}
	cut, _, err = c.cutBy(ctx, h, keep)
	return cut, err
}

// cutBy is cut for a hindsight that may know nothing of what was voided: then voids reports whether
// some of the newest may be.
func (c *core) cutBy(ctx context.Context, h *hindsight, keep Retention) (cut uint64, voids bool, err error) {
	type newest struct {
		seq   uint64
		voids int // before
	}
	var last []newest // of which Last stay
	var young uint64  // the oldest that is not too old
	oldest := c.opts.Now().Add(-keep.Age)
	r := reading{c: c, of: h}
	for p, err := range r.past(ctx) {
		if err != nil {
			return 0, false, err
		}
		if p.Cause != CauseSuperstep && p.Cause != CauseOpened || p.pinned || p.Abandoned && !h.abandoned(p.Seq) {
			continue
		}
		if last = append(last, newest{p.Seq, r.told.voids}); len(last) > max(keep.Last, 1) {
			last = last[1:]
		}
		if keep.Age > 0 && young == 0 && !p.At.Before(oldest) {
			young = p.Seq
		}
	}
	if len(last) == 0 {
		return 0, false, nil
	}
	if cut = last[0].seq; young > 0 {
		cut = min(young, cut)
	}
	return cut, last[0].voids != r.told.voids, nil
}

const doingTrim = "trimming the run in the store"

// retain trims a run that has come to rest, as Options.Retention says, and tells those who are told
// of the rest where it stands then. If it does not work that is a warning: the run is none the
// worse for it. It returns within the grace period once ctx is done, whatever the store does.
func (c *core) retain(ctx context.Context, id string, rep *report, rest error) {
	if c.opts.Retention == (Retention{}) || ctx.Err() != nil {
		return
	}
	var seq uint64
	err := errGoexit // unless it returns
	ended, s := make(chan struct{}), new(strays)
	s.names.Store(&[]string{doingTrim})
	go func() { // retain waits for it, or abandons it
		defer close(ended)
		defer c.cameBack(id, s)
		seq, err = c.trimmed(ctx, id, c.opts.Retention, "")
	}()
	if !c.endsInTime(ctx, ended) {
		c.strayed(id, s)
		if !hasEnded(ended) {
			rep.Abandoned = append(rep.Abandoned, doingTrim)
			rep.Warnings = append(rep.Warnings, "the past was not trimmed within the grace period")
			return
		}
	}
	switch {
	case err != nil && !busy(err):
		rep.Warnings = append(rep.Warnings, fmt.Sprintf("the past was not trimmed: %s", plain(err)))
	case err == nil && seq == rep.Cursor.Seq+1: // else something else was said meanwhile, of which they are not told
		rep.Cursor.Seq = seq
		if e := (*Rest)(nil); errors.As(rest, &e) {
			e.Cursor.Seq = seq
		}
	}
}

// endsInTime waits for a goroutine of a call, and reports whether it has ended before the grace
// period of ctx is over.
func (c *core) endsInTime(ctx context.Context, ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-ctx.Done():
	}
	grace := time.NewTimer(c.opts.Grace)
	defer grace.Stop()
	select {
	case <-ended:
		return true
	case <-grace.C:
		return hasEnded(ended) // of two that are ready select takes any
	}
}

// behind begins a replay of what is left of a trimmed run: with the machine that its past led to,
// or, of a checkpoint that was kept for its name, with that one.
func (c *core) behind(ctx context.Context, m *machine, info *checkpoint.Info, upTo uint64) (uint64, error) {
	digest, at := info.Base, info.First-1
	if upTo < at {
		i := slices.IndexFunc(info.Pins, func(p checkpoint.Pin) bool { return p.Seq == upTo })
		if i < 0 {
			return 0, &checkpoint.TrimmedError{Run: info.Run, First: info.First}
		}
		digest, at = info.Pins[i].Base, upTo
	}
	z, err := c.base(ctx, info.Run, digest)
	if err != nil {
		return 0, err
	}
	return at, c.thaw(ctx, m, info.Run, at, z)
}
