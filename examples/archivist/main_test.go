package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// binary is the program, built once: "go run" would hide its exit status.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(stopsHelper) != "" {
		helpStops()
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "archivist")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "archivist")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// An outcome is what a command leaves behind.
type outcome struct {
	args           []string
	exit           int
	stdout, stderr string
}

// command is the program with a cache directory of the test's own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	home := t.TempDir()
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
		"OPENAI_API_KEY=", "OPENAI_BASE_URL=", "OPENLIBRARY_BASE_URL=http://127.0.0.1:1")
	return cmd
}

// archivist runs the program to its end.
func archivist(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, command(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return outcome{cmd.Args[1:], cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// exits fails the test unless the command left with this status.
func (o outcome) exits(t *testing.T, status int) outcome {
	t.Helper()
	if o.exit != status {
		t.Fatalf("archivist %.300q: exit status %d, want %d\n%s%s", o.args, o.exit, status, o.stdout, o.stderr)
	}
	return o
}

// complains fails the test unless the command was refused with one line that has these words, and
// nothing on standard output.
func (o outcome) complains(t *testing.T, status int, words ...string) {
	t.Helper()
	o.exits(t, status)
	if o.stdout != "" {
		t.Errorf("archivist %.300q printed %q", o.args, o.stdout)
	}
	if strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "archivist: ") {
		t.Errorf("archivist %.300q: standard error is not one line of its own:\n%s", o.args, o.stderr)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("archivist %.300q: %q does not say %q", o.args, o.stderr, w)
		}
	}
}

// report decodes what -json printed: one object of exactly the fields that other tools know.
func (o outcome) report(t *testing.T) report {
	t.Helper()
	var r report
	dec := json.NewDecoder(strings.NewReader(o.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("archivist %.300q printed no report: %v\n%s", o.args, err, o.stdout)
	}
	if dec.More() {
		t.Fatalf("archivist %.300q printed more than one object:\n%s", o.args, o.stdout)
	}
	return r
}

// ask is a run of the README's question in store with -json and more flags.
func ask(t *testing.T, store string, flags ...string) outcome {
	t.Helper()
	return archivist(t, append(append([]string{"-store", store, "-json"}, flags...), labyrinth)...)
}

// undisturbed is the report of a run that nothing happened to, in a store of its own.
func undisturbed(t *testing.T) report {
	t.Helper()
	return ask(t, t.TempDir()).exits(t, 0).report(t)
}

// openStore opens the store of a command that has ended. Close it before the next command.
func openStore(t *testing.T, dir string) *badgerstore.Store {
	t.Helper()
	store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{MemTableSize: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// holders are the visits that hold frames and run nothing themselves.
var holders = []string{"search", "describe", "by-author", "similar", "top-rated", "compose-loop"}

// durable lists the visits that the log of a run says are done, holders of frames left out, and
// where the run is in its life; "" if there is no such run.
func durable(t *testing.T, dir, run string) (visits []string, status checkpoint.Status) {
	t.Helper()
	store := openStore(t, dir)
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	info, err := store.Stat(t.Context(), run)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range store.Read(t.Context(), run, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == checkpoint.Done && !slices.Contains(holders, e.Path) {
			visits = append(visits, strings.Clone(e.Path))
		}
	}
	return visits, info.Status
}
