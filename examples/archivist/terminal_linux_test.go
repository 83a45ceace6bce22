package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal opens a pseudo-terminal: what is written to its far end is read from its near one.
func terminal(t *testing.T) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { near.Close() })
	number, locked := int32(0), int32(0)
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, near.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

// shown runs the program with its standard error on a terminal, and returns what that got.
func shown(t *testing.T, env string) string {
	t.Helper()
	near, far := terminal(t)
	cmd := command(t, "-store", t.TempDir(), "-slow", "100ms", labyrinth)
	cmd.Env = append(cmd.Env, "TERM=xterm", env)
	cmd.Stderr = far
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(near) // it ends in an error when nobody has the far end open any more
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return string(text)
}

func TestLiveProgressOnATerminal(t *testing.T) {
	text := shown(t, "NO_COLOR=")
	for _, want := range []string{
		`\x1b\[32m✓\x1b\[0m compose-loop/2/validate +done`,
		`\x1b\[36m.\x1b\[0m search/library +running`,
		`\x1b\[4A`, // four scouts side by side are painted again
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("the terminal did not get %s:\n%q", want, text)
		}
	}
	if text := shown(t, "NO_COLOR=1"); strings.Contains(text, "m✓") || !strings.Contains(text, "✓ respond") {
		t.Errorf("with NO_COLOR the terminal got\n%q", text)
	}
	if text := shown(t, "TERM=dumb"); strings.Contains(text, "\x1b") || !strings.Contains(text, "respond") {
		t.Errorf("a dumb terminal got\n%q", text)
	}
}

// An answer that could not be written is no success.
func TestStandardOutputThatIsFull(t *testing.T) {
	for _, flag := range []string{"-json", "-json=false", "-graph=dot", "-history"} {
		store := t.TempDir()
		ask(t, store).exits(t, 0)
		args := []string{"-store", store, flag}
		if strings.HasPrefix(flag, "-json") {
			args = append(args, labyrinth)
		}
		cmd := command(t, args...)
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = full
		var stderr strings.Builder
		cmd.Stderr = &stderr
		err = cmd.Run()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s to a full device: %v\n%s", flag, err, stderr.String())
		}
		if err := full.Close(); err != nil {
			t.Error(err)
		}
	}
}
