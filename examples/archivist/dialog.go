package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/pawlgo/pawl/dispatcher"
)

// A dialog asks the person at a terminal what a run asks.
type dialog struct {
	out   io.Writer
	lines <-chan string // closed at the end of the input
	over  context.Context
}

// newDialog returns nil if nobody is at a terminal, or if another program reads what is written.
func (s *session) newDialog(stdin, stderr *os.File) *dialog {
	if s.json || !term.IsTerminal(int(stdin.Fd())) || !term.IsTerminal(int(stderr.Fd())) {
		return nil
	}
	lines := make(chan string)
	go func() { // until the input ends, or the process: nothing else ends a read of a terminal
		defer close(lines)
		for in := bufio.NewScanner(stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	return &dialog{stderr, lines, s.stops.ctx}
}

// ask returns the answer to an interrupt, as -answer takes it; false if there is none.
func (d *dialog) ask(i dispatcher.Interrupt) (string, bool) {
	fmt.Fprintf(d.out, "\n%s\n\n", text(i.Question))
	if !strings.HasPrefix(i.Key, approval) {
		return d.line("> ")
	}
	for {
		word, ok := d.line("approve, edit or reject? ")
		if _, err := parseVerdict(word); ok && err == nil {
			return word, true
		}
		switch decision := strings.ToLower(strings.TrimSpace(word)); {
		case !ok:
			return "", false
		case decision == "":
		case strings.HasPrefix(string(Approve), decision), strings.HasPrefix(string(Reject), decision):
			return map[byte]string{'a': string(Approve), 'r': string(Reject)}[decision[0]], true
		case strings.HasPrefix(string(Edit), decision):
			if text, ok := d.paragraphs(); !ok || text != "" {
				return string(Edit) + ": " + text, ok
			}
		}
	}
}

func (d *dialog) line(prompt string) (string, bool) {
	fmt.Fprint(d.out, prompt)
	select {
	case line, ok := <-d.lines:
		return line, ok
	case <-d.over.Done():
		return "", false
	}
}

func (d *dialog) paragraphs() (string, bool) {
	fmt.Fprintln(d.out, "Type the answer, and a line with nothing but a dot behind it.")
	var all []string
	for {
		line, ok := d.line("")
		if !ok || strings.TrimSpace(line) == "." {
			return strings.TrimSpace(strings.Join(all, "\n")), ok
		}
		all = append(all, line)
	}
}
