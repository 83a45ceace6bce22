package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/pawlgo/pawl/dispatcher"
)

// A progress shows a run at work. Nothing is shown before its first event and after its close,
// which may be called again.
type progress struct {
	observe func(dispatcher.Event)
	close   func() error
}

// newProgress shows live lines on a terminal, else plain ones. quiet leaves out the plain ones, for
// callers who read what other programs read.
func newProgress(w *os.File, quiet bool) *progress {
	switch {
	case term.IsTerminal(int(w.Fd())) && os.Getenv("TERM") != "dumb":
		return newLive(w, os.Getenv("NO_COLOR") == "")
	case quiet:
		return &progress{func(dispatcher.Event) {}, func() error { return nil }}
	}
	p := &plain{w: w, said: make(map[string]string)}
	return &progress{p.observe, func() error { return nil }}
}

// plain writes a line for what has become true of a visit, and for a line of what it emits.
type plain struct {
	w    io.Writer
	mu   sync.Mutex        // emitted values come from another goroutine than events
	said map[string]string // by visit: what has not been written
}

func (p *plain) observe(e dispatcher.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch w := p.w; e.Kind {
	case dispatcher.Emitted:
		p.said[e.Path] += emitted(e)
		p.say(e.Path, columns-40)
	case dispatcher.RunStarted:
		fmt.Fprintf(w, "run %s\n", e.Run)
	case dispatcher.RunResumed:
		fmt.Fprintf(w, "run %s goes on\n", e.Run)
	case dispatcher.VisitDone, dispatcher.AttemptFailed, dispatcher.VisitInterrupted:
		p.say(e.Path, 0)
		r := row{path: e.Path}
		if r.learn(e); r.attempt > 0 || r.state != done {
			fmt.Fprintln(w, "  "+r.text())
		}
	}
}

// say writes lines of what a visit has emitted, while there is more than atMost runes of it.
func (p *plain) say(path string, atMost int) {
	for said := []rune(p.said[path]); len(said) > atMost; said = []rune(p.said[path]) {
		n := min(len(said), max(atMost, columns-40))
		fmt.Fprintf(p.w, "  %-26s says     %s\n", path, printable(string(said[:n])))
		p.said[path] = string(said[n:])
	}
}

// emitted is the text that a node has emitted.
func emitted(e dispatcher.Event) string {
	var text string
	if json.Unmarshal(e.Value, &text) != nil {
		return string(e.Value)
	}
	return text
}

// A row is what is shown of one visit.
type row struct {
	path    string
	state   string
	attempt int
	took    time.Duration // so far, or in all
	began   time.Time
	note    string
}

const (
	running = "running"
	done    = "done"
	failed  = "failed"
	waits   = "waits"
	stopped = "stopped"
)

// learn takes over what an event says of the visit.
func (r *row) learn(e dispatcher.Event) {
	if e.Kind != dispatcher.Emitted {
		r.attempt, r.took = e.Attempt, e.Duration
	}
	switch e.Kind {
	case dispatcher.VisitStarted:
		r.state, r.began = running, e.At
	case dispatcher.VisitDone:
		r.state, r.note = done, chosen(e.Outcome)
	case dispatcher.AttemptFailed:
		r.state, r.note = failed, printable(fmt.Sprint(e.Err))
	case dispatcher.VisitInterrupted:
		r.state, r.note = waits, e.Outcome
	case dispatcher.Emitted:
		r.hear(emitted(e))
	}
}

// chosen is an outcome as a person reads it: that of a Choose is a JSON list.
func chosen(outcome string) string {
	var all []string
	if json.Unmarshal([]byte(outcome), &all) != nil {
		return outcome
	}
	return strings.Join(all, ", ")
}

// hear keeps the end of what a visit says.
func (r *row) hear(said string) {
	const most = 40
	text := []rune(strings.TrimLeft(r.note+said, " "))
	r.note = printable(string(text[max(0, len(text)-most):]))
	if strings.HasSuffix(said, " ") {
		r.note += " "
	}
}

func (r *row) text() string {
	text := fmt.Sprintf("%-26s %-8s %9s", r.path, r.state, fmt.Sprintf("%.1f ms", float64(r.took.Microseconds())/1000))
	if r.note != "" {
		text += "  " + r.note
	}
	if r.attempt > 1 {
		text += fmt.Sprintf("  (attempt %d)", r.attempt)
	}
	return text
}

// newLive starts to show rows that change in place. The goroutine that paints ends with close,
// which waits for it.
func newLive(w *os.File, colours bool) *progress {
	events, ended := make(chan dispatcher.Event, 64), make(chan struct{})
	b := &board{w: w, colours: colours, width: func() int {
		width, _, err := term.GetSize(int(w.Fd()))
		if err != nil || width < 20 {
			return 80
		}
		return width
	}}
	go func() {
		defer close(ended)
		b.show(events)
	}()
	var once sync.Once
	p := &progress{observe: func(e dispatcher.Event) { events <- e }}
	p.close = func() error {
		once.Do(func() {
			p.observe = func(dispatcher.Event) {} // of an answer that a person gives then
			close(events)
			<-ended
		})
		return nil
	}
	return p
}
