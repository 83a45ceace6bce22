package dispatcher

import (
	"encoding/json"

	"github.com/pawlgo/pawl/checkpoint"
)

// UnlessCancelled has Run, Resume, Continue and Stream leave a Cancelled run alone. The call
// returns the [*Rest] of that run, with who cancelled it and why, and nothing has changed;
// [Answering] beside it answers nothing then. A cancel that was posted before and that nobody has
// heard counts too. Without UnlessCancelled these calls go on with a
// cancelled run, even one that was cancelled between a look at its State and the call.
//
// A run is Cancelled by [Dispatcher.Cancel], and also if the context of the call that was at work
// on it was cancelled. So a service that uses UnlessCancelled ends with [Drain], which leaves runs
// Running.
func UnlessCancelled() RunOption {
	return RunOption{"UnlessCancelled", func(w *wishes) error {
		switch w.how {
		case modeRun, modeResume, modeContinue:
			w.unlessCancelled = true
			return nil
		}
		return &OptionError{"UnlessCancelled", "is for Run, Resume, Continue and Stream"}
	}}
}

// leaveCancelled is what a call returns that leaves a cancelled run alone.
func (r *run) leaveCancelled() early {
	info, err := r.c.store.Stat(r.stored, r.id)
	if err != nil {
		return early{err: err}
	}
	looking := true
	err = r.c.backward(r.stored, &info, r.journal.head.Seq, func(e *checkpoint.Entry) (bool, error) {
		if e.Kind != checkpoint.Cancelled {
			return looking, nil
		}
		looking = false // and goes on to the end of the piece: the newest one counts
		var how checkpoint.Resting
		if err := json.Unmarshal(e.Data, &how); err != nil {
			return false, damaged(r.id, e.Seq, err)
		}
		r.caused = cancelOf(how, "")
		return looking, nil
	})
	if err != nil {
		return early{err: err}
	}
	rep, _ := r.untouched() // without a state if that can't be read: the run is Cancelled all the same
	return early{rep, r.rested(rep)}
}
