package dispatcher

import (
	"context"
	"reflect"
	"time"
	"unsafe"

	"github.com/pawlgo/pawl/state"
)

// WithNow returns o with a clock for the instants that are stored, for tests that let the
// wall clock jump.
func WithNow(o Options, now func() time.Time) Options {
	o.Now = now
	return o
}

// MachineAt returns, as JSON, the machine of a run as it stands after an entry.
func MachineAt[S any](ctx context.Context, d *Dispatcher[S], run string, upTo uint64) ([]byte, error) {
	m, _, err := d.core.load(ctx, run, upTo)
	if err != nil {
		return nil, err
	}
	return m.encode(), nil
}

// SharedIsWritten names what many runs share, and one has written to; "" if there is none.
func SharedIsWritten() string {
	for name, p := range map[string]any{
		"noLog": &noLog, "givenNothing": &givenNothing, "didNothing": &didNothing, "plainFact": &plainFact, "noDelta": &noDelta,
	} {
		if !reflect.ValueOf(p).Elem().IsZero() {
			return name
		}
	}
	for how := range nothing {
		if !reflect.DeepEqual(nothing[how], wishes{how: mode(how)}) {
			return "nothing"
		}
	}
	return ""
}

// LandingVisits is how many visits may share an append.
const LandingVisits = landingVisits

// ItemBytes is what an item that has not begun takes in memory: its visit, its place in the
// superstep, and room for what it will write.
const ItemBytes = unsafe.Sizeof(task{}) + unsafe.Sizeof(int32(0)) + unsafe.Sizeof(state.Delta{})

// Eager returns o with a snapshot behind every append, and as many appends as there can be.
func Eager(o Options) Options {
	o.eager = true
	return o
}

// Replayed is what a snapshot of a run at an entry would hold if it were made from a replay
// of the log from its start.
func Replayed[S any](ctx context.Context, d *Dispatcher[S], run string, upTo uint64) ([]byte, error) {
	m := newMachine(d.core.plan)
	m.replaying = true
	for e, err := range d.core.store.Read(ctx, run, 1, upTo) {
		if err != nil {
			return nil, err
		}
		if err := d.core.replay(ctx, m, run, &e, nil, nil); err != nil {
			return nil, err
		}
	}
	return m.encode(), nil
}

// EachReplayed calls f with what a snapshot of a run would hold after each entry of its log, if it
// were made from a replay of the log from its start.
func EachReplayed[S any](ctx context.Context, d *Dispatcher[S], run string, f func(seq uint64, machine func() []byte)) error {
	c, m := d.core, newMachine(d.core.plan)
	m.replaying = true
	info, err := c.store.Stat(ctx, run)
	if err == nil && info.First > 1 {
		_, err = c.behind(ctx, m, &info, info.First-1)
	}
	if err != nil {
		return err
	}
	for e, err := range c.store.Read(ctx, run, info.First, 0) {
		if err == nil {
			err = c.replay(ctx, m, run, &e, nil, nil)
		}
		if err != nil {
			return err
		}
		f(e.Seq, m.encode)
	}
	return nil
}

// Behind is the past of a run behind an entry, told by who begins there with the machine that
// stands there, and has read nothing of what is before.
func Behind[S any](ctx context.Context, d *Dispatcher[S], run string, seq uint64) ([]Past, error) {
	h, err := d.core.hindsight(ctx, run)
	if err != nil {
		return nil, err
	}
	m, _, err := d.core.load(ctx, run, seq)
	if err != nil {
		return nil, err
	}
	r := reading{c: d.core, of: h, after: seq, told: newChronicle(run)}
	r.told.seq = seq
	r.told.stand(m)
	var all []Past
	r.cancelled = func(k CancelInfo) {
		if n := len(all); n > 0 {
			all[n-1].Cancels = append(all[n-1].Cancels, k)
		}
	}
	for p, err := range r.past(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Kept counts the machines that a dispatcher keeps.
func Kept[S any](d *Dispatcher[S]) int { return len(d.core.kept.runs) }

// KeptBytes is what the machines that are kept count as.
func KeptBytes[S any](d *Dispatcher[S]) int { return d.core.kept.bytes }

// Listeners counts who reads along with a run.
func Listeners[S any](d *Dispatcher[S], run string) int { return len(d.core.hub.of(run)) }
