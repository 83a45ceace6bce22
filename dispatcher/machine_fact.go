package dispatcher

import (
	"encoding/json"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A fact is an entry on its way into the machine. In recovery what it speaks of is found
// from its path and its encoded deltas; a live run knows that already.
type fact struct {
	Kind    checkpoint.Kind
	live    bool // t, f, delta and outer are set
	Step    int
	Attempt int
	Path    string
	Outcome string
	t       *task       // the visit of Path
	f       *frame      // the frame of Path
	delta   state.Delta // of Delta
	*extra              // never nil
}

// An extra is what most facts don't have. Facts are copied and cleared at every step of a
// run, so they are kept small.
type extra struct {
	ID     string
	Post   string
	claims bool // of Post
	Delta  json.RawMessage
	Outer  json.RawMessage
	Data   json.RawMessage

	slabs   *state.Slabs           // if Delta's memory stays as it is
	outer   state.Delta            // of Outer
	items   any                    // of a live Entered of an Each: the items themselves; never stored
	err     error                  // what a live failure tells the caller; never stored
	took    time.Duration          // by a live visit; never stored
	state   any                    // at the end of a superstep, for who reads along without a log; never stored
	opening *checkpoint.Opening    // of Data
	resumed *checkpoint.Resumption // of Data, if it is live
	pending *pending               // of Data, if it is live and a question of the node's
	plan    *dag.Plan              // Migrated, Rewound: the graph that the run goes on with
	origin  *frozenMachine         // Opened: of a fork, what it goes on from
	seq     uint64                 // Rewound: its number
}

// plainFact is the extra of facts that have none. It is never written to.
var plainFact extra

// said is the fact of an entry. A live one speaks of t, if that is not nil.
func said(e checkpoint.Entry, t *task) fact { return saidIn(&e, t, nil) }

// saidIn is said for a fact that is forgotten before the next one: room has its extra.
func saidIn(e *checkpoint.Entry, t *task, room *extra) fact {
	x := fact{
		Kind: e.Kind, Step: e.Step, Attempt: e.Attempt, Path: e.Path, Outcome: e.Outcome,
		t: t, live: true, extra: &plainFact,
	}
	if e.ID != "" || e.Post != "" || e.Delta != nil || e.Outer != nil || e.Data != nil {
		if room == nil {
			room = &extra{}
		}
		*room = extra{ID: e.ID, Post: e.Post, claims: e.Claims, Delta: e.Delta, Outer: e.Outer, Data: e.Data}
		x.extra = room
	}
	return x
}

// more is the fact's extra, to be written to.
func (x *fact) more() *extra {
	if x.extra == &plainFact {
		x.extra = &extra{}
	}
	return x.extra
}

// entry is the entry that a live fact makes, without its deltas.
func (x *fact) entry() (e checkpoint.Entry) {
	x.writeTo(&e)
	return e
}

// writeTo makes e the entry of a live fact, but for its deltas and for what stores set.
func (x *fact) writeTo(e *checkpoint.Entry) {
	e.Kind, e.Path, e.Step, e.Attempt, e.Outcome = x.Kind, x.Path, x.Step, x.Attempt, x.Outcome
	e.ID, e.Post, e.Claims, e.Data = x.ID, x.Post, x.claims, x.Data
}

// chosenIn returns the outcomes that the outcome of a Choose names.
func chosenIn(outcome string) (chosen []string, err error) {
	err = json.Unmarshal([]byte(outcome), &chosen)
	return chosen, err
}
