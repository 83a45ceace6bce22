package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/dispatcher"
)

// A board shows the visits that run side by side as lines that change in place. When all of them
// have ended, their lines stay as they are and the next ones begin below.
type board struct {
	w       io.Writer
	colours bool
	width   func() int

	rows  []*row
	drawn int // lines on the screen that rows repaint
	frame int // of the spinner
}

// show paints until there are no more events.
func (b *board) show(events <-chan dispatcher.Event) {
	tick := time.NewTicker(80 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				b.stop()
				return
			}
			if !b.take(e) {
				continue
			}
		case now := <-tick.C:
			if !b.running() {
				continue
			}
			b.frame++
			b.age(now)
		}
		b.paint()
	}
}

// take reports whether an event changes what is shown.
func (b *board) take(e dispatcher.Event) bool {
	switch e.Kind {
	case dispatcher.RunStarted, dispatcher.RunResumed:
		fmt.Fprintln(b.w, b.in(dim, "run "+e.Run))
	case dispatcher.VisitStarted:
		if !b.running() {
			b.rows, b.drawn = nil, 0
		}
		r := &row{path: e.Path}
		r.learn(e)
		b.rows = append(b.rows, r)
		return true
	case dispatcher.VisitDone, dispatcher.AttemptFailed, dispatcher.VisitInterrupted, dispatcher.Emitted:
		for _, r := range b.rows {
			if r.path == e.Path && r.state == running {
				r.learn(e)
				return true
			}
		}
	}
	return false
}

func (b *board) running() bool {
	for _, r := range b.rows {
		if r.state == running {
			return true
		}
	}
	return false
}

// age lets the time of running visits go on.
func (b *board) age(now time.Time) {
	for _, r := range b.rows {
		if r.state == running {
			r.took = now.Sub(r.began)
		}
	}
}

// stop says of visits that have not ended that they were stopped.
func (b *board) stop() {
	for _, r := range b.rows {
		if r.state == running {
			r.state = stopped
		}
	}
	b.paint()
}

// paint writes all rows over those on the screen, in one write, so that nothing flickers.
func (b *board) paint() {
	var s strings.Builder
	if b.drawn > 0 {
		fmt.Fprintf(&s, "\x1b[%dA", b.drawn)
	}
	for _, r := range b.rows {
		// A line that the terminal breaks would be two, and the next paint would miss.
		fmt.Fprintf(&s, "\r\x1b[2K%s %s\n", b.sign(r), cut(r.text(), b.width()-3))
	}
	b.drawn = len(b.rows)
	_, _ = io.WriteString(b.w, s.String())
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// Colours, as terminals number them.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (b *board) sign(r *row) string {
	switch r.state {
	case running:
		return b.in(cyan, string(spinner[b.frame%len(spinner)]))
	case done:
		return b.in(green, "✓")
	case failed:
		return b.in(red, "✗")
	}
	return b.in(yellow, "■")
}

func (b *board) in(colour, text string) string {
	if !b.colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
