package main

import (
	"os"
	"path/filepath"
	"strings"
)

// command is a command of this program on the same store and bank, ready for a shell.
func (c *config) command(args ...string) string {
	words := []string{program()}
	if c.dir != "" {
		words = append(words, "-store", shellQuoted(c.dir))
	}
	if c.service != defaultService {
		words = append(words, "-service", shellQuoted(c.service))
	}
	for _, a := range args {
		words = append(words, shellQuoted(a))
	}
	return strings.Join(words, " ")
}

// program is how this program was called. What "go run" makes is gone when it has ended.
func program() string {
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") {
		return "go run github.com/pawlgo/pawl/examples/payments"
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
