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

	"github.com/pawlgo/pawl/dispatcher"
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

// What happens behind the close of what is shown, as an answer that a person gives then, is not
// shown and hurts nobody.
func TestNothingIsShownBehindAClose(t *testing.T) {
	_, far := terminal(t)
	defer far.Close()
	p := newLive(far, false)
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	p.observe(dispatcher.Event{Kind: dispatcher.RunStarted})
}

// talk runs the program with its input and standard error on a terminal, where a person types a
// line whenever what is shown ends in the prompt before it. It returns what was shown, and the
// outcome.
func talk(t *testing.T, typed [][2]string, args ...string) (string, outcome) {
	t.Helper()
	near, far := terminal(t)
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "TERM=dumb")
	var stdout strings.Builder
	cmd.Stdin, cmd.Stderr, cmd.Stdout = far, far, &stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that keys are signals
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	buffer := make([]byte, 4096)
	for last := 0; ; {
		n, err := near.Read(buffer) // an error at the end, when nobody has the far end open any more
		shown.Write(buffer[:n])
		if len(typed) > 0 && strings.HasSuffix(shown.String()[last:], typed[0][0]) {
			last = shown.Len()
			if _, err := near.WriteString(typed[0][1]); err != nil {
				t.Fatal(err)
			}
			typed = typed[1:]
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait() // the exit status tells
	if len(typed) > 0 {
		t.Errorf("nobody asked %q:\n%s", typed[0][0], shown.String())
	}
	return shown.String(), outcome{args, cmd.ProcessState.ExitCode(), stdout.String(), shown.String()}
}

// A person at a terminal is asked there, and the same command goes on.
func TestDialog(t *testing.T) {
	const prompt, dot, end = "approve, edit or reject? ", "dot behind it.\r\n", "\x04"
	for _, c := range []struct {
		typed  [][2]string
		status int
		says   string
	}{
		{[][2]string{{prompt, "what?\n"}, {prompt, "\n"}, {prompt, "A\n"}}, 0, "The best match for “labyrinth”"},
		{[][2]string{{prompt, "reject\n"}}, 0, "did not let it go out"},
		{[][2]string{{prompt, "edit\n"}, {dot, "Read it.\nTwice.\n.\n"}}, 0, "Read it.\nTwice.\n\n" + edited},
		{[][2]string{{prompt, "Edit: Read it: twice.\n"}}, 0, "Read it: twice.\n\n" + edited}, // as -answer takes it
		{[][2]string{{prompt, "edit:\n"}, {prompt, "r: no\n"}, {prompt, "r\n"}}, 0, "did not let it go out"},
		{[][2]string{{prompt, "e\n"}, {dot, ".\n"}, {prompt, "r\n"}}, 0, "did not let it go out"},
		{[][2]string{{prompt, end}}, 3, ""},
		{[][2]string{{prompt, "e\n"}, {dot, end}}, 3, ""},
		{[][2]string{{prompt, "\x03"}}, 3, ""}, // an interrupt from the keyboard
	} {
		shown, o := talk(t, c.typed, "-store", t.TempDir(), "-approve", labyrinth)
		o.exits(t, c.status)
		if !strings.Contains(o.stdout, c.says) || (o.stdout == "") != (c.says == "") {
			t.Errorf("typed %q: printed\n%s", c.typed, o.stdout)
		}
		if strings.Contains(shown, "go on with:") != (c.status == 3) {
			t.Errorf("typed %q: shown\n%s", c.typed, shown)
		}
	}
	_, o := talk(t, [][2]string{{"> ", "labyrinth\n"}}, "-store", t.TempDir())
	if o.exits(t, 0); !strings.Contains(o.stdout, "“Labyrinths”") {
		t.Errorf("printed\n%s", o.stdout)
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
