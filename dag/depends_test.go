package dag_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// An instant that JSON can't say, in UTC, is refused before it is kept.
func TestDependsOnAnInstantThatCantBeKept(t *testing.T) {
	d := dag.Dependency{Name: "prices", StaleAfter: 1, Captured: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}
	var argument *dag.ArgumentError
	if err := dag.Depends(t.Context(), d); !errors.As(err, &argument) || argument.Argument != `dependency "prices"` {
		t.Errorf("Depends = %v", err)
	}
	d.Captured = time.Time{}
	if err := dag.Depends(t.Context(), d); err != nil {
		t.Errorf("captured now: %v", err)
	}
}
