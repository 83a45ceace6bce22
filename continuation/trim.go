package continuation

import "github.com/pawlgo/pawl/dag"

// since is how the wait stands by a later reading of its run. A trim may have dropped it from the
// log meanwhile, as dispatcher.Options.Retention does behind a call: then nothing asks for it any
// more, and it has gone on with its visit, or ended as the run has. It is nil if the log has never
// told of it: that of another run under its id.
func (w *wait) since(h *history) (now *wait, dropped bool) {
	for _, a := range []*ask{w.asks[0], w.last()} { // a trim may have dropped the first one alone
		if now := (histories{h}).byID(a.id); now != nil {
			return now, false
		}
	}
	if h.info.First <= 1 {
		return nil, false
	}
	reason := Completed
	held := false // something waits beside it since before: its visit has not run again
	for _, x := range h.open {
		switch {
		case x.path != w.path:
		case x.name == w.name && !x.last().same(w.last()):
			if h.info.Turn == w.h.info.Turn { // a further turn asks what it likes
				reason = Superseded
			}
		case !x.pends():
		case x.name == w.name && x.last().q.Attempt > w.last().q.Attempt:
			return x, false // an attempt failed behind its trigger, and it is asked again
		case (histories{w.h}).byID(x.last().id) != nil:
			held = true
		}
	}
	x := *w
	if x.h = h; x.closed == "" && h.end == nil && !held {
		x.close(reason, "", "")
	}
	return &x, true
}

// woken is a wait that its timer has ended, where the log does not tell that any more: nor, so,
// when it did.
func (w *wait) woken() *wait {
	now, a := *w, *w.last()
	for _, of := range a.q.Of {
		if of.Kind == KindTimer {
			a.letter.Trigger = taken{Kind: KindTimer, Key: of.Key, Actor: Actor{Authority: dag.System}}
		}
	}
	a.ended, now.asks = true, []*ask{&a}
	return &now
}
