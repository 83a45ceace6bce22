package dag

import (
	"context"
	"fmt"

	"github.com/pawlgo/pawl/state"
)

// Settings returns what the run was told beside its state: which model to ask, how much to spend,
// anything that JSON can say. The call that opens a run gives the settings, and a call that resumes
// it may give others. An attempt sees the ones that held when it began until it ends. They are no
// part of the state, and a node can't change them.
//
// Members that T does not know are ignored, so nodes read what concerns them. A value that does not
// fit T is an error. If the run has no settings, and outside a run, Settings returns the zero T and
// nil.
func Settings[T any](ctx context.Context) (T, error) {
	var settings T
	v, err := within(ctx, "Settings")
	if v == nil {
		return settings, err
	}
	raw := v.Settings()
	if len(raw) == 0 {
		return settings, nil
	}
	if err := state.Decode(raw, &settings); err != nil {
		var zero T
		return zero, fmt.Errorf("dag: the settings of the run: %w", err)
	}
	return settings, nil
}
