package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// A userError is how user code failed.
type userError struct {
	kind  dag.FailureKind
	err   error
	stack []byte
	again bool // Policy.Retry wants another attempt
	// late is what had ended the context of the attempt when its body ended; nil if nothing had.
	// What comes to pass until the owner looks at it is not the visit's.
	late error
}

// Error is safe whatever the user's Error does: fmt catches its panic, and knows nil receivers.
func (e *userError) Error() string { return fmt.Sprint(e.err) }

func (e *userError) Unwrap() error { return e.err }

// tells is the text, and that it is one of a panic.
func (e *userError) tells() string {
	if e.kind == dag.FailedPanic {
		return "panic: " + e.Error()
	}
	return e.Error()
}

// broke reports whether the code did not return.
func (e *userError) broke() bool { return e.kind == dag.FailedPanic || e.kind == dag.FailedGoexit }

// returned reports whether the body returned an error, and did not break.
func (e *userError) returned() bool {
	switch e.kind {
	case dag.FailedError, dag.FailedInDoubt, dag.FailedExpired, dag.FailedSkipped:
		return true
	case dag.FailedDenied:
		return errors.Is(e.err, dag.ErrDenied)
	}
	return false
}

const failedGoexit = dag.FailedGoexit

var (
	errGoexit = errors.New("called runtime.Goexit")
	errAtHome = fmt.Errorf("%w: the dispatcher", ErrStuck)
	errAsked  = errors.New("dispatcher: the question has no answer yet: return this error")
)

// call runs the body. If that ends the goroutine, call does not return.
func (v *visit) call() {
	ended := false // the body and Policy.Retry have
	defer func() {
		v.word.CompareAndSwap(visitRunning, visitOver)
		if !v.began.IsZero() {
			v.took = time.Since(v.began)
		}
		if ended {
			return
		}
		late := v.ended()
		earlier := v.failed // of the body, when Policy.Retry broke
		// Also if the text of an error that it panicked with calls Goexit.
		v.failed = &userError{kind: dag.FailedGoexit, err: errGoexit}
		v.failed = broken(recover())
		if v.round != nil {
			v.failed.err = v.round.at.blames(v.failed.err)
		}
		v.failed.again, v.failed.late = earlier == nil && v.t.node.Policy.Retry == nil, late
		if earlier != nil {
			v.failed.err = fmt.Errorf("%w; Policy.Retry: %w", earlier.err, v.failed.err)
		}
	}()
	var failed *userError
	if v.round == nil {
		failed = v.body()
	} else {
		failed = v.round.run(v)
	}
	if doubt := v.has().fails.Load(); failed == nil && doubt != nil {
		failed = &userError{kind: dag.FailedInDoubt, err: doubt} // as doubted says
	}
	if failed != nil {
		failed.late = v.ended()
		_ = failed.Error() // is user code: if it breaks or hangs here, that is the visit's, and not the owner's
		v.failed = failed
		v.failed.again = v.retries()
	}
	ended = true
}

// ended is what has ended the context of the attempt, nil if nothing has. A connection whose
// deadline is that of the context may have told of it first: then the context is about to end.
func (v *visit) ended() error {
	if v.Err() == nil {
		if at, ok := v.Deadline(); !ok || time.Until(at) > 0 {
			return nil
		}
		select {
		case <-v.Done():
		case <-time.After(10 * time.Millisecond): // one of the caller's that says what it does not keep
			return nil
		}
	}
	return context.Cause(v.Context)
}

// callItem is call, and counts the time that items of a run with a log take: see lag. What stands
// at now is when an item before it ended in the same goroutine, 0 if that is not known, and then
// when this one did.
func (v *visit) callItem(now *time.Duration) {
	if v.host.log == nil || !v.t.isItem() {
		*now = 0
		v.call()
		return
	}
	if *now == 0 {
		*now = time.Since(epoch)
	}
	v.call()
	ended := time.Since(epoch)
	v.worksFor(ended - *now)
	*now = ended
}

// epoch is what instants are told from, where only what lies between two of them counts.
var epoch = time.Now()

// body runs the function of the node.
func (v *visit) body() (failed *userError) {
	var err error
	switch n := v.t.node; {
	case n.Run != nil:
		var outcome string
		outcome, err = n.Run(v, v.draft.Value())
		v.choose(outcome)
	case n.Choose != nil:
		var chosen []string
		if chosen, err = n.Choose(v, v.draft.Value()); err == nil {
			failed = v.chooses(n, chosen)
		}
	default:
		err = n.RunItem(v, v.draft.Value(), v.t.frame.items.list, int(v.t.at))
	}
	if err != nil {
		return returnedError(err)
	}
	return failed
}

// returnedError is how a function failed that returned err.
func returnedError(err error) *userError {
	kind := dag.FailedError
	switch {
	case errors.Is(err, dag.ErrInDoubt):
		kind = dag.FailedInDoubt
	case errors.Is(err, dag.ErrExpired):
		kind = dag.FailedExpired
	case errors.Is(err, dag.ErrSkipped):
		kind = dag.FailedSkipped
	case errors.Is(err, dag.ErrDenied):
		kind = dag.FailedDenied
	}
	if p := reflect.ValueOf(err); p.Kind() == reflect.Pointer && p.IsNil() && fmt.Sprint(err) == "<nil>" { // its Error panics, and nothing else tells of it
		err = fmt.Errorf("%w, a nil %T: return nil itself where nothing failed", err, err)
	}
	return &userError{kind: kind, err: err}
}

// retries reports whether another attempt may help, which Policy.Retry is asked about errors
// that a function returned.
func (v *visit) retries() bool {
	retry := v.t.node.Policy.Retry
	switch v.failed.kind {
	case dag.FailedInDoubt, dag.FailedDenied, dag.FailedExpired, dag.FailedSkipped: // another attempt would find the same
		return false
	case dag.FailedError:
		if v.has().asks.Load() != nil { // it waits, whatever it returned
			return false
		}
		if errors.Is(v.failed.err, dag.ErrEffectRefused) || errors.Is(v.failed.err, dag.ErrOutputChanged) { // nor would it be done then
			return false
		}
		return retry == nil || retry(v.failed.err)
	}
	return retry == nil
}

// broken is how user code failed that did not return, by what recover says of it.
func broken(p any) *userError {
	if p == nil {
		return &userError{kind: dag.FailedGoexit, err: errGoexit, stack: debug.Stack()}
	}
	return panicked(p)
}

func panicked(p any) *userError {
	err, ok := p.(error)
	if !ok {
		err = errors.New(textOf(p))
	}
	return &userError{kind: dag.FailedPanic, err: sound(err), stack: debug.Stack()}
}

// sound is err, or its text if nobody can look for another error in it: one of a nil pointer, say,
// whose Unwrap panics; or if its Error panics with what can't be printed either.
func sound(err error) (same error) {
	if err == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			same = errors.New(textOf(err))
		}
	}()
	_ = fmt.Sprint(err)
	var e *userError
	_, _ = errors.Is(err, errGoexit), errors.As(err, &e)
	return err
}

// textOf is the text of a user's value, whatever its methods panic with.
func textOf(v any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a %T whose text panics", v)
		}
	}()
	return fmt.Sprint(v)
}

func protect(f func()) (err *userError) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	f()
	return nil
}
