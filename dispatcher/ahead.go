package dispatcher

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A run with Options.Lag goes on while what it has done is being appended, as long as no more
// supersteps have ended than it may be ahead. What it hands over are the entries of visits that are
// done, of supersteps that have ended and of frames that were entered; with anything else it waits
// for the disk, as without Lag: so whoever is told that a run waits, rests or has ended may rely on
// it, and an effect begins behind all that came before it.
//
// Its log is the same as without Lag, and told when it is durable. If an append fails the machine
// is ahead of the truth, and nobody goes on with it: the next call reads the log.

// A batch is what was handed over at once.
type batch struct {
	entries []checkpoint.Entry
	size    int
	steps   int // supersteps that end with it
	events  []Event
	emitted []Event

	// Guarded by backlog.mu.
	last     uint64 // number of its last entry; 0 if it is not durable
	appended *Event // of its append, if it is the first one in that and somebody looks
}

// A backlog is what was handed over and is not being appended yet.
type backlog struct {
	mu      sync.Mutex // held for moments, never during a call of the store
	batches []*batch
	working bool // a goroutine is to append it
}

// take takes all of it. If there is nothing, who asks for work has ended.
func (b *backlog) take(works bool) []*batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.batches
	b.batches = nil
	b.working = b.working && !(works && len(all) == 0)
	return all
}

// commit makes the facts durable, or hands them over if the run may go on ahead of the disk. It
// reports whether the caller still owns the run.
func (r *run) commit(h *tenure, resting bool) bool {
	if r.lags() {
		return true
	}
	if r.c.opts.Lag == 0 || r.c.store == nil {
		return r.flush(h)
	}
	if !r.catchUp(h) {
		return false
	}
	if resting || !r.mayBeAhead() {
		return r.flush(h)
	}
	if len(r.facts) == 0 {
		return len(r.ahead) > 0 || r.flush(h)
	}
	b := r.batch()
	for r.steps+b.steps > r.c.opts.Lag || r.unsaved > landingBytes {
		if !h.leave(inCall, doingAppend) {
			return false
		}
		<-r.journal.grown
		if !h.back(inCall) || !r.catchUp(h) {
			return false
		}
	}
	r.handOver(b)
	return true
}

// mayBeAhead reports whether the facts are such as the run need not wait for.
func (r *run) mayBeAhead() bool {
	if r.m.status == checkpoint.StatusCompleted || r.halting || r.snapshotDue() {
		return false
	}
	steps := 0
	for i := range r.facts {
		switch x := &r.facts[i]; {
		case x.Post != "":
			return false
		case x.Kind == checkpoint.Superstep:
			steps++
		case x.Kind != checkpoint.Done && x.Kind != checkpoint.Entered && x.Kind != checkpoint.Noted:
			return false
		}
	}
	return steps <= r.c.opts.Lag
}

// batch makes one of the facts.
func (r *run) batch() *batch {
	entries, size := r.entries()
	b := &batch{entries: entries, size: size}
	r.lines, r.bytes = nil, nil // they are the batch's now
	for i := range entries {
		if entries[i].Kind == checkpoint.Superstep {
			b.steps++
		}
	}
	if r.c.opts.Observe != nil {
		r.makeEvents()
		b.events, r.events = r.events, nil
		b.emitted, r.emitted = r.emitted, nil
	}
	r.forgetFacts()
	r.lag = lag{unit: r.lag.unit}
	return b
}

// handOver has b appended behind what was handed over before.
func (r *run) handOver(b *batch) {
	r.ahead = append(r.ahead, b)
	r.steps += b.steps
	r.unsaved += b.size
	q := &r.journal.backlog
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches = append(q.batches, b)
	if q.working {
		return
	}
	q.working = true
	r.strays.count.Add(1)
	before, ended := r.appending, make(chan struct{})
	r.appending = ended
	go func() { // finish waits for it, or it is abandoned
		defer close(ended)
		defer r.strays.returned() // before the call learns of it, and counts
		if before != nil {
			<-before // it has found nothing more, and is about to end
		}
		for r.appendBehind() {
		}
	}()
}

// appendBehind appends what was handed over. It reports whether there may be more.
func (r *run) appendBehind() bool {
	j := &r.journal
	j.mutex <- struct{}{}
	defer func() { <-j.mutex }()
	batches := j.backlog.take(true)
	if len(batches) == 0 {
		return false
	}
	_, _ = r.extend(batches, nil, nil, 0, r.about.Load().turn) // the owner finds the error in the journal
	return true
}

// extend appends what was handed over, and lines of some size behind it, in one append if that does
// not become large: a store may refuse together what it takes one by one. Of a failure the last
// append tells, which is none then.
func (r *run) extend(batches []*batch, effects []*effectEntry, lines []checkpoint.Entry, size, turn int) (*Event, error) {
	for len(batches) > 0 {
		n, bytes := 1, batches[0].size
		for n < len(batches) && bytes+batches[n].size <= landingBytes {
			bytes += batches[n].size
			n++
		}
		if n == len(batches) && (len(lines) == 0 || bytes+size <= landingBytes) {
			break
		}
		_, _ = r.extendBy(batches[:n], nil, nil, 0, r.about.Load().turn)
		batches = batches[n:]
	}
	return r.extendBy(batches, effects, lines, size, turn)
}

// extendBy appends what was handed over, and lines of some size behind it: those of effects, or the
// owner's, which may begin a turn. It returns the event of the append that the owner is to tell
// with the lines: nil if nobody looks, or if it is told with a batch or an effect. What has become
// durable the owner learns at one moment, and in the order of the log. The caller holds the mutex
// of the journal.
func (r *run) extendBy(batches []*batch, effects []*effectEntry, lines []checkpoint.Entry, size, turn int) (*Event, error) {
	j := &r.journal
	all := lines
	if len(batches) > 0 {
		all = nil
		for _, b := range batches {
			all = append(all, b.entries...)
			size += b.size
		}
		all = append(all, lines...)
		defer j.tellOwner()
	}
	var began time.Time
	if r.c.opts.Observe != nil || len(r.listeners()) > 0 {
		began = time.Now()
	}
	head, err := checkpoint.Head{}, j.err
	if err == nil {
		err = j.hold.fenced()
	}
	if err == nil {
		head, err = r.c.store.Append(r.stored, j.lease, j.tip, all)
		j.hold.refused(err)
	}
	for _, e := range effects {
		e.err, e.settled = err, true
	}
	if err != nil {
		j.failed(err)
		r.cancel(err) // nothing that the run does from here on can become durable
		return nil, err
	}
	seq := j.tip.Seq
	j.tip = head
	r.durable.Store(head.Seq)
	told := r.grew(len(all), size, turn, began)
	if len(batches)+len(effects) == 0 {
		return told, nil
	}
	j.backlog.mu.Lock()
	defer j.backlog.mu.Unlock()
	for i, b := range batches {
		if seq += uint64(len(b.entries)); i == 0 {
			b.appended, told = told, nil
		}
		b.last = seq
	}
	for i, e := range effects {
		e.head = head
		for k := range e.lines {
			seq++
			e.lines[k].Seq = seq
		}
		if i == 0 {
			e.appended, told = told, nil
		}
	}
	if len(effects) > 0 {
		j.news = append(j.news, effects...)
		j.fresh.Store(true)
	}
	return told, nil
}

// failed has the owner find that an append has failed.
func (j *journal) failed(err error) {
	j.backlog.mu.Lock()
	defer j.backlog.mu.Unlock()
	j.err = err
	j.fresh.Store(true)
}

// appendLost tells whoever waits for an append that does not return to it.
func (r *run) appendLost(effects []*effectEntry) {
	for _, e := range effects {
		e.err, e.settled = checkpoint.ErrCommitUnknown, true
	}
	r.journal.failed(checkpoint.ErrCommitUnknown)
	r.cancel(checkpoint.ErrCommitUnknown)
}

// tellOwner wakes an owner who waits for what was handed over.
func (j *journal) tellOwner() {
	select {
	case j.grown <- struct{}{}:
	default:
	}
}

// grew tells readers that an append has made the log grow, and returns the event of it: nil if
// nobody looks. The observer is told by the owner.
func (r *run) grew(entries, size, turn int, began time.Time) *Event {
	readers := r.listeners()
	if r.c.opts.Observe == nil && len(readers) == 0 {
		return nil
	}
	e := r.about.Load().event(Appended, r.durable.Load())
	e.Live, e.Turn, e.Entries, e.Bytes, e.At = true, turn, entries, size, time.Now()
	if !began.IsZero() { // else the first reader has come meanwhile
		e.Duration = e.At.Sub(began)
	}
	offer(readers, &e)
	r.c.hub.grown(r.id)
	return &e
}

// catchUp takes notice of what has become durable of what was handed over, and of what nodes have
// appended between, and tells the observer. It reports whether the caller still owns the run.
func (r *run) catchUp(h *tenure) bool {
	if len(r.ahead) == 0 && !r.journal.fresh.Load() {
		return true
	}
	news, n, err := r.becameDurable()
	if !r.caughtUp(h, news, n) {
		return false
	}
	if err != nil {
		r.breakOff(h, err)
		return false
	}
	return true
}

// tellDurable tells the machine and the observer of what has become durable of a call that breaks
// off. It reports whether the caller still owns the run.
func (r *run) tellDurable(h *tenure) bool {
	news, n, _ := r.becameDurable()
	return r.caughtUp(h, news, n)
}

// becameDurable returns the entries of nodes that the machine was not told of, and how many of the
// batches that were handed over are durable. Both are a prefix of what is on its way.
func (r *run) becameDurable() (news []*effectEntry, batches int, err error) {
	j := &r.journal
	if len(r.ahead) == 0 && !j.fresh.Load() {
		return nil, 0, nil
	}
	j.backlog.mu.Lock()
	defer j.backlog.mu.Unlock()
	if j.err == nil {
		j.fresh.Store(false)
	}
	news, j.news = j.news, nil
	for batches < len(r.ahead) && r.ahead[batches].last > 0 {
		batches++
	}
	return news, batches, j.err
}

// caughtUp tells the machine and the observer of entries of nodes and of the first n batches.
func (r *run) caughtUp(h *tenure, news []*effectEntry, n int) bool {
	r.hear(news)
	for _, b := range r.ahead[:n] {
		r.steps -= b.steps
		r.unsaved -= b.size
		r.journal.since += b.size
		r.journal.head = checkpoint.Head{Seq: b.last}
	}
	if k := len(news); k > 0 && news[k-1].head.Seq > r.journal.head.Seq { // what it was told of may be all that there is to tell
		r.journal.head = news[k-1].head
	}
	told := r.c.opts.Observe == nil || n+len(r.heard) == 0 || r.tellBatches(h, r.ahead[:n])
	r.ahead = slices.Delete(r.ahead, 0, n)
	if !told {
		return false
	}
	r.forgetHeard()
	return true
}

// tellBatches tells the observer of batches, and of what nodes have appended, in the order of the
// log.
func (r *run) tellBatches(h *tenure, done []*batch) bool {
	was := r.told
	for _, b := range done {
		r.tells(b.events)
	}
	r.telling = true
	if !h.leave(inCall, doingObserve) {
		r.told = was
		return false
	}
	for _, b := range done {
		first := b.last + 1 - uint64(len(b.entries))
		r.tellHeard(first)
		for i := range b.emitted {
			r.c.observe(b.emitted[i])
		}
		if b.appended != nil {
			r.c.observe(*b.appended)
		}
		for i := range b.events {
			b.events[i].Seq = first + uint64(i)
			r.c.observe(b.events[i])
		}
	}
	r.tellHeard(math.MaxUint64)
	if !h.back(inCall) {
		return false
	}
	r.telling = false
	return true
}
