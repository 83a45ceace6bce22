package dispatcher

import "context"

// Drain lets a run end gently. From the moment at which now is closed nothing of the run begins: no
// visit, no further attempt. What is running is not told and may finish, and what it did is
// durable. Then the run is left Running without an owner, for recovery, and the call returns a
// [*Rest] with ErrDrain as its cause. If nothing more could have run, the run comes to rest by
// itself instead.
//
// The context still ends what takes too long; if its cause is ErrDrain it leaves the run Running as
// well. A run that a call opens when now is already closed is left Pending, which recovery takes
// too; a run that was Pending before, and that the call goes on with, is left Running. Now can't be
// nil, since nobody could close it.
func Drain(now <-chan struct{}) RunOption {
	return RunOption{"Drain", func(w *wishes) error {
		if now == nil {
			return &OptionError{"Drain", "has a nil channel, which nobody can close: make one, or leave the option out"}
		}
		w.drain = now
		return nil
	}}
}

// draining reports whether the run is to end gently.
func (r *run) draining() bool {
	if r.drain == nil {
		return false
	}
	select {
	case <-r.drain:
		return true
	default:
		return false
	}
}

// cause is why nothing new begins.
func (r *run) cause() error {
	if cause := context.Cause(r.ctx); cause != nil {
		return sound(cause)
	}
	if cause := context.Cause(r.parent); cause != nil || !r.draining() {
		return sound(cause)
	}
	return ErrDrain
}

// atEnd reports whether nothing could run although nothing has told the run to stop but that it is
// to drain: so it rests as it would have. A question whose time is over is something to run behind.
func (r *run) atEnd() bool {
	return !r.ctxDone() && r.m.root.begun() && len(r.m.ready) == 0 && r.due.none() && !r.unasked && len(r.overdue()) == 0
}
