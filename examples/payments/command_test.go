package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

func TestPaymentsWrongUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  []string
		words string
	}{
		{nil, "SUM FROM TO"},
		{[]string{"12", "ada"}, "SUM FROM TO"},
		{[]string{"12", "ada", "ada"}, "somebody else"},
		{[]string{"12", "", "ada"}, "somebody else"},
		{[]string{"12", "ada", "gra\x1b[31mce"}, "control character"},
		{[]string{"12", "\xff", "grace"}, "not UTF-8"},
		{[]string{"0", "ada", "grace"}, "not a sum"},
		{[]string{"12.5", "ada", "grace"}, "not a sum"},
		{[]string{"-run", "", "12", "ada", "grace"}, "-run is empty"},
		{[]string{"-run", strings.Repeat("x", 2000), "12", "ada", "grace"}, "id"},
		{[]string{"-nonsense"}, "nonsense"},
		{[]string{"-resume", "-open"}, "can't be combined"},
		{[]string{"-resume", "12", "ada", "grace"}, "takes no payment"},
		{[]string{"-resolve", "perhaps"}, "happened:NUMBER"},
		{[]string{"-resolve", "not-happened"}, "not-happened:REASON"},
		{[]string{"-resolve", "happened"}, "happened:NUMBER"},
		{[]string{"-reject", "-approve"}, "can't be combined"},
		{[]string{"-fault", "transfer:explode", "12", "ada", "grace"}, "explode"},
		{[]string{"-fault", "transfer:refuse", "-open"}, "-fault"},
	} {
		store := filepath.Join(t.TempDir(), "store")
		_, err := parse(append([]string{"-store", store}, c.args...))
		if line := complaint(err); exitStatus(err) != 2 || !strings.Contains(line, c.words) {
			t.Errorf("payments %.80q: exit status %d, %q, want 2 and %q", c.args, exitStatus(err), line, c.words)
		}
	}
}

func TestPaymentsCommandPays(t *testing.T) {
	t.Parallel()
	c := newCounter(t, nil)
	o := c.do(t, "-run", "p", "120.00", "ada", "grace").exits(t, 0)
	if want := "120.00 was paid to grace (T-3)\n"; o.stdout != want {
		t.Errorf("printed %q, want %q", o.stdout, want)
	}
	for _, step := range []string{"reserve", "charge", "transfer", "notify"} {
		if !strings.Contains(o.stderr, "  "+step) {
			t.Errorf("no line tells of %s:\n%s", step, o.stderr)
		}
	}
	// The same line again does nothing, and another payment of the same name is refused.
	again := c.do(t, "-run", "p", "120", "ada", "grace").exits(t, 0)
	if again.stdout != o.stdout {
		t.Errorf("the second time it printed %q", again.stdout)
	}
	c.do(t, "-run", "p", "121", "ada", "grace").complains(t, 2, "120.00 from ada to grace")
	c.do(t, "-run", "p", "-resume").complains(t, 1, `"p"`, "completed")
	c.do(t, "-resume").complains(t, 1, "every payment is completed")
	settled(t, c.bank.Statement(), orderOf(small), true)
}

func TestPaymentsLargeSumsWaitForAPerson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		decide string
		paid   bool
		says   string
	}{
		{"-approve", true, "was paid to grace"},
		{"-reject", false, "it was not approved; nothing had been taken"},
	} {
		at := newCounter(t, nil)
		waits := at.do(t, "-run", "p", "1000.01", "ada", "grace").exits(t, 3)
		if !strings.Contains(waits.stderr, " -run p -open\n") || !strings.Contains(waits.stderr, " -store ") {
			t.Errorf("what waits does not say what to type:\n%s", waits.stderr)
		}
		items := decoded[[]item](t, at.do(t, "-open", "-json").exits(t, 0))
		if len(items) != 1 || len(items[0].Waits) != 1 || items[0].Waits[0].Question != "may 1000.01 be charged?" {
			t.Errorf("-open lists %+v", items)
		}
		at.do(t, "-run", "p", "-resume").exits(t, 3)
		at.do(t, "-run", "p", "-resolve", "not-happened:no").complains(t, 1, "nothing is in doubt")
		if s := at.bank.Statement(); s.Balances["ada"] != 0 || s.Held != 100_001 {
			t.Errorf("before it is approved %v has moved, and %d is held", s.Balances, s.Held)
		}
		o := at.do(t, c.decide, "-by", "eve").exits(t, 0)
		if !strings.Contains(o.stdout, c.says) {
			t.Errorf("%q printed %q, want %q", c.decide, o.stdout, c.says)
		}
		settled(t, at.bank.Statement(), orderOf(large), c.paid)
	}
}

// A finding is of one payment: which one, where several are in doubt, -run has to say, and what the
// bank has made for another payment is believed of none. -open prints what to type.
func TestPaymentsSeveralInDoubt(t *testing.T) {
	t.Parallel()
	c := newCounter(t, nil)
	for _, id := range []string{"one", "it's two"} {
		c.do(t, "-run", id, "-fault", "transfer:lose-reply", "120", "ada", "grace").exits(t, 3)
	}
	sent := c.bank.Statement().Transfers
	found := "happened:" + sent[0].Number
	c.do(t, "-resolve", found).complains(t, 2, "name one with -run", "it's two, one")
	c.do(t, "-run", "it's two", "-resolve", found).complains(t, 1, "no transfer", `"it's two"`)
	o := c.do(t, "-open").exits(t, 0)
	for _, line := range []string{
		"-statement\n", "-run one -resolve happened:NUMBER\n", "-run one -resolve not-happened:REASON\n",
		`-run 'it'\''s two' -resolve happened:NUMBER` + "\n",
	} {
		if !strings.Contains(o.stdout, line) {
			t.Errorf("-open does not say %q:\n%s", line, o.stdout)
		}
	}
	c.do(t, "-run", "one", "-resolve", found).exits(t, 0)
	c.do(t, "-resolve", "happened:"+sent[1].Number).exits(t, 0) // the only one now
	c.do(t, "-resolve", found).complains(t, 1, "nothing is in doubt")
}

// A payment of which nothing can be told hides no other: it is passed by, and told.
func TestPaymentsBesideADamagedOne(t *testing.T) {
	t.Parallel()
	w, store := newWorld(t), new(memory.Faulty)
	d, err := dispatcher.New(w.graph(t), store, dispatcher.Options{Gates: gates()})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"waits", "doubt", "damaged"} {
		o := Order{Number: id, From: "ada", To: "grace", Cents: small}
		if w.open(t, bank.Fault{Operation: bank.Transfer, Kind: bank.LoseReply}); id == "waits" {
			o.Cents = large
		}
		if _, err := d.Run(t.Context(), id, func(p *Payment) { p.Order.Set(o) }); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	store.Spoil("damaged", checkpoint.PartInfo)
	var told, listed strings.Builder
	s := &session{config: new(config), stderr: &told, dispatcher: d}
	for _, which := range []func(context.Context) (string, error){s.doubted, s.newest} {
		told.Reset()
		if id, err := which(t.Context()); id != "doubt" || err != nil {
			t.Errorf("found %q, %v, want doubt", id, err)
		}
		if want := `payments: payment "damaged" can't be read: `; !strings.HasPrefix(told.String(), want) || strings.Count(told.String(), "\n") != 1 {
			t.Errorf("told %q, want %q", told.String(), want)
		}
	}
	s.approve = true
	if id, err := s.newest(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "-run") {
		t.Errorf("an approval that may be of the damaged one is of %q, %v", id, err)
	}
	err = s.list(t.Context(), &listed)
	if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(listed.String(), "waits is interrupted") || !strings.Contains(listed.String(), "doubt is interrupted") {
		t.Errorf("listed\n%s\nand then %v", listed.String(), err)
	}
}

// What the dispatcher warns of, and whoever was abandoned, is told in either form.
func TestPaymentsWarnings(t *testing.T) {
	t.Parallel()
	res := &dispatcher.Result[Payment]{
		Run: "p", Status: checkpoint.StatusCompleted, State: new(Payment),
		Abandoned: []string{"notify"}, Warnings: []string{"the run has rested for 26h"},
	}
	for _, asJSON := range []bool{false, true} {
		var stdout, stderr strings.Builder
		s := &session{config: &config{json: asJSON}, stderr: &stderr}
		if err := s.tell(&stdout, res); err != nil {
			t.Error(err)
		}
		told := stderr.String()
		if asJSON {
			told = stdout.String()
		}
		for _, want := range []string{"notify did not stop in time and was abandoned", "the run has rested for 26h"} {
			if !strings.Contains(told, want) {
				t.Errorf("json=%t: %q is not told:\n%s", asJSON, want, told)
			}
		}
	}
}

// What was charged for a transfer that the bank refuses goes back.
func TestPaymentsRefusedTransferIsRefunded(t *testing.T) {
	t.Parallel()
	c := newCounter(t, nil)
	o := c.do(t, "-run", "p", "-fault", "transfer:refuse", "120", "ada", "grace").exits(t, 0)
	if !strings.Contains(o.stdout, "transfer is refused") || !strings.Contains(o.stdout, "120.00 went back to you") {
		t.Errorf("printed %q", o.stdout)
	}
	settled(t, c.bank.Statement(), orderOf(small), false)
}

// The program serves the bank that it pays with.
func TestPaymentsServe(t *testing.T) {
	t.Parallel()
	c := newCounter(t, nil)
	cmd := c.command(t, "-serve", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.url = strings.TrimSpace(line[strings.Index(line, "http://"):])
	c.do(t, "-fault", "transfer:lose-reply", "120", "ada", "grace").exits(t, 3)
	s := decoded[bank.Statement](t, c.do(t, "-statement").exits(t, 0))
	if len(s.Transfers) != 1 {
		t.Errorf("the statement has the transfers %v", s.Transfers)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted, the bank ends with %v", err)
	}
	c.do(t, "-statement").complains(t, 1, "unavailable")
}
