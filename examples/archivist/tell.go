package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// warnings are what a person should know although nothing failed.
func (s *session) warnings(res *dispatcher.Result[Inquiry]) []string {
	var all []string
	if s.cancelAt != "" && !s.stops.reached {
		why := fmt.Sprintf("-cancel-at: the run did not come to %s", s.cancelAt)
		if !isVisit(s.graph.Plan(), s.cancelAt) {
			why = fmt.Sprintf("-cancel-at: the graph has no visit %q", s.cancelAt)
		}
		all = append(all, why)
	}
	all = append(all, res.State.Omitted.Slice()...)
	all = append(all, res.State.Missing.Slice()...)
	for _, name := range res.Abandoned {
		all = append(all, fmt.Sprintf("%s did not stop in time and was abandoned", name))
	}
	return append(all, res.Warnings...)
}

// tell writes what came of the run to people: what -json does not tell them, or else all of it but
// the answer.
func (s *session) tell(w io.Writer, r *report, res *dispatcher.Result[Inquiry]) {
	say := func(format string, args ...any) { fmt.Fprintf(w, "archivist: "+format+"\n", args...) }
	if !s.json {
		for _, text := range r.Warnings {
			say("warning: %s", printable(text))
		}
		if s.origin != "" {
			say("this is a fork of run %s at %s", printable(s.origin), printable(s.fork))
		}
		if before := res.State.Before.Get(); before != "" && s.origin == "" { // a fork has it of its origin, or means that
			say("this was asked before, in run %s", printable(before))
		}
	}
	switch r.Status {
	case checkpoint.StatusCompleted:
		return
	case checkpoint.StatusFailed:
		if s.json {
			return // the one line of the error is all there is
		}
	case checkpoint.StatusCancelled, checkpoint.StatusTimedOut:
		say("%s at %s", strings.ReplaceAll(string(r.Status), "_", " "), strings.Join(r.Cursor, ", "))
	}
	answer := ""
	for _, i := range res.Interrupts {
		say("%s asks: %s", i.Path, text(i.Question))
		if i.Kind == dispatcher.KindAsked {
			answer = "TEXT"
		}
		if strings.HasPrefix(i.Key, approval) {
			answer = "'approve | reject | edit: TEXT'"
		}
	}
	say("go on with: %s", s.resumeCommand(answer))
}

// resumeCommand is the command that goes on with the run, ready for a shell.
func (s *session) resumeCommand(answer string) string {
	words := []string{program()}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, shellQuoted(value))
		}
	}
	add("-store", s.dir)
	add("-corpus", s.corpus)
	if s.online {
		words = append(words, "-online")
	}
	add("-run", s.run)
	words = append(words, "-resume")
	if answer != "" {
		words = append(words, "-answer", answer)
	}
	return strings.Join(words, " ")
}

// program is how this program was called. What "go run" makes is gone when it has ended.
func program() string {
	if !strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") {
		return shellQuoted(os.Args[0])
	}
	if _, err := os.Stat("examples/archivist"); err == nil {
		return "go run ./examples/archivist"
	}
	return "go run github.com/pawlgo/pawl/examples/archivist"
}

// shellQuoted is one word of a POSIX shell.
func shellQuoted(word string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
