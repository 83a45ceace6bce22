package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// An about is what every event of a run tells, whatever it is of. Here alone the fields
// are filled that no entry tells by itself. It never changes: who reads it may keep it.
type about struct {
	c           *core
	run         string
	graph       string
	digest      string // of the graph; "" is the dispatcher's own
	turn        int
	correlation string
	labels      map[string]string
}

// event is the event of nothing yet.
func (a *about) event(kind EventKind, seq uint64) Event {
	return Event{
		Kind: kind, Run: a.run, Graph: a.graph, Seq: seq,
		Turn: a.turn, Correlation: a.correlation, Labels: a.labels,
	}
}

// after is what the event of e tells, and all later ones, of which a was told before it.
func (a *about) after(e *checkpoint.Entry) *about {
	switch e.Kind {
	case checkpoint.Opened:
		next := *a
		next.turn = 1
		if o, err := parse(e.Data, plainOpening); err == nil {
			next.labels, next.correlation = o.Labels, o.Correlation
			if o.Graph != "" { // a run without a log has none
				next.graph, next.digest = o.Graph, o.Digest
			}
			if o.Origin != nil {
				next.turn = o.Origin.Turn
			}
		}
		return &next
	case checkpoint.Migrated:
		next := *a
		var d checkpoint.Migration
		if json.Unmarshal(e.Data, &d) == nil {
			next.graph, next.digest = d.Graph, d.To
		}
		return &next
	case checkpoint.Rewound:
		next := *a
		var d checkpoint.Rewinding
		if json.Unmarshal(e.Data, &d) == nil && d.Turn > 0 {
			next.graph, next.digest, next.turn = d.Graph, d.Digest, d.Turn
		}
		return &next
	case checkpoint.TurnBegun:
		next := *a
		next.turn++
		var t checkpoint.Turn
		if json.Unmarshal(e.Data, &t) == nil && t.Number > 0 {
			next.turn = t.Number
		}
		return &next
	}
	return a
}

// tell is the event of an entry, for observers of live runs and readers of logs alike. It
// keeps the memory of e.
func (a *about) tell(e *checkpoint.Entry) Event {
	v := a.event(eventKind(e.Kind), e.Seq)
	v.Path, v.Node, v.Step, v.Attempt = e.Path, nodePath(e.Path), e.Step, e.Attempt
	v.Outcome, v.ID, v.At = e.Outcome, e.ID, e.At
	switch e.Kind {
	case checkpoint.Entered, checkpoint.Superstep, checkpoint.Resumed:
	case checkpoint.Opened:
		if o, err := parse(e.Data, plainOpening); err == nil && o.Origin != nil {
			v.Value = encode(o.Origin)
			v.Name = Ancestor{Run: o.Origin.Run, Seq: o.Origin.Seq}.Address()
			v.By, v.Cause = o.Origin.Author, o.Origin.Reason
		}
	case checkpoint.Done:
		v.Value = e.Data
		if n := a.nodeOf(e.Path); v.Attempt == 0 && n != nil && !holds(n) {
			v.Attempt = 1 // entries leave it out
		}
	case checkpoint.AttemptFailed:
		v.failed(e, a.c)
	case checkpoint.EffectBegun, checkpoint.EffectEnded:
		v.effect(e)
	case checkpoint.Interrupted:
		var i checkpoint.Interrupt
		if json.Unmarshal(e.Data, &i) == nil {
			v.Outcome, v.Name, v.Value = i.Kind, cmp.Or(i.Key, i.By), i.Question
		}
	case checkpoint.Answered:
		var n checkpoint.Answer
		if json.Unmarshal(e.Data, &n) == nil {
			v.Outcome, v.Value, v.By, v.Cause = n.How, n.Value, n.By, n.Reason
		}
	case checkpoint.Cancelled, checkpoint.TimedOut, checkpoint.Failed, checkpoint.Completed, checkpoint.Waiting:
		v.rested(e)
	case checkpoint.Migrated:
		var m checkpoint.Migration
		if json.Unmarshal(e.Data, &m) == nil {
			m.Machine = json.RawMessage("null") // as large as the state, and of no use here
			v.Value = encode(m)
		}
	case checkpoint.Edited:
		var d checkpoint.Edit
		if json.Unmarshal(e.Data, &d) == nil {
			v.By, v.Cause = d.Author, d.Reason
			if len(d.Voids) > 0 {
				v.Value = encode(d.Voids)
			}
		}
	case checkpoint.Trimmed:
		var t checkpoint.Trimming
		if json.Unmarshal(e.Data, &t) == nil {
			v.Value, v.By = encode(t.First), t.Author
		}
	case checkpoint.Tagged:
		var t checkpoint.Tag
		if json.Unmarshal(e.Data, &t) == nil {
			v.Name, v.Value, v.By = t.Name, encode(t.Seq), t.Author
		}
	case checkpoint.Rewound:
		var w checkpoint.Rewinding
		if json.Unmarshal(e.Data, &w) == nil {
			w.Machine = json.RawMessage("null")
			v.Value = encode(w)
			v.Name = Ancestor{Run: v.Run, Seq: w.To}.Address()
			v.By, v.Cause = w.Author, w.Reason
		}
	case checkpoint.Noted:
		var n checkpoint.Note
		if v.Value = e.Data; json.Unmarshal(e.Data, &n) == nil && n.Name != "" {
			v.Name, v.Value, v.By = n.Name, n.Value, n.By
		}
	default:
		v.Value = e.Data
	}
	if message, ok := strings.CutPrefix(e.Post, turnPrefix); ok && v.ID == "" {
		v.ID = message
	}
	return v
}

func (v *Event) failed(e *checkpoint.Entry, c *core) {
	var a checkpoint.FailedAttempt
	if json.Unmarshal(e.Data, &a) != nil {
		return
	}
	v.Failure, v.Final, v.Cause = dag.FailureKind(a.Kind), a.Final, a.Message
	n := &NodeError{Run: v.Run, Path: e.Path, Attempt: e.Attempt, Kind: v.Failure, Err: errors.New(a.Message)}
	if a.Origin != "" {
		v.Cause = a.Origin + ": " + v.Cause
		n.Path, n.Attempt = a.Origin, a.Attempts
	}
	if a.Stack != "" {
		n.Stack = []byte(a.Stack)
	}
	if node := c.nodeOf(n.Path); node != nil && v.Failure == dag.FailedTimeout {
		n.Budget = node.Policy.Timeout
	}
	if a.Message == context.DeadlineExceeded.Error() {
		n.Err = context.DeadlineExceeded // which NodeError knows not to repeat
	}
	v.Err = n
}

func (v *Event) effect(e *checkpoint.Entry) {
	if e.Kind == checkpoint.EffectBegun {
		var b checkpoint.BegunEffect
		if json.Unmarshal(e.Data, &b) == nil {
			v.Value, v.Name, v.Effect, v.Phase = b.Input, b.Operation, &b.DeclaredEffect, PhaseBegun
		}
		return
	}
	var x checkpoint.EndedEffect
	if json.Unmarshal(e.Data, &x) != nil {
		return
	}
	v.Value, v.Duration, v.By, v.Phase = x.Output, x.Took, x.By, PhaseEnded
	if x.Resolved {
		v.Outcome = "resolved"
	}
	if x.NotDone != "" {
		v.Cause, v.Phase = "not done: "+x.NotDone, PhaseNotDone
	} else if x.Lost != "" {
		v.Cause, v.Phase = "done, and its output is lost: "+x.Lost, PhaseLost
	}
}

func (v *Event) rested(e *checkpoint.Entry) {
	v.Status = checkpoint.Status("").After(e.Kind)
	if len(e.Data) == 0 {
		return
	}
	var r checkpoint.Resting
	if json.Unmarshal(e.Data, &r) != nil {
		return
	}
	if v.By = r.By; r.Cause == "" {
		return
	}
	v.Cause, v.Err = r.Cause, errors.New(r.Cause)
	if r.Kind != "" {
		f := &FaultError{Kind: r.Kind, Message: r.Cause}
		if r.Stack != "" {
			f.Stack = []byte(r.Stack)
		}
		v.Cause, v.Err = r.Kind+": "+r.Cause, f
	}
}

// nodePath is a path without the numbers of iterations and items: no node has such a name.
func nodePath(path string) string {
	if !strings.ContainsAny(path, "0123456789") {
		return path
	}
	segments := strings.Split(path, "/")
	kept := segments[:0]
	for _, s := range segments {
		if !isIteration(s) {
			kept = append(kept, s)
		}
	}
	if len(kept) == len(segments) {
		return path
	}
	return strings.Join(kept, "/")
}

// A nodeIndex finds the nodes of a graph and of those inside it by name.
type nodeIndex struct {
	once  sync.Once
	plans map[*dag.Plan]map[string]*dag.PlanNode
}

func (x *nodeIndex) add(p *dag.Plan) {
	if x.plans[p] != nil {
		return
	}
	names := make(map[string]*dag.PlanNode, len(p.Nodes))
	x.plans[p] = names
	for i := range p.Nodes {
		n := &p.Nodes[i]
		names[n.Name] = n
		if n.Body != nil {
			x.add(n.Body)
		}
	}
}

// nodeOf returns the node of a visit in the graph that has made its entry, or, if nobody can tell
// how that is, in the dispatcher's; nil if it has none.
func (a *about) nodeOf(path string) *dag.PlanNode {
	if p := a.c.foreign(a.digest); p != nil {
		return nodeIn(p, path, nodeOf)
	}
	return a.c.nodeOf(path)
}

// nodeOf returns the node of a visit, nil if the graph has none of that path.
func (c *core) nodeOf(path string) *dag.PlanNode {
	c.nodes.once.Do(func() {
		c.nodes.plans = map[*dag.Plan]map[string]*dag.PlanNode{}
		c.nodes.add(c.plan)
	})
	return nodeIn(c.plan, path, func(p *dag.Plan, name string) *dag.PlanNode { return c.nodes.plans[p][name] })
}

func nodeIn(plan *dag.Plan, path string, find func(*dag.Plan, string) *dag.PlanNode) *dag.PlanNode {
	for plan != nil {
		name, rest, more := strings.Cut(path, "/")
		n := find(plan, name)
		if n == nil || !more {
			return n
		}
		switch n.Kind {
		case dag.KindLoop:
			_, rest, _ = strings.Cut(rest, "/")
		case dag.KindEach:
			if _, rest, more = strings.Cut(rest, "/"); !more {
				return n.Item
			}
		}
		plan, path = n.Body, rest
	}
	return nil
}
