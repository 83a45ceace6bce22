package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
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
	*given                         // never nil
	did        atomic.Pointer[did] // nil if it did none of that
	began      time.Time           // zero if nobody wants to know how long it took
	took       time.Duration       // set when the body has returned
	stop       context.CancelFunc  // of its time limit; nil if it has none
	word       atomic.Int32
	at         int32  // its place in flight
	next       *visit // landed before it
	outcome    string
	failed     *userError
	over       atomic.Bool // the body has returned, or was abandoned
	again      bool        // Policy.Retry wants another attempt
	ended      bool        // the body and Policy.Retry returned
}

// A given is what the node may ask for that most visits don't have. It is taken when the attempt
// begins, and not written to behind that: a goroutine that the node leaves behind reads nothing that
// the owner writes.
type given struct {
	answers  map[string]checkpoint.Answer
	failures []dag.Failure
	settings json.RawMessage
	reuse    *reuse    // of a fork: what its effects need not do; nil if they do everything
	grants   *sync.Map // what was decided about its effects, and is not spent; nil if nothing
	round    *round    // of interceptors; nil if none stands round it
}

// givenNothing is the given of visits that have none. It is never written to.
var givenNothing given

// A did is what a visit did beside writing to its draft, from whatever goroutine.
type did struct {
	heard   atomic.Pointer[question]         // the last one asked, of each key once
	asks    atomic.Pointer[question]         // the last one asked that has no answer
	depends atomic.Pointer[dependency]       // the last one told
	notes   atomic.Pointer[visitNote]        // the last one made
	fails   atomic.Pointer[dag.InDoubtError] // the first effect in doubt that lets the visit fail
	unsaid  atomic.Bool                      // an effect is in doubt of which the node can't say what happened
	emits   atomic.Pointer[emission]         // the last one kept for the observer
	effects atomic.Pointer[sync.Map]         // what is known of its effects; nil if nothing
}

// didNothing is read of visits that did nothing. It is never written to.
var didNothing did

// has is what the visit did, to be read.
func (v *visit) has() *did {
	if d := v.did.Load(); d != nil {
		return d
	}
	return &didNothing
}

// does is what the visit did, to be added to.
func (v *visit) does() *did {
	if d := v.did.Load(); d != nil {
		return d
	}
	v.did.CompareAndSwap(nil, new(did))
	return v.did.Load()
}

const (
	visitRunning int32 = iota
	visitReturned
	visitAbandoned
)

// newVisit makes the context and the draft of the next attempt of t.
func (r *run) newVisit(t *task) *visit {
	v := r.blankVisit()
	v.Context, v.r, v.t, v.path = r.ctx, r, t, t.path()
	v.turn, v.step, v.root = int32(r.m.turn), int32(t.frame.step), int32(r.m.root.step)
	v.attempt, v.generation = int32(t.attempts()+1), int32(r.m.generation)
	v.draft, v.given = r.drafts.Draft(t.frame.view), r.given(t)
	if len(r.m.effects) > 0 {
		v.learn(r.m.effects[v.path])
	}
	if limit := t.node.Policy.Timeout; limit > 0 {
		v.Context, v.stop = context.WithTimeoutCause(r.ctx, limit, ErrTimeout)
	}
	if t.isItem() {
		v.began = time.Now()
	}
	return v
}

// blankVisit returns memory for a visit. It is taken several at a time, and no visit gets what another
// one had.
func (r *run) blankVisit() *visit {
	if len(r.visits) == 0 {
		r.drafts.Most = min(len(r.m.plan.Nodes), slabMost)
		r.visits = make([]visit, r.drafts.Most)
	}
	v := &r.visits[0]
	r.visits = r.visits[1:]
	return v
}

// slabMost is how many visits get their memory at once.
const slabMost = 16

// given is what the next attempt of t is given beside its draft.
func (r *run) given(t *task) *given {
	g := given{failures: t.failuresBefore(), settings: r.m.told.settings, reuse: r.m.reuse(t)}
	if t.odd != nil {
		g.answers, g.grants = t.odd.answers, t.odd.granted()
	}
	if len(r.c.interceptors) > 0 {
		g.round = r.round(t)
	}
	if g.failures == nil && g.settings == nil && g.reuse == nil && g.answers == nil && g.grants == nil && g.round == nil {
		return &givenNothing
	}
	some := g // so that nothing is not allocated
	return &some
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
