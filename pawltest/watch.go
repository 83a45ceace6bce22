package pawltest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// A watch sees what the bodies of nodes do to the world. Bodies run one at a time, so what
// has changed since the last look was done by the one that runs: outside its effects, or
// inside one of them.
type watch struct {
	see func() any // nil: there is no world

	mu     sync.Mutex
	all    []*execution
	open   *execution // whose body runs, or ran last
	inside int        // effects of it that are under way
	last   string     // the world at the last look
	drafts []draft    // of bodies that have returned, the last ones
	late   []draft    // that were written to later
	broken error      // the world could not be told
}

// An execution is one time that the body of a visit runs.
type execution struct {
	path    string
	node    string
	changed []string // what it did to the world outside its effects
	kept    bool     // what it came to is durable
	asked   bool     // it waits for an answer or an approval, so it runs again
	lost    bool     // its process died before that
}

// A draft was written by a body that has returned. Nobody writes to it any more.
type draft struct {
	path, node string
	state      any
	texts      []string // of its cells
	told       bool
}

// draftsMost is how many are looked at.
const draftsMost = 32

// returned is asked about a body that has returned. What After gets is a copy: who replaces a
// result gets the draft itself, and this one leaves the result as it is. That the log of the trial
// names it for that is nothing that is compared.
func (w *watch) returned(_ context.Context, c dispatcher.Call, outcomes []string) dispatcher.Change {
	return dispatcher.Replace(func(_ context.Context, state any) ([]string, error) {
		if texts, err := cellTexts(state); err == nil { // else the visit fails because of that
			w.keep(draft{path: c.Path, node: c.Node, state: state, texts: texts})
		}
		return outcomes, nil
	})
}

// keep remembers the draft of a body that has returned.
func (w *watch) keep(d draft) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.drafts) == draftsMost {
		w.drafts = w.drafts[1:]
	}
	w.drafts = append(w.drafts, d)
}

// lookBack notes drafts that were written to after their bodies had returned. mu is held.
func (w *watch) lookBack() {
	for i := range w.drafts {
		d := &w.drafts[i]
		if texts, err := cellTexts(d.state); d.told || err == nil && slices.Equal(texts, d.texts) {
			continue
		}
		d.told = true
		w.late = append(w.late, *d)
	}
}

// look notes what has changed since the last look. mu is held.
func (w *watch) look() {
	w.lookBack()
	if w.see == nil {
		return
	}
	now, err := w.world()
	if err != nil {
		w.broken = fmt.Errorf("the world can't be told: %w", err)
	}
	if w.open != nil && w.inside == 0 && now != w.last {
		w.open.changed = append(w.open.changed, fmt.Sprintf("from %s to %s", clip(w.last), clip(now)))
	}
	w.last = now
}

// world is the JSON of what see returns. It is asked in goroutines of the run, where a panic would
// end all tests.
func (w *watch) world() (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	now, err := json.Marshal(w.see())
	return string(now), err
}

func (w *watch) hooks() dispatcher.Hooks {
	return dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{Name: "pawltest", After: w.returned}}}
}

// observe tells the watch of bodies that begin.
func (w *watch) observe(e dispatcher.Event) {
	if e.Kind != dispatcher.VisitStarted {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	w.open, w.inside = &execution{path: e.Path, node: e.Node}, 0
	w.all = append(w.all, w.open)
}

// arrive is told of an append before it is made.
func (w *watch) arrive(entries []checkpoint.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look()
	for i := range entries {
		if w.open != nil && entries[i].Path == w.open.path && lands(&entries[i]) {
			w.open = nil
		}
	}
}

// leave is told of an append that is durable.
func (w *watch) leave(entries []checkpoint.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		switch {
		case lands(e):
			for _, x := range w.all {
				if x.path == e.Path && !x.kept && !x.lost {
					x.kept, x.asked = true, e.Kind == checkpoint.Interrupted
				}
			}
		case e.Kind == checkpoint.EffectBegun && w.open != nil && w.open.path == e.Path:
			w.inside++
		case e.Kind == checkpoint.EffectEnded && w.open != nil && w.open.path == e.Path:
			w.inside--
		}
	}
}

// lands reports whether an entry is what became of a body.
func lands(e *checkpoint.Entry) bool {
	switch e.Kind {
	case checkpoint.Done, checkpoint.AttemptFailed:
		return true
	case checkpoint.Interrupted:
		var i checkpoint.Interrupt
		decode(e.Data, &i)
		kind := dispatcher.InterruptKind(i.Kind)
		return kind == dispatcher.KindAsked || kind == dispatcher.KindEffect
	}
	return false
}

// dies ends a process: what is not durable is lost.
func (w *watch) dies() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.inside = nil, 0
	for _, x := range w.all {
		x.lost = !x.kept
	}
}

// doubled lists bodies whose execution was lost, or dropped for a question, and that did
// something to the world both times.
func (w *watch) doubled() []doubled {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []doubled
	for i, x := range w.all {
		if len(x.changed) == 0 || !x.lost && !x.asked {
			continue
		}
		for _, y := range w.all[i+1:] {
			if y.path == x.path {
				if len(y.changed) > 0 {
					all = append(all, doubled{x, y})
				}
				break
			}
		}
	}
	return all
}

// A doubled body did something twice.
type doubled struct {
	first, again *execution
}

func decode(data json.RawMessage, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic("pawltest: an entry of a live run is not what it says: " + err.Error())
	}
}

// clip keeps texts readable.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
