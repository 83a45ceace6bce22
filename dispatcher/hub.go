package dispatcher

import (
	"sync/atomic"
	"time"
)

// A telling is an event on its way to a reader, with the state that belongs to it if the
// reader wants that: a *S.
type telling struct {
	Event
	state any
}

// size is about what it takes to keep the telling.
func (t *telling) size() int64 { return int64(len(t.Value) + len(t.Delta)) }

// What is kept for a reader of live notices that does not take them.
const (
	noticesMost  = 256
	noticesBytes = 4 << 20
)

// A listener takes live notices for one reader. Whoever offers one never waits: a reader
// that is too slow misses some, and is told how many.
//
// Entries of the log are never sent to it, only the word that there are more of them: so
// there is nothing of the log that a slow reader could miss.
type listener struct {
	listen  Listen
	notices chan *telling
	bytes   atomic.Int64 // kept in notices
	dropped atomic.Int64
	grown   chan struct{} // has room for one: the log has grown
	retains bool          // the call has left it to its stream to trim the run; read once the call has ended

	graceEnd time.Time // of the stream, whose context was done before it has made its call; else zero
}

func newListener(l Listen) *listener {
	return &listener{listen: l, notices: make(chan *telling, noticesMost), grown: make(chan struct{}, 1)}
}

// option lets the call of a stream know its listener.
func (l *listener) option() RunOption {
	return RunOption{"Listen", func(w *wishes) error {
		w.ears, w.graceEnd = l, l.graceEnd
		return nil
	}}
}

// offer gives t, which nobody changes any more, to the listener.
func (l *listener) offer(t *telling) {
	if !l.listen.wants(t.Kind) {
		return
	}
	size := t.size()
	if kept := l.bytes.Add(size); kept <= noticesBytes || kept == size {
		select {
		case l.notices <- t:
			return
		default:
		}
	}
	l.bytes.Add(-size)
	l.dropped.Add(1)
}

// taken counts a notice that the reader has taken.
func (l *listener) taken(t *telling) *telling {
	l.bytes.Add(-t.size())
	return t
}

// A hub knows who reads along with which run of a dispatcher. Nobody ever waits in it.
type hub struct {
	count atomic.Int64 // of listeners: most of the time there is none
	runs  perRun[*listener]
}

func (h *hub) add(run string, l *listener) {
	h.count.Add(1)
	h.runs.add(run, l)
}

func (h *hub) remove(run string, l *listener) {
	h.count.Add(-1)
	h.runs.remove(run, l)
}

// of returns who reads along with a run. The list must not be changed.
func (h *hub) of(run string) []*listener {
	if h.count.Load() == 0 {
		return nil
	}
	return h.runs.of(run)
}

// grown tells who reads along that the log of a run has grown.
func (h *hub) grown(run string) {
	for _, l := range h.of(run) {
		select {
		case l.grown <- struct{}{}:
		default:
		}
	}
}

// listeners returns who reads along with the run: without a log only who has begun it.
func (o *host) listeners() []*listener {
	if o.c.store == nil {
		return o.audience
	}
	return o.c.hub.of(o.id)
}

// last is the number of the run's last durable entry, 0 without a log.
func (o *host) last() uint64 {
	if o.log == nil {
		return 0
	}
	return o.log.durable.Load()
}

func offer(to []*listener, e *Event) {
	if len(to) == 0 {
		return
	}
	t := &telling{Event: *e}
	for _, l := range to {
		l.offer(t)
	}
}
