package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/dispatcher"
)

// A screen is what a terminal shows: it knows the few sequences that a board writes.
type screen struct {
	lines []string
	at    int
	raw   strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.raw.Write(p)
	for line := range strings.Lines(string(p)) {
		for strings.HasPrefix(line, "\x1b[") && strings.Contains(line, "A") {
			up, rest, _ := strings.Cut(line[2:], "A")
			if len(up) != 1 {
				break
			}
			s.at -= int(up[0] - '0')
			line = rest
		}
		if !strings.HasSuffix(line, "\n") {
			continue
		}
		text := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\r\x1b[2K")
		if s.at == len(s.lines) {
			s.lines = append(s.lines, "")
		}
		s.lines[s.at] = text
		s.at++
	}
	return len(p), nil
}

// Lines of the board.
const (
	heading  = "run r"
	askDone  = "✓ ask                        done        1.0 ms"
	libAt0   = "⠋ library                    running     0.0 ms"
	authAt0  = "⠋ authors                    running     0.0 ms"
	libAt80  = "⠙ library                    running    80.0 ms"
	authAt80 = "⠙ authors                    running    80.0 ms"
	authDone = "✓ authors                    done       80.0 ms"
)

func TestBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		events, ended := make(chan dispatcher.Event), make(chan struct{})
		b := &board{w: s, width: func() int { return 60 }}
		go func() {
			defer close(ended)
			b.show(events)
		}()
		tell := func(kind dispatcher.EventKind, path string, took time.Duration) {
			events <- dispatcher.Event{Kind: kind, Run: "r", Path: path, Attempt: 1, Duration: took, At: time.Now()}
			synctest.Wait()
		}
		shows := func(want ...string) {
			t.Helper()
			if got := strings.Join(s.lines, "\n"); got != strings.Join(want, "\n") {
				t.Errorf("the screen shows\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
		}
		tell(dispatcher.RunStarted, "", 0)
		shows(heading)
		tell(dispatcher.VisitStarted, "ask", 0)
		tell(dispatcher.VisitDone, "ask", time.Millisecond)
		shows(heading, askDone)
		begun := b.frame
		tell(dispatcher.VisitStarted, "library", 0)
		tell(dispatcher.VisitStarted, "authors", 0)
		shows(heading, askDone, libAt0, authAt0) // side by side, below what has ended
		tell(dispatcher.Appended, "", 0)         // changes nothing, but comes after all that was read here
		<-time.After(80 * time.Millisecond)
		synctest.Wait()
		if b.frame != begun+1 {
			t.Fatalf("the spinner is at %d, want %d", b.frame, begun+1)
		}
		shows(heading, askDone, libAt80, authAt80)
		tell(dispatcher.VisitDone, "authors", 80*time.Millisecond)
		shows(heading, askDone, libAt80, authDone)
		close(events)
		<-ended
		shows(heading, askDone, strings.NewReplacer("⠙", "■", "running", "stopped").Replace(libAt80), authDone)
		if strings.Contains(s.raw.String(), "m✓") {
			t.Error("there are colours, and nobody asked for them")
		}
	})
}

func TestLinesFitTheTerminal(t *testing.T) {
	s := &screen{}
	b := &board{w: s, colours: true, width: func() int { return 40 }}
	b.take(dispatcher.Event{Kind: dispatcher.VisitStarted, Path: "compose-loop/2/validate"})
	b.take(dispatcher.Event{
		Kind: dispatcher.AttemptFailed, Path: "compose-loop/2/validate", Attempt: 2,
		Err: errors.New("a long reason\nof several lines"),
	})
	b.paint()
	const want = "\x1b[31m✗\x1b[0m compose-loop/2/validate    failed   …"
	if len(s.lines) != 1 || s.lines[0] != want {
		t.Errorf("the screen shows %q, want %q", s.lines, want)
	}
}
