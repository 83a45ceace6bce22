package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
	"github.com/pawlgo/pawl/pawltest"
)

const (
	small = 12_000
	large = Large + 1
	never = 1000 // times that something goes wrong, which is always
)

// crashed are payments, one for each way through the graph and each way in which the bank may fail.
// What is lost under a key is lost three times, since http.Transport by itself asks once more.
var crashed = []struct {
	name    string
	cents   int
	fault   bank.Fault
	granted bool
	paid    bool
}{
	{name: "small", cents: small, paid: true},
	{name: "large", cents: large, granted: true, paid: true},
	{name: "rejected", cents: large},
	{name: "large later", cents: large, fault: bank.Fault{Operation: bank.Charge, Kind: bank.Unavailable, Times: 2}, granted: true, paid: true},
	{name: "large in silence", cents: large, fault: bank.Fault{Operation: bank.Charge, Kind: bank.LoseReply, Times: 3}, granted: true, paid: true},
	{name: "no money", cents: bank.Limit + 1, granted: true},
	{name: "charge refused", cents: small, fault: bank.Fault{Operation: bank.Charge, Kind: bank.Refuse, Times: never}},
	{name: "charge lost", cents: small, fault: bank.Fault{Operation: bank.Charge, Kind: bank.LoseRequest, Times: 3}, paid: true},
	{name: "charge in silence", cents: small, fault: bank.Fault{Operation: bank.Charge, Kind: bank.LoseReply, Times: 3}, paid: true},
	{name: "charge always in silence", cents: small, fault: bank.Fault{Operation: bank.Charge, Kind: bank.LoseReply, Times: never}},
	{name: "transfer refused", cents: small, fault: bank.Fault{Operation: bank.Transfer, Kind: bank.Refuse, Times: never}},
	{name: "transfer later", cents: small, fault: bank.Fault{Operation: bank.Transfer, Kind: bank.Unavailable}, paid: true},
	{name: "transfer lost", cents: small, fault: bank.Fault{Operation: bank.Transfer, Kind: bank.LoseRequest}, paid: true},
	{name: "transfer in silence", cents: small, fault: bank.Fault{Operation: bank.Transfer, Kind: bank.LoseReply}, paid: true},
	{name: "refund in silence", cents: large, fault: bank.Fault{Operation: bank.Refund, Kind: bank.LoseReply, Times: 3}},
}

// A payment whose process dies at any write to its store comes to its end: what takes a key was
// asked for again under the same one only, a transfer was made once or was in doubt and said so,
// and the money is where it belongs.
func TestPaymentsCrashAtEveryAppend(t *testing.T) {
	t.Parallel()
	for _, c := range crashed {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, found := newWorld(t), 0
			for _, written := range []bool{false, true} {
				for k := 1; ; k++ {
					store := dying(k, written)
					w.open(t, c.fault)
					p := &clerk{world: w, store: store, granted: c.granted, order: orderOf(c.cents)}
					died := p.untilItDies(t)
					p.toItsEnd(t)
					settled(t, w.bank.Load().Statement(), p.order, c.paid)
					if t.Failed() {
						t.Fatalf("the process died at write %d, written=%t", k, written)
					}
					found += p.found
					if !died {
						break
					}
				}
			}
			if c.paid && found == 0 {
				t.Error("no process found the transfer in doubt that another has left")
			}
		})
	}
}

// A payment whose every process dies comes to its end too. Their lives differ, or they would all
// die in the same transfer.
func TestPaymentsCrashAgainAndAgain(t *testing.T) {
	t.Parallel()
	for _, c := range crashed {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for first := range 7 {
				life := func(process int) int { return 2 + (first+process)%7 }
				w.open(t, c.fault)
				p := &clerk{world: w, store: dying(life(0), first%2 == 0), granted: c.granted, order: orderOf(c.cents)}
				for process := 1; p.untilItDies(t); process++ {
					if process == 100 {
						t.Fatal("100 processes have not come to the end")
					}
					p.revive(t)
					dies(p.store, life(process), first%2 == 0)
				}
				settled(t, w.bank.Load().Statement(), p.order, c.paid)
			}
		})
	}
}

// dying is the store of a process that dies at its n-th write, which becomes durable or does not.
func dying(n int, written bool) *pawltest.Mortal {
	store := &pawltest.Mortal{Store: new(memory.Store)}
	dies(store, n, written)
	return store
}

func dies(store *pawltest.Mortal, n int, written bool) {
	if written {
		store.DieAfter(n)
	} else {
		store.DieBefore(n)
	}
}

func orderOf(cents int) Order { return Order{Number: "p", From: "ada", To: "grace", Cents: cents} }

// A world is a bank behind a server, which may be another bank each time.
type world struct {
	bank   atomic.Pointer[bank.Bank]
	client *bank.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := new(world)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.bank.Load().ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.client = &bank.Client{URL: server.URL, HTTP: server.Client()}
	w.open(t, bank.Fault{})
	return w
}

// open opens a new bank, with which this may go wrong.
func (w *world) open(t *testing.T, f bank.Fault) {
	t.Helper()
	w.bank.Store(new(bank.Bank))
	if f.Kind == "" {
		return
	}
	if err := w.bank.Load().Misbehave(f); err != nil {
		t.Fatal(err)
	}
}

func (w *world) graph(t *testing.T) *dag.Graph[Payment] {
	t.Helper()
	g, err := newGraph(&Desk{w.client, time.Minute, time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A clerk brings a payment to its end, whatever it takes.
type clerk struct {
	*world
	store   *pawltest.Mortal
	order   Order
	granted bool
	found   int // processes that found something in doubt when they began
}

func (p *clerk) dispatcher(t *testing.T) *dispatcher.Dispatcher[Payment] {
	t.Helper()
	d, err := dispatcher.New(p.graph(t), p.store, dispatcher.Options{Paranoid: true, Gates: gates()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// untilItDies is the life of the first process, and tells whether it died.
func (p *clerk) untilItDies(t *testing.T) bool {
	t.Helper()
	err := p.live(t)
	if died := p.store.Died(); died != errors.Is(err, pawltest.ErrDead) {
		t.Fatalf("the process died: %t, and its call returns %v", died, err)
	}
	return err != nil
}

// revive begins the life of another process.
func (p *clerk) revive(t *testing.T) {
	t.Helper()
	if err := p.store.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// toItsEnd is the life of the second process, which does not die.
func (p *clerk) toItsEnd(t *testing.T) {
	t.Helper()
	p.revive(t)
	if err := p.live(t); err != nil {
		t.Fatal(err)
	}
}

// live runs the payment, and decides what it waits for, until it is completed or the process dies.
func (p *clerk) live(t *testing.T) error {
	t.Helper()
	ctx, d := t.Context(), p.dispatcher(t)
	if len(p.doubted(t, d)) > 0 {
		p.found++
	}
	for {
		was := p.doubted(t, d)
		res, err := d.Run(ctx, p.order.Number, func(s *Payment) { s.Order.Set(p.order) })
		if err == nil || p.store.Died() || !errors.Is(err, dispatcher.ErrInterrupted) {
			return err
		}
		doubts := p.doubted(t, d)
		if len(was) > 0 && !slices.Equal(was, doubts) {
			t.Fatalf("in doubt was %v, and after a run without a word of it is %v", was, doubts)
		}
		for _, i := range res.Interrupts {
			if err := p.decide(ctx, d, i, doubts); err != nil {
				return err
			}
		}
	}
}

// doubted lists what -open says is in doubt.
func (p *clerk) doubted(t *testing.T, d *dispatcher.Dispatcher[Payment]) []string {
	t.Helper()
	o, err := d.Open(t.Context(), p.order.Number)
	if errors.Is(err, dispatcher.ErrNotFound) || p.store.Died() {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range o.InDoubt() {
		all = append(all, e.Path+"#"+e.Key)
	}
	return all
}

// verdict is what the clerk says about large sums.
func (p *clerk) verdict(dispatcher.Action) dispatcher.Verdict {
	if p.granted {
		return dispatcher.Approve
	}
	return dispatcher.Reject
}

// decide ends what the payment waits for. Whether a transfer was made the books of the bank tell.
func (p *clerk) decide(ctx context.Context, d *dispatcher.Dispatcher[Payment], i dispatcher.Interrupt, doubts []string) error {
	by := dispatcher.Author("a test")
	if i.Kind == dispatcher.KindEffect {
		if err := p.unanswered(ctx, i.Path); err != nil {
			return err
		}
		return d.Answer(ctx, p.order.Number, i.ID, p.verdict(dispatcher.Action{}), by)
	}
	if name := i.Path + "#" + i.Key; !slices.Equal(doubts, []string{name}) || name != "transfer#transfer" {
		return fmt.Errorf("%s waits, and in doubt are %v", name, doubts)
	}
	found := dispatcher.NotHappened("the bank knows nothing of it")
	for _, sent := range p.bank.Load().Statement().Of(p.order.Number + "/transfer#transfer") {
		found = dispatcher.Happened(bank.Reply{Number: sent.Number, Cents: sent.Cents})
	}
	return d.Resolve(ctx, p.order.Number, i.Path, i.Key, found, by)
}

// unanswered returns an error if the log has what a person said about a visit, so that nobody
// should be asked again. What a process was told and did not keep has to be said once more.
func (p *clerk) unanswered(ctx context.Context, path string) error {
	asked := map[string]bool{} // by the ids of interrupts
	for e, err := range p.store.Read(ctx, p.order.Number, 0, 0) {
		switch {
		case err != nil:
			return err
		case e.Kind == checkpoint.Interrupted && e.Path == path:
			asked[e.ID] = true
		case e.Kind == checkpoint.Answered && asked[e.ID]:
			return fmt.Errorf("a person is asked about %s again, and entry %d is the answer", path, e.Seq)
		}
	}
	return nil
}

// No node does anything twice outside an effect, and none needs what another has left in memory.
func TestPaymentsRunAgainWithoutHarm(t *testing.T) {
	t.Parallel()
	for _, c := range crashed[:6] {
		w := newWorld(t)
		p := &clerk{granted: c.granted}
		pawltest.Crash(t, nil, func(s *Payment) {
			s.Order.Set(orderOf(c.cents))
		},
			pawltest.World(func() any { return w.bank.Load().Statement() }),
			pawltest.Reset(func() { w.open(t, bank.Fault{}) }),
			pawltest.Approvals(gates(), p.verdict),
			pawltest.Rebuild(func() *dag.Graph[Payment] { return w.graph(t) }))
	}
}
