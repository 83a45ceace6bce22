package dag

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/state"
)

// A Dependency is something outside the run that a visit has used, and that may have changed
// when the run goes on later: a price list, a model, an index.
type Dependency struct {
	Name     string
	Captured time.Time // when the visit looked at it; zero means now
	// StaleAfter is how long what was captured can be trusted. A resume after that does what
	// OnStale says.
	StaleAfter time.Duration
	OnStale    OnStale
}

// OnStale says what a resume does about a dependency that is stale.
type OnStale string

const (
	Ignore     OnStale = ""           // it goes on, and the result warns
	Revalidate OnStale = "revalidate" // the program is asked; its error refuses the resume
	Invalidate OnStale = "invalidate" // the visit that used it runs again; if that can't be, the resume is refused
)

// Depends says that the visit has used something that may become stale. It counts if the visit
// finishes well, and is durable in the entry that says so. If a visit names a dependency more than
// once, the last call counts.
//
// A dependency lasts for a turn of the run. The visits of a completed turn don't run again, and a
// visit of the next turn that uses the same thing has to say so itself.
//
// Inside an [Effect] Depends is an error. Call it behind the effect, about what the effect
// returned, which every attempt gets. Outside a run it only checks its argument.
func Depends(ctx context.Context, d Dependency) error {
	v, err := within(ctx, "Depends")
	if err != nil {
		return err
	}
	if err := named("Depends", "name", d.Name); err != nil {
		return err
	}
	if d.StaleAfter <= 0 {
		return &ArgumentError{"Depends", fmt.Sprintf("dependency %q", d.Name), fmt.Sprintf("has a StaleAfter of %v: say how long it can be trusted", d.StaleAfter)}
	}
	if !state.Sayable(d.Captured) {
		return &ArgumentError{"Depends", fmt.Sprintf("dependency %q", d.Name), fmt.Sprintf("was Captured at %v, which can't be kept", d.Captured)}
	}
	switch d.OnStale {
	case Ignore, Revalidate, Invalidate:
	default:
		return &ArgumentError{"Depends", fmt.Sprintf("dependency %q", d.Name), fmt.Sprintf("has an OnStale of %q: give it Ignore, Revalidate or Invalidate", d.OnStale)}
	}
	if on, ok := v.(Depender); ok {
		return on.Depends(d)
	}
	return nil
}

// A Depender is a [Visit] that keeps what it depends on.
type Depender interface {
	// Depends keeps a dependency that was checked. It is safe for concurrent use. ErrVisitOver
	// once the attempt has ended.
	Depends(d Dependency) error
}
