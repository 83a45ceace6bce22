package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	children["failing"] = failWhenGone
	child() // does not return if this process was started by a test
	os.Exit(m.Run())
}

// A child that would wait for ever ends when its standard input does, and so with the process that
// started it.
func TestChildEndsWithItsInput(t *testing.T) {
	c, err := childOf("flight", t.TempDir(), "2")
	if err != nil {
		t.Fatal(err)
	}
	alive := inputOf(t, c)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, c)
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "in flight\n" {
		t.Fatalf("the child said %q, %v; want that it is in flight", said, err)
	}
	_ = alive.Close()
	if err := c.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("the child ended: %v; want that it was terminated", err)
	}
}

// A bench that is told to end, or that is the child of one that ended, leaves no store behind.
func TestBenchClearsAway(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(c *exec.Cmd, alive io.Closer) error
	}{
		{"terminated", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(syscall.SIGTERM) }},
		{"interrupted", func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(os.Interrupt) }},
		{"orphaned", func(_ *exec.Cmd, alive io.Closer) error { return alive.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := childOf("bench", "-only", "chain", "-dir", dir)
			if err != nil {
				t.Fatal(err)
			}
			alive := inputOf(t, c)
			c.Stderr = nil
			out, err := c.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			begin(t, c)
			news := bufio.NewReader(out)
			if said, err := news.ReadString('\n'); said != "bench: measuring chain\n" {
				t.Fatalf("the child said %q, %v; want that it measures", said, err)
			}
			if there, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(there) != 1 {
				t.Errorf("while it measures there are %q, %v; want one directory", there, err)
			}
			if err := test.end(c, alive); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(news)
			if err != nil || !strings.Contains(string(said), "signal received") {
				t.Errorf("the child said %q, %v; want why it ended", said, err)
			}
			if err := c.Wait(); err == nil || err.Error() != "exit status 1" {
				t.Errorf("the child ended: %v; want status 1", err)
			}
			if there, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(there) > 0 {
				t.Errorf("it left %q, %v; want nothing", there, err)
			}
		})
	}
}

// What fails since its directory is cleared away says nothing of its own, and does not end the
// bench before that has said why it ends.
func TestWhatFailsMeanwhileIsNotTold(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 { // which takes a while to clear away
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := childOf("failing", dir)
	if err != nil {
		t.Fatal(err)
	}
	inputOf(t, c)
	c.Stderr = nil
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, c)
	if said, err := io.ReadAll(out); err != nil || !strings.HasPrefix(string(said), "bench: terminated signal received") {
		t.Errorf("the child said %q, %v; want why it ended", said, err)
	}
	if err := c.Wait(); err == nil || err.Error() != "exit status 1" {
		t.Errorf("the child ended: %v; want status 1", err)
	}
}

// failWhenGone is a bench that is told to end, and whose measuring fails as soon as something of
// its directory is gone.
func failWhenGone(args []string) error {
	defer clearing(args[0])()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGTERM)
	}
	for err == nil {
		var left []string
		if left, err = filepath.Glob(filepath.Join(args[0], "*")); err == nil && len(left) < 2000 {
			err = os.ErrNotExist
		}
	}
	return err
}

// inputOf makes c read what the caller holds the other end of.
func inputOf(t *testing.T, c *exec.Cmd) (alive io.Closer) {
	in, alive, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), alive.Close() })
	c.Stdin = in
	return alive
}

// begin starts c, which does not outlive the test.
func begin(t *testing.T, c *exec.Cmd) {
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = c.Process.Kill()
		_ = c.Wait() // if nobody has
	})
}
