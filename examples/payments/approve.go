package main

import (
	"encoding/json"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// Large is the smallest sum, in cents, that a person has to approve.
const Large = 100_000

// gates has a person approve the charge of a large sum before it begins. Which sums are large is a
// matter of who runs payments, not of the graph: it may change while some of them wait.
func gates() dispatcher.Gates {
	return dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) {
		if a.Effect != string(bank.Charge) {
			return false, nil
		}
		var r bank.Request
		err := json.Unmarshal(a.Input, &r)
		return r.Cents >= Large, err // what is not understood needs an approval too
	}}
}
