package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What bench can't do as it is asked to is told before anything is measured.
func TestOrderRefused(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("a page without a place"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ args, want string }{
		{"chain", `"chain" belongs to no flag`},
		{"-only chain fan", `"fan" belongs to no flag`},
		{"-json out -only chain", `"out" belongs to no flag`},
		{"-only chain,", "-only: a name is empty"},
		{"-only chain,,fan", "-only: a name is empty"},
		{"-only=", "-only: a name is empty"},
		{"-from r.json -only fan", "-only says what is measured or how"},
		{"-from r.json -quick", "-quick says what is measured or how"},
		{"-from r.json -plot d", "-plot says what is measured or how"},
		{"-from r.json -dir d", "-dir says what is measured or how"},
		{"-from r.json -cpuprofile f", "-cpuprofile says what is measured or how"},
		{"-page " + filepath.Join(dir, "absent.md"), "absent.md"},
		{"-page " + page, "no place for results"},
		{"-from r.json -json -page " + page, "no place for results"},
	} {
		if o, err := ordered(strings.Fields(test.args)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("ordered(%s) = %+v, %v; want an error that says %s", test.args, o, err, test.want)
		}
	}
	for _, args := range []string{"", "-json -quick -only chain,fan -plot d -dir d -cpuprofile f", "-from a.json,b.json -json"} {
		if _, err := ordered(strings.Fields(args)); err != nil {
			t.Errorf("ordered(%s) = %v, want no error", args, err)
		}
	}
}

// Rows are in the page, and printed as well if they should be JSON or the page did not take them.
func TestGive(t *testing.T) {
	rows := []row{shown("chain-10/node", series{1}, "µs", "a node")}
	for _, test := range []struct {
		name, page string
		json       bool
		want       string // of what is printed; "" is nothing
		fails      bool
	}{
		{"page", beginResults + endResults, false, "", false},
		{"page and JSON", beginResults + endResults, true, `"name": "chain-10/node"`, false},
		{"no place", "another page", false, "NAME", true},
		{"no place and JSON", "another page", true, `"name": "chain-10/node"`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(path, []byte(test.page), 0o600); err != nil {
				t.Fatal(err)
			}
			var printed bytes.Buffer
			err := order{json: test.json, page: path}.give(&printed, rows, nil)
			if (err != nil) != test.fails {
				t.Errorf("give = %v, want an error: %v", err, test.fails)
			}
			if got := printed.String(); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
				t.Errorf("%q is printed, want %q", got, test.want)
			}
			text, err := os.ReadFile(path)
			if err != nil || strings.Contains(string(text), "| chain-10/node |") == test.fails {
				t.Errorf("the page is %q, %v; want the row in it: %v", text, err, !test.fails)
			}
		})
	}
}
