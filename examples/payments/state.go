package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/examples/payments/bank"
	"github.com/pawlgo/pawl/state"
)

// A Payment is what is known of one: what was ordered, and what the bank has done of it.
type Payment struct {
	Order state.Value[Order]

	Reserved    state.Value[bank.Reply]
	Charged     state.Value[bank.Reply]
	Transferred state.Value[bank.Reply]
	Refunded    state.Value[bank.Reply]
	Reason      state.Value[string] // why it was refunded
	Told        state.Value[string] // what the customer was told
}

// An Order is what somebody wants to be paid.
type Order struct {
	Number string `json:"number"` // the run
	From   string `json:"from"`
	To     string `json:"to"`
	Cents  int    `json:"cents"`
}

func (o Order) String() string { return fmt.Sprintf("%s from %s to %s", sum(o.Cents), o.From, o.To) }

// Check refuses to let money go both ways.
func (p *Payment) Check() error {
	if p.Transferred.Get().Number != "" && p.Refunded.Get().Number != "" {
		return errors.New("the payment was both made and given back")
	}
	return nil
}

// sum is a sum as a person reads it.
func sum(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// parseSum reads a sum as a person types it: 120, or 120.00.
func parseSum(text string) (int, error) {
	whole, part, dot := strings.Cut(text, ".")
	if dot && len(part) != 2 || len(whole) == 0 || len(whole) > 9 {
		return 0, fmt.Errorf("%q is not a sum such as 120 or 120.00", text)
	}
	if !dot {
		part = "00"
	}
	n, err := strconv.ParseUint(whole+part, 10, 40)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a sum such as 120 or 120.00", text)
	}
	return int(n), nil
}
