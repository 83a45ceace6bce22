package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its doors as arguments. It returns the exit status.
func run(args []string, stdin, stdout, stderr *os.File) int {
	c, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		help(stdout)
		return 0
	case err == nil:
		err = c.do(stdin, stdout, stderr)
	}
	if line := complaint(err); line != "" {
		fmt.Fprintln(stderr, "archivist: "+line)
	}
	return exitStatus(err)
}

func (c *config) do(stdin, stdout, stderr *os.File) error {
	if c.graph != "" {
		return c.draw(stdout)
	}
	s, err := open(c, stderr)
	if err != nil {
		return err
	}
	switch {
	case c.history:
		err = s.list(stdout)
	case c.diff[0] != "":
		err = s.compare(stdout)
	case c.blame != "":
		err = s.accuse(stdout)
	case c.record:
		err = s.tellRecord(stdout)
	default:
		err = s.work(stdin, stdout, stderr)
	}
	if closing := s.close(); closing != nil && exitStatus(err) != 1 {
		err = closing
	}
	return err
}

// draw prints the graph. It needs neither books nor runs.
func (c *config) draw(w io.Writer) error {
	graph, err := newGraph(new(Library))
	if err != nil {
		return err
	}
	var text string
	switch c.graph {
	case "mermaid":
		text = graph.Mermaid()
	case "dot":
		text = graph.DOT()
	case "json":
		text, err = encoded(graph)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, strings.TrimSpace(text))
	return err
}

// exitStatus is what doc.go promises.
func exitStatus(err error) int {
	var usage *usageError
	var rest *dispatcher.Rest
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	case errors.As(err, &rest) && rest.Status != checkpoint.StatusFailed:
		return 3
	}
	return 1
}

// complaint is the one line that tells of err, or "" if the run came to rest and can go on: that
// has been told in other words.
func complaint(err error) string {
	if err == nil || exitStatus(err) == 3 {
		return ""
	}
	line := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
	if exitStatus(err) == 2 {
		line += " (archivist -help tells more)"
	}
	return printable(line)
}

func help(w io.Writer) {
	fmt.Fprint(w, "archivist [flags] \"question\"\n\nAnswers a question about books from a catalogue.\n\n")
	fs := new(config).flags()
	fs.SetOutput(w)
	fs.PrintDefaults()
}
