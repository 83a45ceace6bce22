package dispatcher

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// Gates say what a person has to approve before it is done: visits that run a function, and effects
// (dag.Effect). An approval is needed if any of the fields says so. The zero Gates ask nobody.
//
// What needs an approval is interrupted before it begins, with the [Action] as the question, by
// "gate". [Approve] or [Reject] answers it, by an [Author] who may say why ([Because]); a Resume
// alone does not.
//
//   - The approval of a visit lets that visit run, through all its attempts and crashes, until it
//     is done or has failed for good. It approves none of the visit's effects.
//   - The approval of an effect lets it begin once, with this input, operation and access. An
//     effect that did not happen (dag.NotDone) needs another one.
//   - A Migration that gives the node another name changes nothing in that: what was approved or
//     rejected stays so.
//
// A rejected visit fails. For a rejected effect with this input dag.Effect returns dag.ErrDenied,
// whatever operation and access it is declared with since. A Resume of the Failed run has the
// person asked again.
//
// Gates are no part of the graph: a run may be resumed under others. An interceptor may ask or deny
// beside them, and the most restrictive of all counts.
type Gates struct {
	// Preset is what needs an approval by what it was declared to do. Zero means nothing.
	Preset Preset
	// Names are of visits and of effects. Nil means none.
	//
	//   - A visit is named by its node path ("compose-loop/validate"), its visit path
	//     ("compose-loop/2/validate"), or a pattern of either as path.Match knows them ("tools/*").
	//     A Loop, Embed or Each itself, as against what is in it, is named by its own path alone,
	//     without a pattern. New refuses a name that names no node, or a dag.Fail.
	//   - An effect is named by that of its visit with # and a key, or a pattern of keys:
	//     "pay#charge", "tools/*#*". Keys are known when effects begin and not before, so New can't
	//     refuse one that no effect has: a mistyped key gates nothing. What must not happen unseen
	//     is named with # and a star, or said by Preset.
	Names []string
	// If is asked about what Preset and Names let through. It sees the whole [Action], with the
	// input of an effect. About a visit it is asked in each call that begins it, as an interceptor
	// is; about an effect in the node's goroutine, each time that the effect would begin. True or
	// an error means that an approval is needed. A panic fails the visit, by an error that says
	// whose panic it was, and nothing has begun. Nil means that nothing more needs an approval.
	If func(Action) (bool, error)
}

// A Preset says what needs an approval by its [dag.Access].
type Preset string

const (
	GateNothing    Preset = "nothing"    // as the zero Preset
	GateWrites     Preset = "writes"     // what is not declared as dag.Reads
	GateEverything Preset = "everything" // every visit that runs a function, and every effect
)

// An Action is a visit or an effect that may need an approval. As JSON it is the question that
// a person is asked.
type Action struct {
	Run       string          `json:"run"`
	Path      string          `json:"path"`                // of the visit: compose-loop/2/validate
	Node      string          `json:"node"`                // its node path: compose-loop/validate
	Effect    string          `json:"effect,omitempty"`    // the key of the effect; "" is the visit itself
	Operation string          `json:"operation,omitempty"` // of the effect, as declared
	Access    dag.Access      `json:"access"`              // of the effect, or of the node's Policy
	Input     json.RawMessage `json:"input,omitempty"`     // of the effect
	// Kind is that of the node. [Gates].If sees it; it is no part of the question.
	Kind dag.Kind `json:"-"`
	// Touches, Reversible and Replayable are what the effect declares. If sees them too.
	Touches                []string `json:"-"`
	Reversible, Replayable bool     `json:"-"`
}

// byGate is who asks for an approval that Gates want.
const byGate = "gate"

// gates are Gates as New has checked them.
type gates struct {
	Gates
	visits, effects []gateName
}

// vetting reports whether any visit may need an approval.
func (g *gates) vetting() bool {
	return g != nil && (g.blanket() || g.If != nil || len(g.visits) > 0)
}

// blanket reports whether the preset may want an approval.
func (g *gates) blanket() bool { return g.Preset == GateWrites || g.Preset == GateEverything }

// visit says why a visit needs an approval, "" if it needs none. item tells one of an Each,
// whose node path is that of the Each, holds one that runs no function itself.
func (g *gates) visit(a Action, item, holds bool) string {
	for i := range g.visits {
		if g.visits[i].visit(&a, item, holds) {
			return fmt.Sprintf("it is named: %s", g.visits[i].text)
		}
	}
	if holds {
		return ""
	}
	return g.declared(a)
}

// effect says why an effect needs an approval, "" if it needs none.
func (g *gates) effect(a Action) string {
	for i := range g.effects {
		if g.effects[i].effect(&a) {
			return fmt.Sprintf("it is named: %s", g.effects[i].text)
		}
	}
	return g.declared(a)
}

// declared says why an action needs an approval by what it was declared as, or by If.
func (g *gates) declared(a Action) string {
	switch {
	case g.Preset == GateEverything:
		return "everything needs an approval"
	case g.Preset == GateWrites && a.Access == dag.Writes:
		return "writes need an approval, and it is declared as one"
	case g.Preset == GateWrites && a.Access != dag.Reads:
		return "writes need an approval, and it is not declared to read only (dag.Reads)"
	case g.If == nil:
		return ""
	}
	a.Input, a.Touches = slices.Clone(a.Input), slices.Clone(a.Touches)
	asks, err := g.If(a)
	switch {
	case err != nil:
		return clip("Gates.If can't say whether it needs an approval: " + fmt.Sprint(err))
	case asks:
		return "Gates.If says so"
	}
	return ""
}

func (c *core) configureGates() error {
	o := c.opts.Gates
	o.Preset = cmp.Or(o.Preset, GateNothing)
	if o.Preset == GateNothing && len(o.Names) == 0 && o.If == nil {
		return nil
	}
	g := &gates{Gates: o}
	switch {
	case o.Preset != GateNothing && !g.blanket():
		return &OptionError{"Gates.Preset", fmt.Sprintf("is unknown: %.40q; it is %q, %q or %q",
			o.Preset, GateNothing, GateWrites, GateEverything)}
	case c.store == nil:
		return &OptionError{"Gates", "need a store: nobody else can be asked"}
	case slices.ContainsFunc(c.interceptors, func(x *interceptor) bool { return x.Name == byGate }):
		return &OptionError{"Hooks.Intercept", fmt.Sprintf("has an interceptor %q, and so are the Gates called in the log", byGate)}
	}
	for _, name := range o.Names {
		n, err := newGateName(c.plan, name)
		if err != nil {
			return &OptionError{"Gates.Names", fmt.Sprintf("has %.200q: %v", name, err)}
		}
		if n.ofEffect {
			g.effects = append(g.effects, n)
		} else {
			g.visits = append(g.visits, n)
		}
	}
	c.gates = g
	return nil
}
