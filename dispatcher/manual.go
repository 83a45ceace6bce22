package dispatcher

import (
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// Manual has Run, Resume or Continue go on with a run only if none of its effects that a visit may
// meet is in doubt. Otherwise the call is refused with a [*DoubtError] that lists them, and nothing
// has changed; somebody then looks at the other side and says with Resolve what happened. A visit
// that is done, though an effect of it is in doubt, has decided and does not count, unless it was
// voided. Without Manual a call goes on, and the visits get what their effects declare with
// dag.InDoubt.
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
