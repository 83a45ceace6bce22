package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/examples/payments/bank"
)

// beMain tells the test binary to be the program.
const beMain = "PAYMENTS_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// A counter is a bank, and where the program finds it and keeps its runs.
type counter struct {
	bank  *bank.Bank
	url   string
	store string
}

// newCounter opens a bank for a test. Requests reach it by way of round, if that is not nil.
func newCounter(t *testing.T, round func(http.Handler) http.Handler) *counter {
	t.Helper()
	c := &counter{bank: new(bank.Bank), store: t.TempDir()}
	var h http.Handler = c.bank
	if round != nil {
		h = round(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// command is the program at this counter.
func (c *counter) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"-store", c.store, "-service", c.url}, args...)...)
	cmd.Env = append(os.Environ(), beMain+"=1")
	return cmd
}

// do runs the program to its end.
func (c *counter) do(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, c.command(t, args...))
}

// An outcome is what a command leaves behind.
type outcome struct {
	args           []string
	exit           int
	stdout, stderr string
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
		t.Fatalf("payments %q: exit status %d, want %d\n%s%s", o.args, o.exit, status, o.stdout, o.stderr)
	}
	return o
}

// complains fails the test unless the command was refused with one line that has these words.
func (o outcome) complains(t *testing.T, status int, words ...string) {
	t.Helper()
	o.exits(t, status)
	if o.stdout != "" || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "payments: ") {
		t.Errorf("payments %q printed %q and\n%s", o.args, o.stdout, o.stderr)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("payments %q: %q does not say %q", o.args, o.stderr, w)
		}
	}
}

// decoded is the JSON that a command has printed, of exactly the fields that T has.
func decoded[T any](t *testing.T, o outcome) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(o.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil || dec.More() {
		t.Fatalf("payments %q printed no object of its own: %v\n%s", o.args, err, o.stdout)
	}
	return v
}

// settled fails the test unless the bank has done what a payment has come to, and nothing else: the
// money is where it belongs, every operation that takes a key was done once at most and under one
// key, and there is no more than one transfer.
func settled(t *testing.T, s bank.Statement, o Order, paid bool) {
	t.Helper()
	moved, transfers := 0, 0
	if paid {
		moved, transfers = o.Cents, 1
	}
	if s.Balances[o.From] != -moved || s.Balances[o.To] != moved || s.House() != 0 || s.Held != 0 {
		t.Errorf("balances are %v with %d held, of %s, paid: %t", s.Balances, s.Held, o, paid)
	}
	if len(s.Transfers) != transfers {
		t.Errorf("transfers are %v, of %s, paid: %t", s.Transfers, o, paid)
	}
	keys := map[bank.Operation]string{}
	for key, c := range s.Keys {
		if other, ok := keys[c.Operation]; ok {
			t.Errorf("%s was asked for under the keys %s and %s", c.Operation, other, key)
		}
		keys[c.Operation] = key
		if c.Done > 1 {
			t.Errorf("%s was done %d times under the key %s", c.Operation, c.Done, key)
		}
	}
	if len(s.Messages) != 1 {
		t.Errorf("messages are %v, want one", s.Messages)
	}
}
