package dispatcher

import (
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// Manual has a call go on with a run only if no effect of it is in doubt that a visit may meet:
// else it is refused with a [*DoubtError] that lists them, and nothing has changed. A visit that is
// done with what it left in doubt has decided, and does not count, unless it was voided. Somebody
// then looks at the other side and says with Resolve what happened. Without it a call goes on, and
// what the effects declare with dag.InDoubt comes of their visits. It is for Run, Resume and
// Continue.
func Manual() RunOption {
	return RunOption{"Manual", func(w *wishes) error {
		switch w.how {
		case modeRun, modeResume, modeContinue:
			w.manual = true
			return nil
		}
		return &OptionError{"Manual", "is for Run, Resume and Continue"}
	}}
}

// A DoubtError says which effects are in doubt, so that a call with [Manual] does not go on.
// Nothing has changed.
type DoubtError struct {
	Run     string
	Effects []OpenEffect
}

// Error names the effects and says what to do.
func (e *DoubtError) Error() string {
	var names []string
	for i := range e.Effects {
		names = append(names, e.Effects[i].ID)
	}
	return fmt.Sprintf("dispatcher: run %q: in doubt: %s: say with Resolve what happened, or go on without Manual",
		e.Run, strings.Join(names, ", "))
}

// Is reports whether target is dag.ErrInDoubt.
func (e *DoubtError) Is(target error) bool { return target == dag.ErrInDoubt }

// doubts lists the effects in doubt that a visit may meet.
func (m *machine) doubts(id string) error {
	e := &DoubtError{Run: id}
	for _, o := range m.openEffects(id) {
		if o.InDoubt && m.meets(o.Path) {
			e.Effects = append(e.Effects, o)
		}
	}
	if e.Effects == nil {
		return nil
	}
	return e
}
