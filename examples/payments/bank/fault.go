package bank

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Fault is what goes wrong with requests for an operation.
type Fault struct {
	Operation Operation     `json:"operation"`
	Kind      FaultKind     `json:"kind"`
	Delay     time.Duration `json:"delay,omitempty"` // of Slow
	// Times is with how many requests it goes wrong. Zero means one.
	Times int `json:"times,omitempty"`
}

// A FaultKind says how something goes wrong.
type FaultKind string

const (
	LoseRequest FaultKind = "lose-request" // nothing is done, and nobody is told
	LoseReply   FaultKind = "lose-reply"   // it is done, and nobody is told
	Refuse      FaultKind = "refuse"       // nothing is done, and it never will be
	Unavailable FaultKind = "unavailable"  // nothing is done, for now
	Slow        FaultKind = "slow"         // it is done, and the reply takes its time
)

var faultKinds = []FaultKind{LoseRequest, LoseReply, Refuse, Unavailable, Slow}

// ParseFault reads a fault as a person types it: transfer:lose-reply, or charge:slow:2s.
func ParseFault(text string) (Fault, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return Fault{}, fmt.Errorf("%q is no fault, such as transfer:lose-reply or charge:slow:2s", text)
	}
	f := Fault{Operation: Operation(parts[0]), Kind: FaultKind(parts[1])}
	if len(parts) == 3 {
		var err error
		if f.Delay, err = time.ParseDuration(parts[2]); err != nil {
			return Fault{}, fmt.Errorf("%q is not a duration", parts[2])
		}
	}
	return f, f.check()
}

func (f Fault) check() error {
	switch {
	case !slices.Contains(Operations, f.Operation):
		return fmt.Errorf("the bank has no operation %q, but %q", f.Operation, Operations)
	case !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("there is no fault %q, but %q", f.Kind, faultKinds)
	case f.Kind == Slow && f.Delay <= 0:
		return errors.New("how slow is it? say charge:slow:2s, for example")
	case f.Kind != Slow && f.Delay != 0:
		return fmt.Errorf("fault %q has no duration", f.Kind)
	case f.Times < 0:
		return fmt.Errorf("a fault can't happen %d times", f.Times)
	}
	return nil
}

// Misbehave has something go wrong with the next requests for an operation. Faults of one
// operation go wrong one after the other.
func (b *Bank) Misbehave(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f.Times = max(f.Times, 1)
	b.faults = append(b.faults, f)
	return nil
}

// fault takes the fault that a request for o meets; one without a kind if there is none. mu is
// held.
func (b *Bank) fault(o Operation) Fault {
	i := slices.IndexFunc(b.faults, func(f Fault) bool { return f.Operation == o })
	if i < 0 {
		return Fault{}
	}
	f := b.faults[i]
	if b.faults[i].Times--; b.faults[i].Times == 0 {
		b.faults = slices.Delete(b.faults, i, i+1)
	}
	return f
}
