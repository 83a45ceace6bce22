package bank_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/pawlgo/pawl/examples/payments/bank"
)

func newBank(t *testing.T) (*bank.Bank, *bank.Client) {
	t.Helper()
	b := new(bank.Bank)
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return b, &bank.Client{URL: server.URL, HTTP: server.Client()}
}

// must does what has to succeed.
func must(t *testing.T, c *bank.Client, o bank.Operation, key string, r bank.Request) bank.Reply {
	t.Helper()
	reply, err := c.Do(t.Context(), o, key, r)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

var (
	held    = bank.Request{Payment: "p", From: "ada", Cents: 500}
	charged = bank.Request{Payment: "p", Cents: 500}
	sent    = bank.Request{Reference: "p", To: "grace", Cents: 500}
)

// The same key again is the same reply, and nothing is done; without a key everything is done
// again.
func TestKeys(t *testing.T) {
	b, c := newBank(t)
	must(t, c, bank.Reserve, "r", held)
	first := must(t, c, bank.Charge, "c", charged)
	if again := must(t, c, bank.Charge, "c", charged); again != first {
		t.Errorf("the second reply is %v, the first was %v", again, first)
	}
	if _, err := c.Do(t.Context(), bank.Charge, "c", bank.Request{Payment: "q", Cents: 500}); !errors.Is(err, bank.ErrRefused) {
		t.Errorf("a key that was used for another payment gets %v", err)
	}
	if _, err := c.Do(t.Context(), bank.Charge, "", charged); !errors.Is(err, bank.ErrRefused) {
		t.Errorf("a charge without a key gets %v", err)
	}
	must(t, c, bank.Transfer, "", sent)
	must(t, c, bank.Transfer, "", sent)
	s := b.Statement()
	if want := (bank.Count{Operation: bank.Charge, Asked: 3, Done: 1, Cents: 500}); s.Keys["c"] != want {
		t.Errorf("the key was counted as %+v, want %+v", s.Keys["c"], want)
	}
	if s.House() != -500 || s.Balances["ada"] != -500 || s.Balances["grace"] != 1000 || len(s.Of("p")) != 2 {
		t.Errorf("balances are %v, transfers %v", s.Balances, s.Transfers)
	}
}

// A refund gives back what was charged or held, once, and nothing comes after it.
func TestRefundEndsAPayment(t *testing.T) {
	b, c := newBank(t)
	must(t, c, bank.Reserve, "r", held)
	must(t, c, bank.Charge, "c", charged)
	for range 2 {
		if back := must(t, c, bank.Refund, "b", bank.Request{Payment: "p"}); back.Cents != 500 {
			t.Errorf("%d came back", back.Cents)
		}
	}
	must(t, c, bank.Refund, "unheard", bank.Request{Payment: "q"})
	for _, late := range []struct {
		o   bank.Operation
		key string
		r   bank.Request
	}{
		{bank.Charge, "late", charged},
		{bank.Refund, "late", bank.Request{Payment: "p"}},
		{bank.Reserve, "later", bank.Request{Payment: "q", From: "ada", Cents: 1}},
	} {
		if _, err := c.Do(t.Context(), late.o, late.key, late.r); !errors.Is(err, bank.ErrRefused) {
			t.Errorf("%s after the refund gets %v", late.o, err)
		}
	}
	if s := b.Statement(); s.House() != 0 || s.Balances["ada"] != 0 || s.Held != 0 {
		t.Errorf("balances are %v, %d is held", s.Balances, s.Held)
	}
}

func TestLimit(t *testing.T) {
	_, c := newBank(t)
	must(t, c, bank.Reserve, "1", bank.Request{Payment: "1", From: "ada", Cents: bank.Limit - 1})
	must(t, c, bank.Charge, "1c", bank.Request{Payment: "1", Cents: bank.Limit - 1})
	must(t, c, bank.Reserve, "2", bank.Request{Payment: "2", From: "ada", Cents: 1})
	if _, err := c.Do(t.Context(), bank.Reserve, "3", bank.Request{Payment: "3", From: "ada", Cents: 1}); !errors.Is(err, bank.ErrRefused) {
		t.Errorf("more than there is can be reserved: %v", err)
	}
}

// Each fault does what it says, once, and the client can tell what is certain from what is not.
func TestFaults(t *testing.T) {
	for kind, want := range map[bank.FaultKind]struct {
		err  error // nil: nobody knows
		done int
	}{
		bank.LoseRequest: {nil, 0},
		bank.LoseReply:   {nil, 1},
		bank.Slow:        {nil, 1}, // for the client, who goes away before there is a reply
		bank.Refuse:      {bank.ErrRefused, 0},
		bank.Unavailable: {bank.ErrUnavailable, 0},
	} {
		b, c := newBank(t)
		f := bank.Fault{Operation: bank.Transfer, Kind: kind}
		ctx := t.Context()
		if kind == bank.Slow {
			f.Delay = time.Hour
			hurry, cancel := context.WithCancel(ctx)
			ctx = hurry
			go func() { // ends when the transfer has been made
				defer cancel()
				for len(b.Statement().Transfers) == 0 && t.Context().Err() == nil {
					runtime.Gosched()
				}
			}()
		}
		if err := c.Misbehave(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(ctx, bank.Transfer, "", sent)
		certain := errors.Is(err, bank.ErrRefused) || errors.Is(err, bank.ErrUnavailable)
		if err == nil || want.err != nil && !errors.Is(err, want.err) || want.err == nil && certain {
			t.Errorf("%s: the client is told %v", kind, err)
		}
		if n := len(b.Statement().Transfers); n != want.done {
			t.Errorf("%s: %d transfers, want %d", kind, n, want.done)
		}
		must(t, c, bank.Transfer, "", sent)
	}
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]bank.Fault{
		"transfer:lose-reply": {Operation: bank.Transfer, Kind: bank.LoseReply},
		"charge:slow:2s":      {Operation: bank.Charge, Kind: bank.Slow, Delay: 2 * time.Second},
		"transfer":            {},
		"steal:refuse":        {},
		"charge:explode":      {},
		"charge:slow":         {},
		"charge:slow:soon":    {},
		"charge:refuse:2s":    {},
		"a:b:c:d":             {},
	} {
		f, err := bank.ParseFault(text)
		if (err == nil) != (want.Kind != "") || err == nil && f != want {
			t.Errorf("%q is %+v, %v", text, f, err)
		}
	}
}

// A bank that is not there has done nothing.
func TestNobodyThere(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	c := &bank.Client{URL: server.URL}
	if _, err := c.Do(t.Context(), bank.Charge, "c", charged); !errors.Is(err, bank.ErrUnavailable) {
		t.Errorf("the client is told %v", err)
	}
}

func TestStatementOverHTTP(t *testing.T) {
	b, c := newBank(t)
	must(t, c, bank.Reserve, "r", held)
	must(t, c, bank.Notify, "n", bank.Request{To: "ada", Text: "hello"})
	got, err := c.Statement(t.Context())
	if err != nil || !reflect.DeepEqual(got, b.Statement()) {
		t.Errorf("the statement is %+v, %v, want %+v", got, err, b.Statement())
	}
	if _, err := c.Do(t.Context(), "steal", "s", held); !errors.Is(err, bank.ErrRefused) {
		t.Errorf("an unknown operation gets %v", err)
	}
}
