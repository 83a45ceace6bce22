package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheCalculatorIsExact(t *testing.T) {
	for expression, want := range map[string]string{
		"4806 - 1345":      "3461",
		"(3 + 4) * 2.5":    "17.5",
		"0.1 + 0.2":        "0.3",
		"1/4":              "0.25",
		"-2 * -(3)":        "6",
		"10000000000 * 10": "100000000000",
		"12345.678 + 0":    "12345.678",
		"0.000000001 / 4":  "0.00000000025",
		"1 / 3":            "1/3",
		"-0.5 / 7":         "-1/14",
		"007.50":           "7.5",
		"2. * .5":          "1",
	} {
		if got, err := reckon(expression); got != want || err != nil {
			t.Errorf("%s = %q, %v, want %s", expression, got, err, want)
		}
	}
	for _, expression := range []string{"", "1 +", "1 / 0", "1 / (2 - 2)", "1 << 40", "x", "os.Exit(1)", "1e999999999",
		"0x10", `"a" + "b"`, "!1", "1.2.3", "7 % 2", strings.Repeat("9", longestExpression+1)} {
		var refused *Refusal
		if got, err := reckon(expression); !errors.As(err, &refused) {
			t.Errorf("%.20s = %q, %v, want a refusal", expression, got, err)
		}
	}
}

func TestSearchFindsTheBestPassage(t *testing.T) {
	for query, want := range map[string]string{
		"Mont Blanc": "Mont Blanc is", "ben nevis": "Ben Nevis is", "Mount Everest?": "Mount Everest,", "K2": "K2,",
	} {
		if got, err := find(query); !strings.HasPrefix(got, want) || err != nil {
			t.Errorf("%s: %q, %v", query, got, err)
		}
	}
	var refused *Refusal
	for _, query := range []string{"Olympus Mons", "the", ""} {
		if got, err := find(query); !errors.As(err, &refused) {
			t.Errorf("%q: %q, %v, want a refusal", query, got, err)
		}
	}
}

// A note that is written again under its key is kept once.
func TestANoteIsKeptOnce(t *testing.T) {
	book := &Notebook{dir: filepath.Join(t.TempDir(), "notes")}
	for _, n := range []note{{"k1", "one"}, {"k2", "two"}, {"k1", "one"}, {"k2", "two"}} {
		if said, err := book.write("alps.txt", n); said != "noted in alps.txt" || err != nil {
			t.Fatalf("%v: %q, %v", n, said, err)
		}
	}
	got, err := os.ReadFile(filepath.Join(book.dir, "alps.txt"))
	if want := `{"key":"k1","text":"one"}` + "\n" + `{"key":"k2","text":"two"}` + "\n"; string(got) != want || err != nil {
		t.Errorf("the file has %q, %v", got, err)
	}
	if files, err := os.ReadDir(book.dir); len(files) != 1 || err != nil {
		t.Errorf("files %v, %v", files, err)
	}
}

// A note is kept once however long it is.
func TestALongNoteIsKeptOnce(t *testing.T) {
	book := &Notebook{dir: t.TempDir()}
	long := note{"k", strings.Repeat("x", 70_000)}
	for _, n := range []note{{"before", "one"}, long, long, {"behind", "two"}, {"behind", "two"}} {
		if _, err := book.write("a.txt", n); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(book.dir, "a.txt")); strings.Count(string(got), "\n") != 3 || err != nil {
		t.Errorf("the file has %d notes, %v", strings.Count(string(got), "\n"), err)
	}
}

// What can't be a file of notes is refused, and the model is told: any other error would fail the
// run, again each time that it goes on.
func TestNamesThatAreRefused(t *testing.T) {
	book := &Notebook{dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(book.dir, "shelf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shelf", filepath.Join(book.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../x", ".hidden", strings.Repeat("x", 201), "a\x00b", "a\nb", "shelf", "link"} {
		var refused *Refusal
		if said, err := book.write(file, note{"k", "text"}); !errors.As(err, &refused) {
			t.Errorf("%.20q: %q, %v, want a refusal", file, said, err)
		}
	}
	if _, err := book.write(strings.Repeat("x", 200), note{"k", "text"}); err != nil {
		t.Errorf("a long name: %v", err)
	}
}

// The name of a file is a model's or a person's, and leads nowhere else.
func TestNotesStayInTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	book := &Notebook{dir: filepath.Join(dir, "notes")}
	if err := os.Mkdir(book.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(book.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../secret", "/etc/passwd", `..\secret`, "..", ".hidden", secret, "link"} {
		if said, err := book.write(file, note{"k", "after"}); err == nil {
			t.Errorf("%s: %q", file, said)
		}
	}
	if got, err := os.ReadFile(secret); string(got) != "before" || err != nil {
		t.Errorf("the file beside has %q, %v", got, err)
	}
}

// A call keeps what the model gave, what it lacks, and what was not chosen.
func TestBind(t *testing.T) {
	tool := (&Notebook{}).tool()
	b, err := tool.bind(`{"text":7,"rejected":[{"tool":"search","reason":"known"}]}`)
	if err != nil || b.Complete || b.Inputs["text"] != "7" || len(b.Rejected) != 1 || b.Rejected[0] != (Alternative{"search", "known"}) {
		t.Errorf("bound %+v, %v", b, err)
	}
	if lacks := tool.lacks(b.Inputs); len(lacks) != 1 || lacks[0].Name != "file" {
		t.Errorf("it lacks %v", lacks)
	}
	if b, err := tool.bind(`{"text":"a","file":"b"}`); err != nil || !b.Complete {
		t.Errorf("bound %+v, %v", b, err)
	}
	for _, arguments := range []string{"", "[]", "{", `{"mode":"0777"}`, `{"rejected":"none"}`} {
		if _, err := tool.bind(arguments); err == nil {
			t.Errorf("%s: no error", arguments)
		}
	}
	reckons := calculator()
	for range 50 { // what a run has of it is what a fork of it has
		if b, err := reckons.bind(`{"mode":"x","expression":"1+1"}`); err == nil || b.Inputs["expression"] != "1+1" {
			t.Fatalf("bound %+v, %v", b, err)
		}
	}
}
