package dispatcher

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Runs that wait for answers, or for what is said next, are mostly gone on with by the dispatcher
// that has run them. It keeps their machines, a bounded number of them, and reads no log then: only
// whether the head is still the one at which the machine stands. A machine that is kept is as a
// replay of the log up to there would have made it; nothing that is in no log is kept, but what can
// decode an answer.

// What a dispatcher keeps at most: machines, and bytes of their states and visits.
const (
	keptMost  = 256
	keptBytes = 32 << 20
)

// A keep has the machines of a dispatcher's runs that wait, and of completed ones that have had
// several turns or that somebody has amended.
type keep struct {
	mu    sync.Mutex
	runs  map[string]*list.Element
	order list.List // of *kept, the one used last in front
	bytes int
}

type kept struct {
	run   string
	head  checkpoint.Head
	m     machine
	bytes int
}

// take returns the machine of a run whose head is at, if it is there, and forgets it: it is the
// caller's.
func (k *keep) take(run string, at checkpoint.Head) *machine {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.runs[run]
	if e == nil {
		return nil
	}
	found := e.Value.(*kept)
	k.forget(e)
	if found.head != at {
		return nil
	}
	return &found.m
}

func (k *keep) forget(e *list.Element) {
	x := k.order.Remove(e).(*kept)
	delete(k.runs, x.run)
	k.bytes -= x.bytes
}

// put keeps a machine, which nobody else may use any more, unless it is too large or that of a
// later call is there: the lease is given back before.
func (k *keep) put(x *kept) bool {
	if x.bytes > keptBytes/4 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		k.runs = map[string]*list.Element{}
	}
	if e := k.runs[x.run]; e != nil {
		if e.Value.(*kept).head.Seq > x.head.Seq {
			return false
		}
		k.forget(e)
	}
	k.runs[x.run] = k.order.PushFront(x)
	k.bytes += x.bytes
	for len(k.runs) > keptMost || k.bytes > keptBytes {
		k.forget(k.order.Back())
	}
	return true
}

// keep keeps the machine of a run that stands at head and waits or is completed, if it can. A
// replay would have read so many bytes, or fewer if the run was trimmed: then a snapshot may come
// sooner. It reports whether it did. Nobody may go on with m, or read it if it did.
func (c *core) keep(run string, head checkpoint.Head, m *machine, read int) bool {
	rests := m.status == checkpoint.StatusInterrupted || m.status == checkpoint.StatusCompleted
	if !rests || m.plan != c.plan || c.opts.eager || !m.root.forget() {
		return false
	}
	x := m.home
	if x == nil { // m may be part of a call, which is not kept
		x = &kept{run: run, m: *m}
		x.m.home = x
	}
	own := &x.m
	own.queue, own.few, own.asked, own.ready, own.taken = nil, [2]decision{}, 0, nil, nil
	own.replaying, own.vets, own.gates, own.read = true, false, false, read
	x.head, x.bytes = head, own.weight()
	return c.kept.put(x)
}

// forget makes f what a replay would have made it. It reports false if something in it is known to
// the process alone.
func (f *frame) forget() bool {
	if f.items != nil {
		return false
	}
	f.tried, f.began = false, time.Time{}
	for _, i := range f.open {
		t := &f.tasks[i]
		if t.odd != nil && (t.odd.woken || t.odd.revoked != nil) || t.phase == delayed {
			return false
		}
		t.cleared = false
		if t.inner != nil && !t.inner.forget() {
			return false
		}
	}
	return true
}

// weight is about what m takes in memory.
func (m *machine) weight() int {
	const anID = 100 // about what an id takes in a map
	bytes := len(m.told.settings) + anID*(len(m.seen)+len(m.tags)) + m.root.weight()
	if m.shelf != nil {
		m.shelf.each(func(_, _ string, e shelved) { bytes += len(e.Output) })
	}
	for _, of := range m.effects {
		for _, e := range of {
			bytes += len(e.input) + len(e.output)
		}
	}
	return bytes
}

func (f *frame) weight() int {
	bytes := 100*len(f.tasks) + f.view.Size()
	for _, i := range f.open {
		t := &f.tasks[i]
		bytes += f.delta(t).Size() + t.odd.weight()
		if t.inner != nil {
			bytes += t.inner.weight()
		}
	}
	return bytes
}

func (o *odd) weight() (bytes int) {
	if o == nil {
		return 0
	}
	for _, p := range o.asks {
		bytes += len(p.ask.Question) + len(p.ask.Default) + len(p.ask.About) + len(p.ask.Want)
	}
	for _, a := range o.approved {
		bytes += len(a.Question)
	}
	for _, g := range o.grants {
		bytes += len(g.Question)
	}
	for _, a := range o.answers {
		bytes += len(a.Value)
	}
	return bytes
}

// machine is load of the whole log, for who has the run's lease or only looks: the machine is the
// caller's, who may give it back to keep.
func (c *core) machine(ctx context.Context, id string) (*machine, checkpoint.Head, error) {
	info, err := c.store.Stat(ctx, id)
	if err != nil {
		if errors.Is(err, checkpoint.ErrNotFound) {
			c.kept.take(id, checkpoint.Head{}) // of a run that was deleted, which another one may come after
		}
		return nil, checkpoint.Head{}, err
	}
	m := c.kept.take(id, info.Head)
	if m == nil {
		return c.load(ctx, id, 0)
	}
	if m.since = info.Updated; c.opts.Paranoid {
		return m, info.Head, c.distrust(ctx, id, info.Head, m)
	}
	return m, info.Head, nil
}

// distrust compares a machine that was kept with what its log says, unless somebody has appended
// meanwhile: who only looks has no lease.
func (c *core) distrust(ctx context.Context, id string, at checkpoint.Head, m *machine) error {
	read, head, err := c.load(ctx, id, 0)
	if err != nil || head != at {
		return err
	}
	if is, want := m.encode(), read.encode(); !bytes.Equal(is, want) {
		panic(fmt.Sprintf("dispatcher: the machine of run %q that was kept is not what its log says:\n%s\n%s", id, is, want))
	}
	return nil
}
