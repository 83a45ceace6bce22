//go:build !rivals

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"
)

// Rivals are in a program of their own, which is this one with the tag rivals: what is linked into
// a program is looked at whenever its memory is collected, and of short runs without a store that
// is a fifth.

var rivalChildren map[string]func(args []string) error // none

func twice(s session) ([]row, error)  { return s.withRivals("twice") }
func rivals(s session) ([]row, error) { return s.withRivals("rivals") }

// withRivals has a part measured by the program that has the rivals, which draws its charts itself.
func (s session) withRivals(part string) ([]row, error) {
	goTool, err := exec.LookPath("go")
	if err == nil {
		err = modules(goTool)
	}
	if err != nil {
		return []row{absent(part, "it takes another program, go run -tags rivals: "+err.Error())}, nil
	}
	args := []string{"run", "-tags", "rivals," + tags(), ".", "-json", "-only", s.wanted(part), "-dir", s.dir}
	if s.quick {
		args = append(args, "-quick")
	}
	if s.plot != "" {
		args = append(args, "-plot", s.plot)
	}
	c := exec.Command(goTool, args...)
	if err := asChild(c, "bench"); err != nil { // go run hands on what is a child's
		return nil, err
	}
	return rowsOf(c)
}

// rowsOf returns the rows that c prints, also if it fails then.
func rowsOf(c *exec.Cmd) (rows []row, err error) {
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	if err == nil || len(out) > 0 {
		err = errors.Join(err, json.Unmarshal(out, &rows))
	}
	return rows, err
}

// modules returns an error if a package of the program is not there, and can't be fetched. What is
// wrong with ours is told when it is built.
func modules(goTool string) error {
	const missing = "{{with .Error}}{{if not $.Module}}{{.Err}}\n{{end}}{{end}}" // no module has it
	c := exec.Command(goTool, "list", "-e", "-deps", "-tags", "rivals,"+tags(), "-f", missing, ".")
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	if first, _, _ := strings.Cut(string(out), "\n"); first != "" {
		return errors.New(first)
	}
	return nil
}

// wanted is what is wanted of a part, for -only.
func (s session) wanted(part string) string {
	var of []string
	for _, word := range s.only {
		switch {
		case strings.HasPrefix(part, word):
			return part // all of it
		case strings.HasPrefix(word, part):
			of = append(of, word)
		}
	}
	if of == nil { // nothing was said
		return part
	}
	return strings.Join(of, ",")
}

// tags are those that this program was built with.
func tags() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "-tags" {
			return setting.Value
		}
	}
	return ""
}
