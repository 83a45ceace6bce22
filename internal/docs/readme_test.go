package docs

import (
	"bufio"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	// The program is built by another process: what it is built from has to be named here,
	// or a result from before a change would be taken from the cache of tests.
	_ "github.com/pawlgo/pawl/checkpoint/badgerstore"
	_ "github.com/pawlgo/pawl/dispatcher"
)

const question = "bake: press Enter when it is brown"

// The program of README.md is built as it stands there, killed where the text says so, and
// run again. Each time it has to print what the text shows.
func TestReadmeProgramGoesOnAfterKill(t *testing.T) {
	dir := t.TempDir()
	bread := buildReadme(t, dir)
	shown := transcript(t)
	if len(shown) != 3 {
		t.Fatalf("README.md shows %d runs, want 3", len(shown))
	}
	check := func(run int, got []string) {
		t.Helper()
		want := slices.DeleteFunc(shown[run], func(line string) bool { return line == "" || line == "Killed" })
		if run == 0 { // the first two run side by side
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("run %d printed %q, README.md shows %q", run+1, got, want)
		}
	}
	check(0, killed(t, bread, dir))
	check(1, finished(t, bread, dir, "\n"))
	check(2, finished(t, bread, dir, ""))

	elsewhere := t.TempDir()
	if err := os.WriteFile(filepath.Join(elsewhere, "bakery"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := exec.CommandContext(t.Context(), bread)
	broken.Dir = elsewhere
	if out, err := broken.CombinedOutput(); err == nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("without a store the program says more than one thing, or nothing (%v):\n%s", err, out)
	}
}

// buildReadme builds the Go block of README.md. It is a file of its own, so its imports are
// found by the module in whose directory the command runs.
func buildReadme(t *testing.T, dir string) string {
	_, rest, _ := strings.Cut(read(t, "README.md"), "```go\n")
	program, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("README.md has no Go block")
	}
	source, bread := filepath.Join(dir, "bread.go"), filepath.Join(dir, "bread")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bread, source)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program of README.md does not build: %v\n%s", err, out)
	}
	return bread
}

// transcript returns what README.md shows that each run of the program prints.
func transcript(t *testing.T) [][]string {
	_, rest, _ := strings.Cut(read(t, "README.md"), "```\n$ ./bread\n")
	text, _, _ := strings.Cut(rest, "```\n")
	var runs [][]string
	for run := range strings.SplitSeq(text, "$ ./bread\n") {
		runs = append(runs, strings.Split(strings.TrimSpace(run), "\n"))
	}
	return runs
}

// killed runs the program until it waits for Enter, kills it, and returns what it printed.
func killed(t *testing.T, bread, dir string) []string {
	cmd := exec.CommandContext(t.Context(), bread)
	cmd.Dir = dir
	stdin, err := cmd.StdinPipe() // and never write to it
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(stdout); s.Scan(); {
		lines = append(lines, s.Text())
		if s.Text() == question {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the program was not killed; it printed %q", lines)
	}
	return lines
}

// finished runs the program to its end and returns what it printed.
func finished(t *testing.T, bread, dir, stdin string) []string {
	cmd := exec.CommandContext(t.Context(), bread)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

var (
	link    = regexp.MustCompile(`\]\(([^)#:"]*)(?:#([^)":]+))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\pL\pN _-]`)
)

// anchors are what links to the headings of a page end with, as GitHub makes them.
func anchors(t *testing.T, page string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(read(t, page), -1) {
		words := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(words, " ", "-"))
	}
	return all
}

// A link to a file of the repository leads to one, and one to a part of a page to its heading.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			rel, _ := filepath.Rel(root, path)
			pages = append(pages, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			found++
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(t, target), m[2]) {
				t.Errorf("%s links to %s, which has no part #%s", page, target, m[2])
			}
		}
	}
	if found == 0 {
		t.Error("found no links: the pattern is wrong")
	}
}
