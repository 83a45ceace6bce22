package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Hooks are called when a call begins and ends to be at work on a run, and around visits. They are
// not part of the graph: a run may be resumed under others. The zero Hooks call nobody.
type Hooks struct {
	// OnStart is called each time a call is about to be at work on a run: to open it, also by
	// Create, to resume it, or to give it a turn. The call has the run's lease then. Nothing is in
	// the log yet except the answers of the call ([Answering]), which stay. If OnStart returns an
	// error or panics, the call returns that as a [*FaultError] of kind hook, and nothing else has
	// changed. Nil means no. OnStart is not called:
	//
	//   - for a completed run for which no input waits;
	//   - for a run of which all that is left waits for answers, whatever input is queued behind
	//     them;
	//   - for a run that failed at a dag.Fail;
	//   - for the further turns that a call may begin.
	OnStart func(context.Context, Start) error
	// OnEnd is called once for each OnStart that returned nil, however the call ends, unless the
	// process dies. By then it is durable how the run rests. The lease is given back behind OnEnd,
	// so that nobody else has the run between the two: a call that wants to go on with it meanwhile
	// is ErrBusy, and an answer that comes meanwhile is heard by the next call that goes on. Nil
	// means no.
	//
	// Its context is not cancelled with the run. It ends shortly before the grace period, which
	// begins with the call of OnEnd if the run was not cancelled. If OnEnd does not return by then
	// it is abandoned as a node would be. Whatever goes wrong in it is told by Result.Warnings and
	// changes nothing.
	OnEnd func(context.Context, End) error
	// Intercept are the interceptors around visits. Nil means none.
	Intercept []Interceptor
}

// A Start is a run on which a call is about to be at work.
type Start struct {
	Run         string
	Graph       string
	Turn        int // the one that goes on, or is to begin; counted from 1
	Correlation string
	Labels      map[string]string // must not be changed
	Resumed     bool              // it exists; else it is opened
}

// An End is a run on which a call was at work that is about to return.
type End struct {
	Run         string
	Graph       string
	Turn        int
	Correlation string
	Labels      map[string]string // must not be changed
	// Status, Cursor and Abandoned are those of the call's Result. The status is Running if the run
	// was drained, or was left behind because its store failed or did not answer. It is Pending if
	// the call opened the run and was drained before anything had begun, or was a Create.
	Status    checkpoint.Status
	Cursor    checkpoint.Cursor
	Abandoned []string
	Err       error // what the call returns; nil if the run is completed, or was made by Create
}

// What a call has come to with its hooks. The owner goes on to hooksBegun, the caller to
// hooksOver: so of two that meet, one knows that OnEnd is due.
const (
	hooksBegun int32 = iota + 1
	hooksOver
)

const doingOnStart, doingOnEnd = "Hooks.OnStart", "Hooks.OnEnd"

// begin calls OnStart. It reports whether the caller still owns the run.
func (r *run) begin(h *tenure) bool {
	r.present = r.about.Load()
	hook := r.c.opts.Hooks.OnStart
	if hook == nil {
		r.hooked.CompareAndSwap(0, hooksBegun)
		return true
	}
	s := Start{
		Run: r.id, Graph: r.present.graph, Turn: r.present.turn,
		Correlation: r.present.correlation, Labels: r.present.labels, Resumed: r.stood != nil,
	}
	if r.m.status == checkpoint.StatusCompleted {
		s.Turn++
	}
	var err error
	late := false
	r.starting = true
	ok, failed := r.ask(h, doingOnStart, func() {
		if err = sound(hook(r.ctx, s)); err == nil {
			late = !r.hooked.CompareAndSwap(0, hooksBegun)
		}
	})
	if late {
		r.endLate(s)
	}
	if !ok {
		return false
	}
	r.starting = false
	switch {
	case failed != nil:
		r.notBegun(&FaultError{Kind: "hook", Message: failed.Error(), Stack: failed.stack, Err: failed.err})
	case err != nil:
		r.notBegun(&FaultError{Kind: "hook", Message: fmt.Sprint(err), Err: err})
	}
	return true
}

// notBegun has the call return err beside what the run was before it.
func (r *run) notBegun(err *FaultError) {
	err.Message = doingOnStart + ": " + err.Message
	r.starting, r.early = false, early{err: err}
	if r.stood != nil {
		r.early = early{r.stood, r.c.refuse(r.id, err)}
	}
}

// endLate calls OnEnd for an OnStart that returned when its call was over.
func (r *run) endLate(s Start) {
	hook := r.c.opts.Hooks.OnEnd
	if hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.parent), r.c.opts.Grace)
	defer cancel()
	_ = protect(func() {
		_ = hook(ctx, End{
			Run: s.Run, Graph: s.Graph, Turn: s.Turn, Correlation: s.Correlation, Labels: s.Labels,
			Status: checkpoint.StatusRunning, Cursor: checkpoint.Cursor{Run: r.id}, Abandoned: []string{doingOnStart},
			Err: r.c.refuse(r.id, fmt.Errorf("%w: %s", ErrStuck, doingOnStart)),
		})
	})
}

// keepsLease reports whether the caller has still to tell the observer that the run is left, or to
// call OnEnd, under the lease.
func (r *run) keepsLease() bool {
	return r.told || r.c.opts.Hooks.OnEnd != nil && r.hooked.Load() == hooksBegun
}

// finishing calls OnEnd, when the run rests as rep and err say, and waits for it until
// shortly before the grace period is over. It returns what it has abandoned.
func (r *run) finishing(rep *report, err error, rested bool) (abandoned []string) {
	if r.hooked.Swap(hooksOver) != hooksBegun || r.c.opts.Hooks.OnEnd == nil {
		return nil
	}
	left, slack := r.c.opts.Grace, r.reserve()/2
	if !r.graceEnd.IsZero() {
		left, slack = time.Until(r.graceEnd)-r.reserve()/4, r.reserve()/8
	}
	slack = max(slack, 2*time.Millisecond)
	left = max(left-slack, 3*time.Millisecond) // of ctx: what heeds it has the slack to return
	until := time.Now().Add(left + slack)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.parent), left)
	defer cancel()
	warning := doingOnEnd + ": " + errGoexit.Error() // unless it returns
	ended := make(chan struct{})
	end := r.ended(rep, err)
	hangs := rested && slices.Contains(r.names, doingObserve)
	r.strays.count.Add(1)
	go func() { // ends before until, or is abandoned
		defer close(ended)
		defer r.strays.returned() // before the call learns of it, and counts
		defer func() {
			if warning != "" && rested {
				r.warn(warning, hangs)
			}
		}()
		warning = r.callOnEnd(ctx, end)
	}()
	if !r.within(ended, until) {
		rep.Warnings = append(rep.Warnings, doingOnEnd+": did not return within the grace period")
		return []string{doingOnEnd}
	}
	if warning != "" {
		rep.Warnings = append(rep.Warnings, warning)
	}
	return nil
}

// callOnEnd returns what went wrong in OnEnd, "" if nothing did.
func (r *run) callOnEnd(ctx context.Context, end End) string {
	var err error
	if failed := protect(func() { err = sound(r.c.opts.Hooks.OnEnd(ctx, end)) }); failed != nil {
		return clip(doingOnEnd + ": panic: " + failed.Error())
	}
	if err != nil {
		return clip(doingOnEnd + ": " + fmt.Sprint(err))
	}
	return ""
}

func (r *run) ended(rep *report, err error) End {
	return End{
		Run: r.id, Graph: r.present.graph, Turn: max(rep.Turn, r.present.turn),
		Correlation: r.present.correlation, Labels: r.present.labels,
		Status: rep.Status, Cursor: rep.Cursor, Abandoned: slices.Clone(rep.Abandoned), Err: r.returns(err),
	}
}

// warn tells who reads along, and the observer, what went wrong and changes nothing. An observer
// that hangs is not called beside itself.
func (r *run) warn(warning string, hangs bool) {
	e := r.present.event(Warned, r.durable.Load())
	e.Live, e.Cause, e.At = true, warning, time.Now()
	offer(r.listeners(), &e)
	if !hangs {
		r.c.observe(e)
	}
}
