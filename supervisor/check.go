package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/misuse"
)

// A storing is a Runner that tells its store, as a *dispatcher.Dispatcher does.
type storing interface {
	Store() checkpoint.Store
}

// elsewhere reports whether r has no store, or another one than store. What can't be told
// is no difference: of a Runner that does not say, and of stores that Go can't compare.
func elsewhere(r any, store checkpoint.Store) bool {
	of, ok := r.(storing)
	if !ok {
		return false
	}
	has := of.Store()
	if misuse.Missing(has) {
		return true
	}
	if reflect.TypeOf(has) != reflect.TypeOf(store) {
		return true
	}
	return reflect.ValueOf(has).Comparable() && has != store
}

// present returns an [*OptionError] if a call lacks its supervisor or its context.
func present(ctx context.Context, s *Supervisor) error {
	switch {
	case s == nil || s.store == nil:
		return &OptionError{"supervisor", "is nil or the zero Supervisor: make it with New"}
	case ctx == nil:
		return &OptionError{"ctx", "is nil: give context.Background() if there is no other"}
	}
	return nil
}

// Options that no submission can pass on, and why.
var notPassedOn = map[string]string{
	"Answering": "is not looked at if the run is at work already: Answer before this, or give it to a call of Go",
	"Drain":     "is the supervisor's, which gives its own to every call: call its Drain, or leave the option out",
	"OrStart":   "is for a Turn: give it to one in a call of Go",
	"Author":    "is for calls that change a run and run nothing, and beside Answering",
	"Because":   "is for calls that change a run and run nothing, and beside Answering",
	"Message":   "is for Enqueue, Note and answers alone: it names what is given",
}

// Those that Submit can't, but Continue can.
var notForSubmit = map[string]string{
	"From":   "is for Continue, which goes on with a run that exists, or for a call of Go",
	"Expire": "is for Continue, which goes on with a run that exists, or for a call of Go",
}

// passable refuses options that a call can't pass on, before anything waits with them. Beside those
// of notPassedOn they are those of also, which may be nil.
func passable(options []dispatcher.RunOption, also map[string]string) error {
	for _, o := range options {
		if reason := cmp.Or(notPassedOn[o.Name()], also[o.Name()]); reason != "" {
			return &OptionError{o.Name(), reason}
		}
	}
	return nil
}

// A judge is a Runner that tells which options its Continue refuses whatever the run is, as a
// *dispatcher.Dispatcher does.
type judge interface {
	CheckOptions(options ...dispatcher.RunOption) error
}

// judged refuses options that r does, before anything waits with them.
func judged(r any, graph, run string, options []dispatcher.RunOption) error {
	j, ok := r.(judge)
	if !ok || len(options) == 0 {
		return nil
	}
	if err := j.CheckOptions(options...); err != nil {
		return &RunError{Run: run, Graph: graph, Err: err}
	}
	return nil
}

// notOurs says that the call of Go for run has worked on another one, and returned err.
func notOurs(run, graph, other string, err error) error {
	reason := fmt.Errorf("its call worked on run %q: give Go the id that it gives the dispatcher", other)
	if err != nil {
		// Not wrapped: what became of the other run says nothing of this one.
		reason = fmt.Errorf("%w (it returned: %v)", reason, err)
	}
	return &RunError{Run: run, Graph: graph, Err: reason}
}
