package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A child is the program at work, whose standard error is read line by line.
type child struct {
	*exec.Cmd
	stdout bytes.Buffer
	lines  *bufio.Reader
	read   strings.Builder
}

func start(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	r := &child{Cmd: cmd}
	r.Stdout = &r.stdout
	stderr, err := r.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewReader(stderr)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// until reads lines up to one that matches, and returns it.
func (r *child) until(t *testing.T, pattern string) string {
	t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		r.read.WriteString(line)
		if regexp.MustCompile(pattern).MatchString(line) {
			return line
		}
		if err != nil {
			t.Fatalf("no line matches %q: %v\n%s", pattern, err, r.read.String())
		}
	}
}

// end reads the rest and waits.
func (r *child) end() outcome {
	_, _ = io.Copy(&r.read, r.lines) // what is missing is missed by whoever looks for it
	_ = r.Wait()                     // the exit status tells
	return outcome{r.Args[1:], r.ProcessState.ExitCode(), r.stdout.String(), r.read.String()}
}

// A signal cancels the run and leaves a checkpoint; the command that is printed goes on, in a
// shell.
func TestSignalsCancel(t *testing.T) {
	want := undisturbed(t).Answer
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		store := filepath.Join(t.TempDir(), "it's a store")
		r := start(t, command(t, "-store", store, "-slow", "1h", "-run", `run "1" of $HOME`, labyrinth))
		r.until(t, `^  search/plan`)
		if err := r.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		o := r.end().exits(t, 3)
		if o.stdout != "" || !strings.Contains(o.stderr, "cancelled at search/library, search/authors, search/subjects, search/earlier") {
			t.Errorf("%v: printed %q and\n%s", sig, o.stdout, o.stderr)
		}
		_, line, found := strings.Cut(o.stderr, "go on with: ")
		if !found {
			t.Fatalf("%v: no command is printed:\n%s", sig, o.stderr)
		}
		sh := command(t)
		sh.Path, sh.Args = "/bin/sh", []string{"sh", "-c", line}
		if got := finish(t, sh).exits(t, 0).stdout; got != want+"\n" {
			t.Errorf("%v: %s answers\n%s\nwant\n%s", sig, line, got, want)
		}
	}
}

// What is to be cancelled, or over, behind no time at all is so before it begins.
func TestNoTimeIsOverBeforeTheRun(t *testing.T) {
	none := new(time.Duration)
	for flag, c := range map[string]*config{"-cancel-after": {cancelAfter: none}, "-deadline": {deadline: none}} {
		s := newStops(c)
		ctx, end := s.begin()
		if ctx.Err() == nil {
			t.Errorf("%s 0: the context of the run goes on", flag)
		}
		end()
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

// stopsHelper tells the test binary to be a program that does not end when it is cancelled.
const stopsHelper = "ARCHIVIST_TEST_STOPS"

func helpStops() {
	s := newStops(new(config))
	fmt.Fprintln(os.Stderr, "ready")
	<-s.ctx.Done()
	<-s.done
	fmt.Fprintln(os.Stderr, "cancelled")
	<-time.After(time.Hour) // for a signal
	os.Exit(0)
}

func TestASecondSignalKills(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stopsHelper+"=1")
	r := start(t, cmd)
	for _, state := range []string{"ready", "cancelled"} {
		r.until(t, state)
		if err := r.Process.Signal(syscall.SIGTERM); err != nil { // an interrupt may have been ignored before, as of what a shell runs in the background
			t.Fatal(err)
		}
	}
	r.end()
	if status := r.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("the second signal left the program with %v", r.ProcessState)
	}
}

func TestMetricsAreServedWhileTheRunIsAtWork(t *testing.T) {
	r := start(t, command(t, "-store", t.TempDir(), "-slow", "1h", "-metrics", "127.0.0.1:0", labyrinth))
	line := r.until(t, `^metrics at http://`)
	r.until(t, `^  classify`)
	url := strings.TrimSpace(strings.TrimPrefix(line, "metrics at "))
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
	for _, want := range []string{`node="classify"`, `graph="archivist"`, "pawl_"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the metrics have no %s:\n%s", want, body)
		}
	}
	if err := r.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r.end().exits(t, 3)
	if _, err := http.Get(url); err == nil {
		t.Error("metrics are still served")
	}
}
