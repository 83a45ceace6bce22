package dispatcher

import (
	"encoding/json"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// An effectEntry is an entry, or two in one append, that a node appends while it runs. The machine,
// which belongs to the owner of the run, is told of it when the owner next appends: until then
// nothing in it depends on the entry, since the visit has not ended.
type effectEntry struct {
	v     *visit
	lines []checkpoint.Entry
	size  int

	next     *effectEntry // staged before it
	settled  bool         // the rest is set
	err      error
	head     checkpoint.Head // of the log behind it
	appended *Event          // of the append that it is the first entry of; nil if nobody looks
}

// record appends an entry of an effect of the visit, and returns when it is durable.
// Entries of effects that come together share an append.
func (v *visit) record(kind checkpoint.Kind, key string, data json.RawMessage) error {
	return v.recordAll(v.effectLine(kind, key, data))
}

func (v *visit) effectLine(kind checkpoint.Kind, key string, data json.RawMessage) checkpoint.Entry {
	return checkpoint.Entry{
		Kind: kind, Path: v.path(), Step: int(v.step), Attempt: v.Attempt(), ID: key, Data: data,
	}
}

// recordAll is record for several entries, of which all become durable or none does.
func (v *visit) recordAll(lines ...checkpoint.Entry) error {
	e := &effectEntry{v: v, lines: lines}
	for i := range lines {
		e.size += len(lines[i].Data) + len(v.path()) + entryOverhead
	}
	r := &v.host.log.run
	j := &r.journal
	for {
		e.next = j.staged.Load()
		if j.staged.CompareAndSwap(e.next, e) {
			break
		}
	}
	j.mutex <- struct{}{}
	defer func() { <-j.mutex }()
	j.line()
	for !e.settled { // else somebody else has appended it meanwhile
		r.appendEffects()
	}
	return e.err
}

// line moves what was staged to the queue, in the order in which it came.
func (j *journal) line() {
	end := len(j.queue)
	for e := j.staged.Swap(nil); e != nil; e = e.next {
		j.queue = append(j.queue, e)
	}
	for a, b := end, len(j.queue)-1; a < b; a, b = a+1, b-1 {
		j.queue[a], j.queue[b] = j.queue[b], j.queue[a]
	}
}

// appendEffects appends the first entries of the queue. Those of a visit that is over are
// refused: what the owner makes of the visit may be durable already.
func (r *run) appendEffects() {
	j := &r.journal
	batches := j.backlog.take(false) // first: what says that a visit has ended which is not over below comes behind
	var group []*effectEntry
	var lines []checkpoint.Entry
	size, taken := 0, 0
	for _, e := range j.queue {
		if size > landingBytes {
			break
		}
		taken++
		switch {
		case e.v.over():
			e.err, e.settled = dag.ErrVisitOver, true
		case j.err != nil:
			e.err, e.settled = j.err, true
		default:
			if lines == nil { // mostly it is alone
				lines = slices.Clip(e.lines)
			} else {
				lines = append(lines, e.lines...)
			}
			group, size = append(group, e), size+e.size
		}
	}
	j.queue = append(j.queue[:0], j.queue[taken:]...)
	if len(group)+len(batches) == 0 {
		return
	}
	returned := false
	defer func() {
		if !returned { // the store has panicked, or called Goexit
			r.appendLost(group)
		}
	}()
	_, _ = r.extend(batches, group, lines, size, r.about.Load().turn) // the entries have the error
	returned = true
}

// append appends the owner's entries, of some size, behind all that was handed over and those of
// effects that are durable already. It returns the latter, of which the machine was not told.
func (r *run) append(entries []checkpoint.Entry, size int) (news []*effectEntry, appended *Event, head checkpoint.Head, err error) {
	j := &r.journal
	j.mutex <- struct{}{}
	defer func() { <-j.mutex }()
	var batches []*batch
	if r.c.opts.Lag > 0 {
		batches = j.backlog.take(false)
	}
	news, _, err = r.becameDurable()
	if err != nil || len(entries)+len(batches) == 0 {
		return news, nil, j.tip, err
	}
	appended, err = r.extend(batches, nil, entries, size, r.m.turn)
	return news, appended, j.tip, err
}

// hear tells the machine of entries that nodes have appended. In the log they stand before
// the end of the visit and of all around it, of which the machine may have been told first:
// when the superstep of the run's own frame has ended it keeps no effects of it.
func (r *run) hear(news []*effectEntry) {
	for _, e := range news {
		r.journal.since += e.size
		if int(e.v.root) != r.m.root.step || len(r.m.root.open) == 0 {
			continue
		}
		for _, line := range e.lines {
			x := said(line, e.v.t)
			r.mustFit(&x)
		}
	}
	r.heard = append(r.heard, news...)
}

// tellHeard tells the observer of those whose numbers are smaller.
func (r *run) tellHeard(before uint64) {
	n := 0
	for ; n < len(r.heard) && r.heard[n].lines[0].Seq < before; n++ {
		e := r.heard[n]
		if e.appended != nil {
			r.c.observe(*e.appended)
		}
		for i := range e.lines {
			r.c.observe(r.about.Load().tell(&e.lines[i]))
		}
	}
	if n > 0 { // else nothing is written: runs without a store share one logged
		r.heard = slices.Delete(r.heard, 0, n)
	}
}

// forgetHeard makes room for what nodes append next.
func (r *run) forgetHeard() {
	if len(r.heard) > 0 {
		clear(r.heard)
		r.heard = r.heard[:0]
	}
}
