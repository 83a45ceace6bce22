package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/examples/payments/bank"
)

// A gate holds the first request for an operation, before the bank has it or behind, until the test
// lets it go; then whoever asked gets no reply.
type gate struct {
	bank      http.Handler
	operation bank.Operation
	behind    bool
	once      sync.Once
	held      chan struct{} // closed when the request is there
	let       chan struct{} // closed by the test
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first := false
	if r.URL.Path == "/"+string(g.operation) {
		g.once.Do(func() { first = true })
	}
	if !first {
		g.bank.ServeHTTP(w, r)
		return
	}
	if g.behind {
		g.bank.ServeHTTP(httptest.NewRecorder(), r)
	}
	close(g.held)
	<-g.let
	panic(http.ErrAbortHandler)
}

// A payment whose process is killed while the bank is at work goes on with the next command. What
// takes a key is asked for again; a transfer is in doubt, which -open tells, -resume does not
// change and -resolve decides.
func TestPaymentsKilledWhileTheBankIsAtWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		operation bank.Operation
		behind    bool
	}{
		{"charge lost", bank.Charge, false},
		{"charged", bank.Charge, true},
		{"transfer lost", bank.Transfer, false},
		{"transferred", bank.Transfer, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &gate{operation: c.operation, behind: c.behind, held: make(chan struct{}), let: make(chan struct{})}
			at := newCounter(t, func(b http.Handler) http.Handler { g.bank = b; return g })
			at.kill(t, g, "-run", "p", "120.00", "ada", "grace")

			doubts := at.doubts(t)
			if c.operation != bank.Transfer {
				if len(doubts) != 0 {
					t.Errorf("in doubt are %v", doubts)
				}
				at.do(t, "-run", "p", "-resume").exits(t, 0)
			} else {
				at.resolves(t, doubts)
			}
			settled(t, at.bank.Statement(), orderOf(small), true)
			if again := at.doubts(t); len(again) != 0 {
				t.Errorf("of the completed payment %v is in doubt", again)
			}
		})
	}
}

// kill runs the program and kills it, as kill -9 does, when its request is at the gate.
func (c *counter) kill(t *testing.T, g *gate, args ...string) {
	t.Helper()
	cmd := c.command(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.held:
	case <-t.Context().Done():
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	close(g.let)
}

// doubts are the effects that -open says are in doubt.
func (c *counter) doubts(t *testing.T) []inDoubt {
	t.Helper()
	items := decoded[[]item](t, c.do(t, "-run", "p", "-open", "-json").exits(t, 0))
	if len(items) != 1 {
		t.Fatalf("-open lists %v", items)
	}
	return items[0].Doubts
}

// resolves has a person decide the transfer that is in doubt, by the books of the bank.
func (c *counter) resolves(t *testing.T, doubts []inDoubt) {
	t.Helper()
	if len(doubts) != 1 || doubts[0].Operation != "bank.transfer" || len(doubts[0].Advice) != 3 {
		t.Fatalf("in doubt are %v, want the transfer", doubts)
	}
	before := c.bank.Statement().Transfers
	for range 2 {
		r := decoded[report](t, c.do(t, "-run", "p", "-resume", "-json").exits(t, 3))
		if len(r.Waits) != 1 || r.Waits[0].Path != "transfer" {
			t.Errorf("after -resume the payment waits for %v", r.Waits)
		}
	}
	if now := c.bank.Statement().Transfers; !slices.Equal(now, before) {
		t.Errorf("-resume has transferred %v, before it were %v", now, before)
	}
	found := "not-happened:the bank knows nothing of it"
	for _, sent := range c.bank.Statement().Of(doubts[0].ID) {
		found = "happened:" + sent.Number
	}
	c.do(t, "-run", "p", "-resolve", "happened:T-99").complains(t, 1, `no transfer "T-99"`, doubts[0].ID, " -store ", " -statement")
	if len(before) > 0 {
		c.do(t, "-run", "p", "-resolve", "not-happened:a guess").complains(t, 1, "the bank has made the transfer", found)
	}
	c.do(t, "-run", "p", "-resolve", found).exits(t, 0)
}
