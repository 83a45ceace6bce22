package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What needs an approval by what it was declared to do. What is not declared counts as a write.
func TestGatesPresets(t *testing.T) {
	for preset, want := range map[dispatcher.Preset][]string{
		"":                        nil,
		dispatcher.GateNothing:    nil,
		dispatcher.GateWrites:     {"pay#charge", "tell"},
		dispatcher.GateEverything: {"look", "look#price", "pay", "pay#charge", "tell"},
	} {
		var w witness
		var bank effectBank
		got := gatesAsked(t, gatesShop(t, &w, &bank), new(memory.Store), gated(dispatcher.Gates{Preset: preset}))
		gatesSame(t, fmt.Sprintf("preset %q", preset), got, want)
		if bank.counts()["tale/pay#charge"] != 1 {
			t.Errorf("preset %q: done %v", preset, bank.counts())
		}
	}
}

// gatesNested is rounds{pay} → all, an Each over two items → tree, an Each of graphs {leaf}.
// Every body does the effects tool/1 and charge.
func gatesNested(t testing.TB) *dag.Graph[Tale] {
	t.Helper()
	act := func(ctx context.Context, _ *Tale) error {
		for _, key := range []string{"tool/1", "charge"} {
			if _, err := dag.Effect(ctx, key, 1, func(context.Context, int) (int, error) { return 0, nil }); err != nil {
				return err
			}
		}
		return nil
	}
	body := dag.New[Tale]("body")
	dag.Step(body, "pay", act)
	leaves := dag.New[Tale]("leaves")
	dag.Step(leaves, "leaf", act)
	pair := func(*Tale) []int { return []int{1, 2} }
	b := dag.New[Tale]("nested")
	rounds := dag.Loop(b, "rounds", frozen(t, body), func(*Tale) bool { return false }, 2)
	all := dag.Each(b, "all", pair, func(ctx context.Context, s *Tale, _ int) error { return act(ctx, s) }, rounds)
	dag.EachGraph(b, "tree", pair, frozen(t, leaves), func(*Tale, int, *Tale) {}, func(*Tale, int, *Tale) {}, all)
	return frozen(t, b)
}

// Names are of nodes, visits and effects, or patterns of them. What is not named goes through.
func TestGatesNames(t *testing.T) {
	for name, want := range map[string][]string{
		"rounds/pay":            {"rounds/1/pay", "rounds/2/pay"},
		"rounds/2/pay":          {"rounds/2/pay"},
		"rounds":                {"rounds"},
		"rounds/*":              {"rounds/1/pay", "rounds/2/pay"},
		"*/[13]/pay":            {"rounds/1/pay"},
		"all":                   {"all"},
		"all/2":                 {"all/2"},
		"all/*":                 {"all/1", "all/2"},
		"tree/2":                {"tree/2"},
		"tree/*":                {"tree/1/leaf", "tree/2/leaf"},
		"tree/1/*":              {"tree/1/leaf"},
		"rounds/pay#charge":     {"rounds/1/pay#charge", "rounds/2/pay#charge"},
		"rounds/1/pay#charge":   {"rounds/1/pay#charge"},
		"*/1/pay#ch*":           {"rounds/1/pay#charge"},
		"rounds/1/pay#*":        {"rounds/1/pay#tool/1", "rounds/1/pay#charge"},
		"rounds/1/pay#tool/*":   {"rounds/1/pay#tool/1"},
		"all#tool/1":            {"all/1#tool/1", "all/2#tool/1"},
		"all/2#tool/?":          {"all/2#tool/1"},
		"tree/leaf#charge":      {"tree/1/leaf#charge", "tree/2/leaf#charge"},
		"tree/*#tool/1":         {"tree/1/leaf#tool/1", "tree/2/leaf#tool/1"},
		"rounds/pay#unheard-of": nil,
		"all/1???":              nil, // there may be so many
		"all/[^0]*9999":         nil,
		"rounds/????/pay":       nil,
	} {
		t.Run(strings.ReplaceAll(name, "/", "|"), func(t *testing.T) {
			got := gatesAsked(t, gatesNested(t), new(memory.Store), gated(dispatcher.Gates{Names: []string{name}}))
			slices.Sort(got)
			slices.Sort(want)
			gatesSame(t, name, got, want)
		})
	}
}

// Gates that can't be, or that would let everything through unseen, are refused by New.
func TestGatesThatCannotBe(t *testing.T) {
	g := gatesNested(t)
	for _, name := range []string{
		"", "pay", "round/*", "rounds/3/pay", "rounds/1", "rounds/*/?/pay", "all/0", "[", "rounds/[", "rounds/pay#",
		"all/0*", "all/?????????????", "all/1[a-z]0", "rounds/1\\.?/pay", "rounds/pay#[", "rounds#charge", "tree#charge", "#charge", "nobody#charge", "\xff", "tree/[a-k]eaf",
		"nobod*#charge", "tree/[a-k]eaf#charge", "round/*#*",
	} {
		if _, err := dispatcher.New(g, new(memory.Store), gated(dispatcher.Gates{Names: []string{"rounds/pay", name}})); !isOptionError(err) {
			t.Errorf("the name %q: New returned %v", name, err)
		}
	}
	for _, preset := range []dispatcher.Preset{"write", "all", "Everything"} {
		if _, err := dispatcher.New(g, new(memory.Store), gated(dispatcher.Gates{Preset: preset})); !isOptionError(err) || !strings.Contains(err.Error(), string(preset)) {
			t.Errorf("the preset %q: New returned %v", preset, err)
		}
	}
	if _, err := dispatcher.New(g, nil, gated(dispatcher.Gates{Preset: dispatcher.GateWrites})); !isOptionError(err) {
		t.Errorf("without a store New returned %v", err)
	}
	if _, err := dispatcher.New(g, nil, gated(dispatcher.Gates{Preset: dispatcher.GateNothing})); err != nil {
		t.Errorf("without a store and gates New returned %v", err)
	}
	o := gated(dispatcher.Gates{Preset: dispatcher.GateWrites})
	o.Hooks.Intercept = []dispatcher.Interceptor{{Name: "gate", Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Continue() }}}
	if _, err := dispatcher.New(g, new(memory.Store), o); !isOptionError(err) {
		t.Errorf("with an interceptor that is called gate New returned %v", err)
	}
}

// If is asked about every visit that runs a function and every effect that is not named
// already. An error is no permission.
func TestGatesIf(t *testing.T) {
	var w witness
	var bank effectBank
	var seen []string
	o := gated(dispatcher.Gates{
		Names: []string{"tell"},
		If: func(a dispatcher.Action) (bool, error) {
			seen = append(seen, fmt.Sprintf("%s %s#%s %s %s", a.Path, a.Node, a.Effect, a.Access, a.Input))
			switch {
			case a.Path == "look":
				return false, errors.New("the rules can't be read")
			case a.Effect == "charge":
				return string(a.Input) == "5", nil
			}
			return false, nil
		},
	})
	got := gatesAsked(t, gatesShop(t, &w, &bank), new(memory.Store), o)
	gatesSame(t, "asked", got, []string{"look", "look#price", "pay#charge", "tell"})
	slices.Sort(seen)
	gatesSame(t, "seen", slices.Compact(seen), []string{
		"look look# reads ", `look look#price reads "book"`, "pay pay# reads ", "pay pay#charge writes 5",
	})
}

// The reason why a person is asked is told.
func TestGatesReasons(t *testing.T) {
	for _, test := range []struct {
		gates dispatcher.Gates
		want  string
	}{
		{dispatcher.Gates{Preset: dispatcher.GateEverything}, "everything needs an approval"},
		{dispatcher.Gates{Preset: dispatcher.GateWrites}, "not declared to read only (dag.Reads)"},
		{dispatcher.Gates{Preset: dispatcher.GateWrites}, "it is declared as one"},
		{dispatcher.Gates{Names: []string{"t*"}}, "t*"},
		{dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) { return a.Node == "tell", nil }}, "Gates.If"},
		{dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) { return false, errors.New("no rules") }}, "Gates.If can't say whether it needs an approval: no rules"},
	} {
		policy, access := dag.Policy{}, "undeclared"
		if strings.HasSuffix(test.want, "declared as one") {
			policy.Access, access = dag.Writes, "writes"
		}
		b := dag.New[Tale]("one")
		dag.Step(b, "tell", func(context.Context, *Tale) error { return nil }).With(policy)
		i := gatesStops(t, frozen(t, b), new(memory.Store), gated(test.gates), "before tell#")
		if !strings.Contains(i.Reason, test.want) {
			t.Errorf("the reason is %q, want %q in it", i.Reason, test.want)
		}
		if got := i.String(); got != `gate asks before tell: {"run":"tale","path":"tell","node":"tell","access":"`+access+`"}` {
			t.Errorf("the interrupt is %s", got)
		}
	}
}

// Part 2, number 44: a gate and an interceptor together are as strict as the stricter one; a
// result that an interceptor gives still needs the approval, and is not computed before.
func TestLife44GatesAndInterceptors(t *testing.T) {
	for name, ruling := range map[string]dispatcher.Ruling{
		"continue": dispatcher.Continue(),
		"instead":  dispatcher.Instead(saying("substitute")),
		"ask":      dispatcher.Ask("may it?"),
		"deny":     dispatcher.Deny("never"),
		"zero":     {},
	} {
		var w witness
		var store memory.Store
		o := hookBefore([]string{"b"}, always(ruling))
		o.Gates.Names = []string{"b"}
		g := line(t, &w, nil)
		res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
		w.expect(t, "a")
		if name == "deny" || name == "zero" {
			rests(t, res, err, checkpoint.StatusFailed, "b")
			denied(t, err, "b", "first")
			continue
		}
		rests(t, res, err, checkpoint.StatusInterrupted, "b")
		var by []string
		for _, i := range res.Interrupts {
			by = append(by, i.By)
			gatesDecide(t, g, &store, o, i, dispatcher.Approve)
		}
		want := []string{"gate"}
		if name == "ask" {
			want = []string{"first", "gate"}
		}
		gatesSame(t, name, by, want)
		res, err = process(t, g, &store, o).Run(t.Context(), run, nil)
		completes(t, res, err)
		ranOrWas(t, &w, res, name == "instead")
	}
}

// Part 2, number 44: If blows up. The visit fails, with its stack, and neither it nor the
// effect has begun; the run goes on when If can be asked again.
func TestLife44GateBlowsUp(t *testing.T) {
	for _, effect := range []bool{false, true} {
		for _, k := range blasts {
			t.Run(fmt.Sprintf("%s effect=%t", k.name, effect), func(t *testing.T) {
				quiet(t)
				var w witness
				var bank effectBank
				var store memory.Store
				armed := true
				g := gatesShop(t, &w, &bank)
				o := gated(dispatcher.Gates{If: func(a dispatcher.Action) (bool, error) {
					if armed && a.Path == "pay" && (a.Effect != "") == effect {
						k.blast()
					}
					return false, nil
				}})
				res, err := process(t, g, &store, o).Run(t.Context(), run, nil)
				rests(t, res, err, checkpoint.StatusFailed, "pay")
				var n *dispatcher.NodeError
				if !errors.As(err, &n) || n.Kind != k.kind || n.Path != "pay" || len(n.Stack) == 0 {
					t.Errorf("the error is %v, want one of pay, kind %s", err, k.kind)
				}
				gatesUndone(t, &bank)
				began := []string{"look"}
				if effect {
					began = append(began, "pay")
				}
				w.expect(t, began...)
				armed = false
				res, err = process(t, g, &store, o).Resume(t.Context(), run)
				completes(t, res, err)
				if bank.counts()["tale/pay#charge"] != 1 {
					t.Errorf("done %v", bank.counts())
				}
			})
		}
	}
}
