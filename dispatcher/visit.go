package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A visit is one attempt of a visit: its context, and its draft of the frame's state.
// Neither is used again, so a goroutine that a node leaves behind writes into nothing.
type visit struct {
	context.Context
	r       *run
	t       *task
	path    string
	turn    int32
	step    int32
	root    int32 // superstep of the run's own frame
	attempt int32
	// generation of the run: how often it was rewound.
	generation int32
	draft      state.Image
	// What the node may ask for is taken when the attempt begins: a goroutine that it
	// leaves behind reads nothing that the owner writes.
	answers  map[string]checkpoint.Answer
	failures []dag.Failure
	settings json.RawMessage
	began    time.Time          // zero if nobody wants to know how long it took
	took     time.Duration      // set when the body has returned
	stop     context.CancelFunc // of its time limit; nil if it has none
	word     atomic.Int32
	at       int32  // its place in flight
	next     *visit // landed before it

	asks    atomic.Pointer[question]         // the last one asked
	depends atomic.Pointer[dependency]       // the last one told
	fails   atomic.Pointer[dag.InDoubtError] // the first effect in doubt that lets the visit fail
	emits   atomic.Pointer[emission]         // the last one kept for the observer
	effects atomic.Pointer[sync.Map]         // what is known of its effects; nil if nothing
	reuse   *reuse                           // of a fork: what its effects need not do; nil if they do everything
	grants  *sync.Map                        // what was decided about its effects, and is not spent; nil if nothing
	round   *round                           // of interceptors; nil if none stands round it
	outcome string
	failed  *userError
	over    atomic.Bool // the body has returned, or was abandoned
	again   bool        // Policy.Retry wants another attempt
	ended   bool        // the body and Policy.Retry returned
}

const (
	visitRunning int32 = iota
	visitReturned
	visitAbandoned
)

// A userError is how user code failed.
type userError struct {
	kind  dag.FailureKind
	err   error
	stack []byte
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

// newVisit makes the context and the draft of the next attempt of t.
func (r *run) newVisit(t *task) *visit {
	v := &visit{
		Context: r.ctx, r: r, t: t, path: t.path(), turn: int32(r.m.turn), step: int32(t.frame.step),
		root: int32(r.m.root.step), attempt: int32(t.attempts() + 1),
		generation: int32(r.m.generation),
		draft:      t.frame.view.Draft(), failures: t.failuresBefore(), settings: r.m.told.settings,
	}
	if t.odd != nil {
		v.answers, v.grants = t.odd.answers, t.odd.granted()
	}
	if len(r.m.effects) > 0 {
		v.learn(r.m.effects[v.path])
	}
	v.reuse = r.m.reuse(v.path)
	if len(r.c.interceptors) > 0 {
		v.round = r.round(t)
	}
	if limit := t.node.Policy.Timeout; limit > 0 {
		v.Context, v.stop = context.WithTimeoutCause(r.ctx, limit, ErrTimeout)
	}
	if t.isItem() {
		v.began = time.Now()
	}
	return v
}

// announce tells that an attempt begins, and gives it its slot. Nobody is told of one whose
// context has ended, and readers not of one that the observer ends. begins is false for those:
// they are ready still. owner reports whether the owner still owns the run.
func (r *run) announce(h *tenure, v *visit) (begins, owner bool) {
	readers := r.listeners()
	begins = !r.halted()
	if begins && (r.c.opts.Observe != nil || len(readers) > 0) {
		e := v.notice(VisitStarted)
		v.began = e.At
		if !r.observed(h, &e) {
			return false, false
		}
		if begins = !r.halted(); begins {
			offer(readers, &e)
		}
	}
	r.slot = false
	if !begins {
		v.close()
		r.m.ready = append(r.m.ready, v.t)
	}
	return begins, true
}

// Value finds the visit itself under [dag.VisitKey].
func (v *visit) Value(key any) any {
	if key == (dag.VisitKey{}) {
		return dag.Visit(v)
	}
	return v.Context.Value(key)
}

func (v *visit) Key() string  { return keyOf(v.r.id, int(v.turn), int(v.generation)) + v.path }
func (v *visit) Attempt() int { return int(v.attempt) }

func (v *visit) Settings() json.RawMessage { return v.settings }

func (v *visit) Failures() []dag.Failure { return slices.Clone(v.failures) }

// failuresBefore tells what failed among the nodes whose failure t follows, and among the
// items of those that collect failures. An item follows what its Each does.
func (t *task) failuresBefore() []dag.Failure {
	if t.isItem() {
		return t.frame.holder.failuresBefore()
	}
	nodes := t.frame.followed(&t.node.Follows, nil)
	slices.Sort(nodes)
	var failures []dag.Failure
	for _, i := range slices.Compact(nodes) {
		o := t.frame.tasks[i].odd
		if o.failure != nil {
			failures = append(failures, *o.failure)
		}
		failures = append(failures, o.collected...)
	}
	return failures
}

// followed lists the nodes whose failure e follows, and that have failed, and those that
// have collected failures and e follows otherwise.
func (f *frame) followed(e *dag.Expr, nodes []int) []int {
	if e.Op == dag.OpNode {
		t := &f.tasks[e.Node]
		if t.odd != nil && f.taken(e) && (e.Failed || t.odd.collected != nil) {
			nodes = append(nodes, e.Node)
		}
	}
	for i := range e.Of {
		nodes = f.followed(&e.Of[i], nodes)
	}
	return nodes
}

// call runs the body. If that ends the goroutine, call does not return.
func (v *visit) call() {
	defer func() {
		v.over.Store(true)
		if !v.began.IsZero() {
			v.took = time.Since(v.began)
		}
		if v.ended {
			return
		}
		earlier := v.failed // of the body, when Policy.Retry broke
		if p := recover(); p != nil {
			v.failed = panicked(p)
		} else {
			v.failed = &userError{dag.FailedGoexit, errGoexit, debug.Stack()}
		}
		v.again = earlier == nil && v.t.node.Policy.Retry == nil
		if earlier != nil {
			v.failed.err = fmt.Errorf("%w; Policy.Retry: %w", earlier.err, v.failed.err)
		}
	}()
	if v.round == nil {
		v.failed = v.body()
	} else {
		v.failed = v.round.run(v)
	}
	if v.failed != nil {
		v.again = v.retries()
	}
	v.ended = true
}

// body runs the function of the node.
func (v *visit) body() (failed *userError) {
	var err error
	switch n := v.t.node; {
	case n.Run != nil:
		v.outcome, err = n.Run(v, v.draft.Value())
	case n.Choose != nil:
		var chosen []string
		if chosen, err = n.Choose(v, v.draft.Value()); err == nil {
			v.outcome, failed = choice(n, chosen)
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
		if errors.Is(v.failed.err, dag.ErrEffectRefused) { // nor would it be done then
			return false
		}
		return retry == nil || retry(v.failed.err)
	}
	return retry == nil
}

func panicked(p any) *userError {
	err, ok := p.(error)
	if !ok {
		err = fmt.Errorf("%v", p)
	}
	return &userError{dag.FailedPanic, err, debug.Stack()}
}

// inline runs a visit on the owner's goroutine. It reports whether that still owns the run.
func (r *run) inline(h *tenure, t *task) bool {
	v := r.newVisit(t)
	if begins, owner := r.announce(h, v); !begins {
		return owner
	}
	h.visit = v
	if !h.leave(inNode, "") {
		v.close()
		return false
	}
	v.call()
	if !h.back(inNode) {
		v.close()
		return false
	}
	h.visit = nil
	r.land(v)
	return true
}

// spawn runs a visit in a goroutine of its own, which ends with the body: the owner finds
// it landed, or has abandoned it. It reports whether the owner still owns the run.
func (r *run) spawn(h *tenure, t *task) bool {
	v := r.newVisit(t)
	if begins, owner := r.announce(h, v); !begins {
		return owner
	}
	v.at = int32(len(r.flight))
	r.flight = append(r.flight, v)
	go v.fly() // ends with the body, which the owner waits for or abandons
	return true
}

func (v *visit) fly() {
	defer v.ground() // Goexit comes through here as well
	if v.r.parent.Err() == nil && v.r.ctx.Err() == nil {
		v.call()
		return
	}
	v.failed = &userError{kind: dag.FailedError, err: context.Canceled}
}

// ground hands a visit that has returned to the owner, or counts it as a stray.
func (v *visit) ground() {
	r := v.r
	if !v.word.CompareAndSwap(visitRunning, visitReturned) {
		v.close()
		r.strays.returned()
		return
	}
	r.push(v)
}

// close gives back what a visit holds: its timer, and one of Options.Parallel.
func (v *visit) close() {
	if v.stop != nil {
		v.stop()
	}
	if v.r.c.slots != nil {
		<-v.r.c.slots
	}
}

// drop forgets a visit that was in flight.
func (r *run) drop(v *visit) {
	last := len(r.flight) - 1
	if int(v.at) > last || r.flight[v.at] != v {
		return // it ran on the owner's goroutine
	}
	r.flight[v.at] = r.flight[last]
	r.flight[v.at].at = v.at
	r.flight[last] = nil
	r.flight = r.flight[:last]
}

// encode is the JSON of values that can't fail. JSON inside of v stays as it is.
func encode(v any) json.RawMessage {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("dispatcher: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

var _ dag.Visit = (*visit)(nil)
