package supervisor

import (
	"context"
	"reflect"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
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
	if isNil(has) {
		return true
	}
	if reflect.TypeOf(has) != reflect.TypeOf(store) {
		return true
	}
	return reflect.ValueOf(has).Comparable() && has != store
}

// isNil reports whether v is nil, or a nil pointer in an interface, whose methods would panic.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	p := reflect.ValueOf(v)
	return p.Kind() == reflect.Pointer && p.IsNil()
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

// joinable refuses options that must not be lost where a submission joins another one.
func joinable(options []dispatcher.RunOption) error {
	for _, o := range options {
		if o.Name() == "Answering" {
			return &OptionError{"Answering", "is not looked at if the run is at work already: Answer before this, or give it to a call of Go"}
		}
	}
	return nil
}
