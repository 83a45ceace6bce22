package handover

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bin is where the two programs are, built once.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "handover")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		bin = dir
		if out, err := exec.Command("go", "build", "-o", dir, "./scout", "./clerk").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// do runs a program, and returns what it prints and whether it ended well.
func do(program string, args ...string) (string, error) {
	out, err := exec.Command(filepath.Join(bin, program), args...).CombinedOutput()
	return string(out), err
}

func must(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := do(program, args...)
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return out
}

// A record goes from one program to another, which imports nothing of pawl, is verified there,
// answered, and comes back: it is merged with what was found out meanwhile, and the run goes on.
func TestThereAndBack(t *testing.T) {
	dir := t.TempDir()
	store, out, back := filepath.Join(dir, "store"), filepath.Join(dir, "site.jsonl"), filepath.Join(dir, "answered.jsonl")
	if told := must(t, "scout", "-dir", store, "survey", out); !strings.Contains(told, "Where shall we dig?") {
		t.Errorf("the survey says\n%s", told)
	}
	if told := must(t, "clerk", "-answer", "trench B", "-override", "dig with brushes", "-name", "ann", out, back); !strings.Contains(told, "verified: site-7") {
		t.Errorf("the clerk says\n%s", told)
	}
	told := must(t, "scout", "-dir", store, "merge", back)
	for _, want := range []string{
		`decisions tool: description "dig with spades", now "dig with brushes"`, `answer null, now "trench B"`,
		`answeredBy null, now {"type":"human","id":"ann"}`, "dug at trench B; the task is completed",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the merge does not say %s, but\n%s", want, told)
		}
	}
	if strings.Contains(told, "rain") {
		t.Errorf("what the scout has learned meanwhile is not as it was:\n%s", told)
	}
}

// Whoever changes a byte of what is passed is found out, by either side, and nothing is taken over.
func TestTampered(t *testing.T) {
	dir := t.TempDir()
	store, out, back := filepath.Join(dir, "store"), filepath.Join(dir, "site.jsonl"), filepath.Join(dir, "answered.jsonl")
	must(t, "scout", "-dir", store, "survey", out)
	tamper(t, out, "third century", "first century", func(file string) {
		if told, err := do("clerk", "-answer", "x", file, back); err == nil || !strings.Contains(told, "version 1 is not what was written") {
			t.Errorf("the clerk says %v\n%s", err, told)
		}
	})
	must(t, "clerk", "-answer", "trench B", out, back)
	tamper(t, back, "trench B", "trench C", func(file string) {
		if told, err := do("scout", "-dir", store, "merge", file); err == nil || !strings.Contains(told, "site-7-clerk") {
			t.Errorf("the scout says %v\n%s", err, told)
		}
	})
	if told := must(t, "scout", "-dir", store, "merge", back); !strings.Contains(told, "dug at trench B") {
		t.Errorf("the merge says\n%s", told)
	}
}

// Whatever is answered, comes back as it was said; what is no text is refused.
func TestAnyAnswerComesBack(t *testing.T) {
	for _, answer := range []string{"trench A & B", "<b>&\u2028\u2029", `a \u2028 as it is written, and "\`} {
		dir := t.TempDir()
		store, out, back := filepath.Join(dir, "store"), filepath.Join(dir, "site.jsonl"), filepath.Join(dir, "answered.jsonl")
		must(t, "scout", "-dir", store, "survey", out)
		if told, err := do("clerk", "-answer", "\xff", out, back); err == nil || !strings.Contains(told, "no UTF-8") {
			t.Errorf("no text: %v\n%s", err, told)
		}
		must(t, "clerk", "-answer", answer, out, back)
		if again := must(t, "clerk", "-answer", answer, "-override", answer, out, back); !strings.Contains(again, "verified") {
			t.Errorf("the clerk says\n%s", again)
		}
		if told := must(t, "scout", "-dir", store, "merge", back); !strings.Contains(told, "dug at "+answer+"; the task is completed") {
			t.Errorf("%q: the merge says\n%s", answer, told)
		}
	}
}

// What was done can be done again, and what went wrong leaves a way on.
func TestEachStepCanBeRepeated(t *testing.T) {
	dir := t.TempDir()
	store, out, back := filepath.Join(dir, "store"), filepath.Join(dir, "site.jsonl"), filepath.Join(dir, "answered.jsonl")
	if told, err := do("scout", "-dir", store, "survey", filepath.Join(dir, "no", "file")); err == nil {
		t.Errorf("without a directory the survey says\n%s", told)
	}
	must(t, "scout", "-dir", store, "survey", out)
	must(t, "clerk", "-answer", "trench B", "-name", "ann", out, back)
	again := filepath.Join(dir, "again.jsonl")
	must(t, "scout", "-dir", store, "survey", again)
	other := filepath.Join(dir, "other.jsonl")
	must(t, "clerk", "-answer", "trench C", "-name", "bob", again, other)
	for range 2 {
		if told := must(t, "scout", "-dir", store, "merge", back); !strings.Contains(told, "dug at trench B; the task is completed") {
			t.Errorf("the merge says\n%s", told)
		}
	}
	for range 2 {
		if told, err := do("scout", "-dir", store, "merge", other); err == nil || !strings.Contains(told, `answer "trench B" or "trench C"`) {
			t.Errorf("of two answers the merge says %v\n%s", err, told)
		}
	}
	if told := must(t, "scout", "-dir", store, "-strategy", "prefer-a", "merge", other); !strings.Contains(told, "dug at trench B") {
		t.Errorf("with a strategy the merge says\n%s", told)
	}
	must(t, "clerk", "-answer", "trench D", "-name", "bob", again, other)
	if told, err := do("scout", "-dir", store, "merge", other); err == nil || !strings.Contains(told, "another -name") {
		t.Errorf("another record of the same name: %v\n%s", err, told)
	}
}

// tamper lets f read a file in which one text stands for another.
func tamper(t *testing.T, file, old, now string, f func(file string)) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%s has no %q (%v)", file, old, err)
	}
	other := file + ".tampered"
	if err := os.WriteFile(other, bytes.Replace(data, []byte(old), []byte(now), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	f(other)
}

// The clerk shares no code with the scout: it imports the standard library alone.
func TestClerkIsOnItsOwn(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./clerk").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if deps := strings.Fields(string(out)); len(deps) != 1 {
		t.Errorf("the clerk needs %q", deps)
	}
}
