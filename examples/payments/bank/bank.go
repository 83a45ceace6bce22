package bank

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// An Operation is something that a bank does.
type Operation string

const (
	Reserve  Operation = "reserve"  // holds money of From for a payment
	Charge   Operation = "charge"   // takes what is held for a payment
	Refund   Operation = "refund"   // ends a payment: gives back what was held or charged
	Notify   Operation = "notify"   // sends Text to To
	Transfer Operation = "transfer" // sends money of the house to To, each time that it is asked
)

// Operations are all that there are.
var Operations = []Operation{Reserve, Charge, Transfer, Refund, Notify}

// Keyed reports whether the same request can be made again without harm, under the same key.
func (o Operation) Keyed() bool { return o != Transfer }

// A Request is what a bank is asked for. Each operation reads what it needs.
type Request struct {
	Payment   string `json:"payment"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Cents     int    `json:"cents,omitempty"`
	Text      string `json:"text,omitempty"`
	Reference string `json:"reference,omitempty"` // of a transfer: what its line in the books says
}

// A Reply is what came of it.
type Reply struct {
	Number string `json:"number"`          // of what was done, in the bank's books
	Cents  int    `json:"cents,omitempty"` // that have moved
}

// Limit is how many cents may be held of one customer and charged to him in all.
const Limit = 1_000_000

// house is the account that charges go to and that transfers come from.
const house = "house"

// A Bank is the service. The zero Bank has done nothing yet. It is safe for concurrent use.
type Bank struct {
	mu        sync.Mutex
	faults    []Fault
	balances  map[string]int // changes since the beginning, by account
	payments  map[string]*payment
	replies   map[string]kept // by idempotency key
	counts    map[string]Count
	transfers []Sent
	messages  []Message
	numbers   int
}

// A payment is money that is held or charged for one purpose.
type payment struct {
	from    string
	held    int
	charged int
	ended   bool // nothing more happens to it
}

// kept is a reply that is given again to whoever asks the same under its key.
type kept struct {
	operation Operation
	request   Request
	reply     Reply
}

// do does what is asked, once for each key. mu is held.
func (b *Bank) do(o Operation, key string, r Request) (Reply, error) {
	if !o.Keyed() {
		return b.apply(o, r)
	}
	if key == "" {
		return Reply{}, fmt.Errorf("%s needs an idempotency key", o)
	}
	b.count(key, Count{Operation: o, Asked: 1})
	if was, ok := b.replies[key]; ok {
		if was.operation != o || was.request != r {
			return Reply{}, fmt.Errorf("key %q was used for something else", key)
		}
		return was.reply, nil
	}
	reply, err := b.apply(o, r)
	if err != nil {
		return Reply{}, err // may be asked again: nothing was done
	}
	b.count(key, Count{Done: 1, Cents: reply.Cents})
	if b.replies == nil {
		b.replies = map[string]kept{}
	}
	b.replies[key] = kept{o, r, reply}
	return reply, nil
}

func (b *Bank) apply(o Operation, r Request) (Reply, error) {
	switch o {
	case Reserve:
		return b.reserve(r)
	case Charge:
		return b.charge(r)
	case Refund:
		return b.refund(r)
	case Transfer:
		return b.transfer(r)
	case Notify:
		b.messages = append(b.messages, Message{r.To, r.Text})
		return b.replied("M", 0), nil
	}
	return Reply{}, fmt.Errorf("there is no operation %q", o)
}

func (b *Bank) reserve(r Request) (Reply, error) {
	p := b.payment(r.Payment)
	used := -b.balances[r.From]
	for _, other := range b.payments {
		if other.from == r.From {
			used += other.held
		}
	}
	switch {
	case p.ended || p.from != "":
		return Reply{}, fmt.Errorf("payment %q was begun before", r.Payment)
	case r.Cents <= 0:
		return Reply{}, fmt.Errorf("%d cents can't be held", r.Cents)
	case used+r.Cents > Limit:
		return Reply{}, fmt.Errorf("%s has not got %d cents", r.From, r.Cents)
	}
	p.from, p.held = r.From, r.Cents
	return b.replied("R", r.Cents), nil
}

func (b *Bank) charge(r Request) (Reply, error) {
	p := b.payment(r.Payment)
	if p.ended || p.held != r.Cents {
		return Reply{}, fmt.Errorf("%d cents are not held for payment %q", r.Cents, r.Payment)
	}
	p.held, p.charged = 0, r.Cents
	b.move(p.from, house, r.Cents)
	return b.replied("C", r.Cents), nil
}

// refund also ends a payment of which the bank has not heard yet, so that a request which was
// delayed on its way can't begin it any more.
func (b *Bank) refund(r Request) (Reply, error) {
	p := b.payment(r.Payment)
	if p.ended {
		return Reply{}, fmt.Errorf("payment %q has ended", r.Payment)
	}
	back := p.charged
	b.move(house, p.from, back)
	p.held, p.charged, p.ended = 0, 0, true
	return b.replied("B", back), nil
}

func (b *Bank) transfer(r Request) (Reply, error) {
	if r.Cents <= 0 {
		return Reply{}, fmt.Errorf("%d cents can't be sent", r.Cents)
	}
	b.move(house, r.To, r.Cents)
	reply := b.replied("T", r.Cents)
	b.transfers = append(b.transfers, Sent{reply.Number, r.Reference, r.To, r.Cents})
	return reply, nil
}

func (b *Bank) payment(number string) *payment {
	if b.payments == nil {
		b.payments = map[string]*payment{}
	}
	if b.payments[number] == nil {
		b.payments[number] = new(payment)
	}
	return b.payments[number]
}

func (b *Bank) move(from, to string, cents int) {
	if cents == 0 {
		return
	}
	if b.balances == nil {
		b.balances = map[string]int{}
	}
	b.balances[from] -= cents
	b.balances[to] += cents
}

func (b *Bank) replied(kind string, cents int) Reply {
	b.numbers++
	return Reply{fmt.Sprintf("%s-%d", kind, b.numbers), cents}
}

func (b *Bank) count(key string, more Count) {
	if b.counts == nil {
		b.counts = map[string]Count{}
	}
	c := b.counts[key]
	if more.Operation != "" {
		c.Operation = more.Operation
	}
	c.Asked, c.Done, c.Cents = c.Asked+more.Asked, c.Done+more.Done, c.Cents+more.Cents
	b.counts[key] = c
}

// Statement says what the bank has done so far. It is the caller's.
func (b *Bank) Statement() Statement {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Statement{
		Balances:  map[string]int{house: 0},
		Keys:      map[string]Count{},
		Transfers: append([]Sent{}, b.transfers...),
		Messages:  slices.Clone(b.messages),
	}
	maps.Copy(s.Balances, b.balances)
	maps.Copy(s.Keys, b.counts)
	for _, p := range b.payments {
		s.Held += p.held
	}
	return s
}
