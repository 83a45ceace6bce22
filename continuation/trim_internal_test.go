package continuation

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// What a later reading says of a wait: what it has of it; or, of a log that was trimmed meanwhile,
// that it has gone on, unless its visit waits beside it since before, or the run has ended.
func TestWaitSinceALaterReading(t *testing.T) {
	asked := func(attempt int, ids ...string) (all []*ask) {
		for _, id := range ids {
			all = append(all, &ask{id: id, q: &question{Attempt: attempt}})
		}
		return all
	}
	before := &history{info: checkpoint.Info{First: 1}}
	was := func(path, name string, ids ...string) *wait {
		w := &wait{h: before, id: ids[0], path: path, name: name, asks: asked(1, ids...)}
		before.waits = append(before.waits, w)
		return w
	}
	w := was("visit", "it", "1", "2")
	was("visit", "beside", "3")
	was("other", "beside", "4")

	answered := asked(1, "3")
	answered[0].ended = true
	for name, c := range map[string]struct {
		first   uint64
		open    *wait // in the later reading
		end     *end
		found   bool // it is open
		dropped bool
		closed  Reason
	}{
		"all of it is there":             {first: 1, open: &wait{path: "visit", name: "it", asks: asked(1, "1", "2")}, found: true},
		"its first ask was trimmed":      {first: 9, open: &wait{path: "visit", name: "it", asks: asked(1, "2")}, found: true},
		"only its id is left":            {first: 9, open: &wait{id: "1", path: "visit", name: "it", asks: asked(1, "7")}, found: true},
		"it is another run":              {first: 1},
		"nothing is left":                {first: 9, dropped: true, closed: Completed},
		"the run has ended":              {first: 9, end: &end{kind: checkpoint.Failed}, dropped: true},
		"it was asked by a next attempt": {first: 9, open: &wait{path: "visit", name: "it", asks: asked(2, "7")}, found: true},
		"another wait has its name":      {first: 9, open: &wait{path: "other", name: "it", asks: asked(2, "7")}, dropped: true, closed: Completed},
		"its visit waits beside it":      {first: 9, open: &wait{path: "visit", name: "beside", asks: asked(1, "3")}, dropped: true},
		"its visit has waited beside it": {first: 9, open: &wait{path: "visit", name: "beside", asks: answered}, dropped: true, closed: Completed},
		"its visit waits anew":           {first: 9, open: &wait{path: "visit", name: "next", asks: asked(1, "7")}, dropped: true, closed: Completed},
		"another visit waits as before":  {first: 9, open: &wait{path: "other", name: "beside", asks: asked(1, "4")}, dropped: true, closed: Completed},
	} {
		t.Run(name, func(t *testing.T) {
			later := &history{info: checkpoint.Info{First: c.first}, end: c.end}
			if c.open != nil {
				c.open.h, later.waits, later.open = later, []*wait{c.open}, []*wait{c.open}
			}
			now, dropped := w.since(later)
			switch {
			case dropped != c.dropped:
				t.Errorf("dropped: %t, want %t", dropped, c.dropped)
			case c.found && now != c.open, !c.found && (now != nil) != c.dropped:
				t.Errorf("it is %+v, want %+v", now, c.open)
			case dropped && (now.closed != c.closed || now.h != later || now.id != w.id):
				t.Errorf("it is closed as %q, want %q", now.closed, c.closed)
			}
		})
	}
	if w.h != before || w.closed != "" {
		t.Errorf("the wait itself has changed: %+v", w)
	}
}
