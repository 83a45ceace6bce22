package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A visit is one attempt of a visit: its context, and its draft of the frame's state.
// Neither is used again, so a goroutine that a node leaves behind writes into nothing.
//
// Most of what a run allocates are visits and drafts, so what only some visits have stands
// elsewhere.
type visit struct {
	*footing // never nil
	t        *task
	draft    state.Image
	did      atomic.Pointer[did] // nil if it did none of that
	next     *visit              // landed before it
	failed   *userError
	where    *string // its path
	chose    *string // its outcome; nil is ""
	word     atomic.Int32
	at       int32 // its place in flight
	step     int32
	root     int32 // superstep of the run's own frame
}

// A footing is what an attempt begins from. Most attempts of a turn are the first of a visit that
// nothing is to be known of, and share one, which is not written to once a visit has it. In a run
// that somebody listens to each has its own.
type footing struct {
	context.Context
	host    *host
	turn    int32
	attempt int32
	// generation of the run: how often it was rewound.
	generation int32
	*given                        // never nil
	began      time.Time          // zero if nobody wants to know how long it took
	took       time.Duration      // set when the body has returned
	stop       context.CancelFunc // of its time limit; nil if it has none
}

// A given is what the node may ask for that most visits don't have. It is taken when the attempt
// begins, and not written to behind that: a goroutine that the node leaves behind reads nothing
// that the owner writes.
type given struct {
	answers  map[string]*heard
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
	// how the functions of effects broke that are in doubt by that, the last one first
	broke   atomic.Pointer[brokenEffect]
	emits   atomic.Pointer[emission] // the last one kept for the observer
	effects atomic.Pointer[sync.Map] // what is known of its effects; nil if nothing
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

// What becomes of a visit, in the lowest bits of its word. In the others stands how long an item
// has worked.
const (
	visitRunning   int32 = iota
	visitOver            // the body has returned
	visitReturned        // from its own goroutine: the owner has it
	visitAbandoned       // before that

	visitFate = 3
)

// worksFor notes how long an item of a run with a log has worked: in quarters of a microsecond,
// about, and no longer than two minutes, which is more than any append takes. A field of its own
// would be eight bytes in every visit.
func (v *visit) worksFor(d time.Duration) {
	quarters := int32(min((d+128)>>8, math.MaxInt32>>2))
	if was := v.word.Load(); was == visitOver {
		v.word.CompareAndSwap(was, was|quarters<<2)
	}
}

// worked is what worksFor was told.
func (v *visit) worked() time.Duration { return time.Duration(v.word.Load()>>2) << 8 }

// over reports whether the body has returned, or was abandoned.
func (v *visit) over() bool { return v.word.Load() != visitRunning }

// end makes the visit one that has returned, or was abandoned. It fails if it is either already.
func (v *visit) end(as int32) bool {
	for {
		was := v.word.Load()
		if was&visitFate >= visitReturned {
			return false
		}
		if v.word.CompareAndSwap(was, was&^visitFate|as) {
			return true
		}
	}
}

// newVisit makes the context and the draft of the next attempt of t.
func (r *run) newVisit(t *task) *visit {
	v := r.blankVisit()
	v.footing, v.t, v.draft, v.where = r.footing(t), t, r.drafts.Draft(t.frame.view), t.where()
	v.step, v.root = int32(t.frame.step), int32(r.m.root.step)
	if len(r.m.effects) > 0 {
		v.learn(r.m.effects[v.path()])
	}
	return v
}

// footing is what the next attempt of t begins from.
func (r *run) footing(t *task) *footing {
	m, plain := r.m, t.odd == nil && t.node.Policy.Timeout == 0 && len(r.m.vacated) == 0
	f := r.plain
	fits := f != nil && int(f.turn) == m.turn && int(f.generation) == m.generation
	if plain && fits && !t.isItem() && !t.frame.odds && len(r.c.interceptors) == 0 {
		return f // the rest that given looks at is the same for all visits since f was made
	}
	given := r.given(t)
	if plain && given == &givenNothing {
		if !fits {
			r.plain = r.newFooting(t, given)
		}
		return r.plain
	}
	return r.newFooting(t, given)
}

// limit begins the time limit of the attempt: what the observer took is none of it.
func (r *run) limit(v *visit) {
	if limit := v.t.node.Policy.Timeout; limit > 0 { // then its footing is its own
		v.Context, v.stop = context.WithTimeoutCause(r.ctx, limit, ErrTimeout)
	}
}

func (r *run) newFooting(t *task, given *given) *footing {
	f := &r.first
	if f.host != nil {
		f = new(footing)
	}
	*f = footing{
		Context: r.ctx, host: r.host, turn: int32(r.m.turn), generation: int32(t.generation(r.m)),
		attempt: int32(t.attempts() + 1), given: given,
	}
	return f
}

// timed begins to measure how long the attempt takes.
func (r *run) timed(v *visit, from time.Time) {
	if v.footing == r.plain {
		own := *v.footing
		v.footing = &own
	}
	v.began = from
}

// blankVisit returns memory for a visit. It is taken several at a time, and no visit gets what
// another one had.
func (r *run) blankVisit() *visit {
	if r.visited == len(r.visits) {
		r.drafts.Most = r.nextSlab()
		some := slices.Grow([]visit(nil), r.drafts.Most)
		r.visits, r.visited = some[:cap(some)], 0 // all that the allocator gives for it
	}
	r.visited++
	return &r.visits[r.visited-1]
}

// nextSlab is how many visits get their memory at once: at first as many as the graph has nodes,
// but not those of a run that goes on, of which most may be done; then twice as many each time,
// since there are loops and items.
func (r *run) nextSlab() int {
	if last := r.drafts.Most; last > 0 {
		return min(2*last, slabMost)
	}
	if r.opens {
		return min(len(r.m.plan.Nodes), slabMost)
	}
	return min(len(r.m.plan.Nodes), slabFirst)
}

// slabMost is how many visits get their memory at once at most, slabFirst how many in a run that
// goes on.
const (
	slabFirst = 2
	slabMost  = 16
)

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

// announce tells that an attempt begins, gives it its slot, and begins its time limit. Nobody is
// told of one whose context has ended, and readers not of one that the observer ends. begins is
// false for those: they are ready still. owner reports whether the owner still owns the run.
func (r *run) announce(h *tenure, v *visit) (begins, owner bool) {
	readers := r.listeners()
	begins = !r.halted()
	if begins && (r.c.opts.Observe != nil || len(readers) > 0) {
		e := v.notice(VisitStarted)
		r.timed(v, e.At)
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
		return false, true
	}
	r.limit(v)
	return true, true
}

// Value finds the visit itself under [dag.VisitKey].
func (v *visit) Value(key any) any {
	if key == (dag.VisitKey{}) {
		return dag.Visit(v)
	}
	return v.Context.Value(key)
}

func (v *visit) Key() string { return keyOf(v.host.id, int(v.turn), int(v.generation)) + v.path() }

func (v *visit) path() string { return *v.where }

func (v *visit) outcome() string {
	if v.chose == nil {
		return ""
	}
	return *v.chose
}

// choose makes o the outcome.
func (v *visit) choose(o string) {
	if v.chose = nil; o != "" {
		some := o // so that none is not allocated
		v.chose = &some
	}
}

// Now implements [dag.Clock].
func (v *visit) Now() time.Time { return v.host.c.opts.Now() }

func (v *visit) Attempt() int { return int(v.attempt) }

func (v *visit) Settings() json.RawMessage { return v.settings }

func (v *visit) Failures() []dag.Failure { return slices.Clone(v.failures) }

// encode is the JSON of values that can't fail. JSON inside of v stays as it is.
func encode(v any) json.RawMessage {
	raw, err := asJSON(v)
	if err != nil {
		panic("dispatcher: " + err.Error())
	}
	return raw
}

// splice puts value, which is JSON and may be large, in the place of the 0 that stands under the
// first key of that name: it is copied there, where to encode it with the rest would check each
// byte. In JSON no string has a quote that could be taken for the key's.
func splice(raw []byte, key string, value []byte) []byte {
	before, after, ok := bytes.Cut(raw, []byte(`"`+key+`":0`))
	if !ok {
		panic("dispatcher: there is no place for " + key)
	}
	return slices.Concat(before, []byte(`"`+key+`":`), value, after)
}

// asJSON is the JSON of v without escapes of HTML.
func asJSON(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil || !bytes.Contains(raw, []byte(`\u`)) { // nothing in it is escaped
		return raw, err
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err = e.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

var (
	_ dag.Visit = (*visit)(nil)
	_ dag.Clock = (*visit)(nil)
)
