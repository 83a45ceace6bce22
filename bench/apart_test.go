//go:build !rivals

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// What is wanted of a part is what words say about it, and all of it if one says no more than its
// name.
func TestWanted(t *testing.T) {
	for _, test := range []struct{ only, want string }{
		{"", "twice"},
		{"twice/eino", "twice/eino"},
		{"chain,twice/eino,twice/pawl", "twice/eino,twice/pawl"},
		{"t,twice/eino", "twice"},
		{"twice/eino,twice", "twice"},
	} {
		var s session
		if test.only != "" {
			s.only = strings.Split(test.only, ",")
		}
		if got := s.wanted("twice"); got != test.want {
			t.Errorf("-only %q wants %q of twice, want %q", test.only, got, test.want)
		}
	}
}

// Rows that a program prints before it fails are not lost, and no failure is.
func TestRowsOf(t *testing.T) {
	for _, test := range []struct {
		name, script string
		rows         int
		want         string // of the error; "" is none
	}{
		{"rows", `echo '[{"name":"a"},{"name":"b"}]'`, 2, ""},
		{"rows and an error", `echo '[{"name":"a"}]'; exit 1`, 1, "exit status 1"},
		{"an error alone", "exit 1", 0, "exit status 1"},
		{"nothing", "true", 0, "unexpected end of JSON input"},
		{"no JSON", "echo rows", 0, "invalid character"},
		{"no JSON and an error", "echo rows; exit 1", 0, "exit status 1\ninvalid character"},
	} {
		rows, err := rowsOf(exec.Command("sh", "-c", test.script))
		if len(rows) != test.rows {
			t.Errorf("%s: rows %+v, want %d", test.name, rows, test.rows)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
