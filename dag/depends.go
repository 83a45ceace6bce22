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
// finishes well, and rides in the entry that says so. Of several of one name the last one counts.
// It ends with the turn of the run: the visits of one that is completed don't run again, and a
// visit of the next turn that uses the same says so itself. Inside an [Effect] it is an error: say
// it of what the effect returned, which every attempt comes by. Outside a run it is only checked.
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
