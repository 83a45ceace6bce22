package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlgo/pawl/dispatcher"
)

// resumeCommand is the command that goes on with the run and answers the first of what it asks,
// ready for a shell.
func (s *session) resumeCommand(asks []dispatcher.Interrupt) string {
	words := []string{program()}
	add := func(flag, value string) { words = append(words, flag, shellQuoted(value)) }
	if s.dir != "" {
		add("-store", s.dir)
	}
	if s.notes != defaultNotes {
		add("-notes", s.notes)
	}
	add("-run", s.run)
	words = append(words, "-resume")
	switch {
	case len(asks) == 0:
	case asks[0].Kind == dispatcher.KindEffect:
		add("-answer", string(dispatcher.Approve))
	default:
		add("-answer", "TEXT")
	}
	return strings.Join(words, " ")
}

// program is how this program was called. What "go run" makes is gone when it has ended.
func program() string {
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") {
		return "go run github.com/pawlgo/pawl/examples/agent"
	}
	return shellQuoted(os.Args[0])
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
