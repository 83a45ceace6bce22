package dispatcher

import (
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// A desk is where the owner of a run with a log prepares its appends. Neither nodes nor stores keep
// anything of it, so a call whose run has come to rest leaves it to another one.
type desk struct {
	facts  []fact             // where those of the run begin
	lines  []checkpoint.Entry // memory for the next append
	bytes  []byte
	extras [4]extra // of facts
	taken  int      // of extras

	firstFacts [4]fact // where facts and lines begin, unless they have outgrown them
	firstLines [fewLines]checkpoint.Entry
}

var desks = sync.Pool{New: func() any { return new(desk) }}

// What is larger is not left to other calls.
const (
	deskLines = 64 // and facts
	deskBytes = 64 << 10
)

func newDesk() *desk {
	d := desks.Get().(*desk)
	if d.facts == nil {
		d.facts = d.firstFacts[:0]
	}
	if d.lines == nil {
		d.lines = d.firstLines[:0]
	}
	return d
}

// clearDesk leaves the desk to another call. Nobody may use r any more, nor its store what it was
// given.
func (r *run) clearDesk() {
	if r.c.store == nil || r.err != nil {
		return
	}
	d := r.desk
	r.desk, r.facts, d.facts = nil, nil, r.facts
	d.leave()
}

// leave leaves the desk to whoever needs one. Nothing of a fact may be left: see blank. Lists that
// have outgrown where they began have left copies there.
func (d *desk) leave() {
	clear(d.facts[:cap(d.facts)])
	clear(d.lines[:cap(d.lines)])
	clear(d.firstFacts[:])
	clear(d.firstLines[:])
	d.facts, d.lines, d.bytes = small(d.facts, deskLines), small(d.lines, deskLines), small(d.bytes, deskBytes)
	d.clearExtras()
	desks.Put(d)
}

// small is the memory of a list if that has room for no more than most, and else none.
func small[T any](list []T, most int) []T {
	if cap(list) > most {
		return nil
	}
	return list[:0]
}

func (d *desk) clearExtras() {
	clear(d.extras[:d.taken])
	d.taken = 0
}

// said is said for a fact of the run, which is forgotten with the others.
func (r *run) said(e *checkpoint.Entry, t *task) fact {
	d := r.desk
	if d == nil || d.taken == len(d.extras) {
		return saidIn(e, t, nil)
	}
	x := saidIn(e, t, &d.extras[d.taken])
	if x.extra != &plainFact {
		d.taken++
	}
	return x
}

// more is x.more, for a fact of the run.
func (r *run) more(x *fact) *extra {
	if d := r.desk; x.extra == &plainFact && d != nil && d.taken < len(d.extras) {
		x.extra = &d.extras[d.taken]
		d.taken++
	}
	return x.more()
}

// forgetFacts makes room for the next ones.
func (r *run) forgetFacts() {
	clear(r.facts)
	r.facts = r.facts[:0]
	if d := r.desk; d != nil && d.taken > 0 {
		d.clearExtras()
	}
}
