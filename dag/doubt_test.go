package dag_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

// What an effect declares reaches the dispatcher; what can't be kept is refused, and nothing
// is done.
func TestDeclaredEffects(t *testing.T) {
	v := &scripted{}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, v)
	done := 0
	do := func(options ...dag.EffectOption) error {
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { done++; return 0, nil }, options...)
		return err
	}
	if err := do(dag.Operation("bank.pay"), dag.Touches("card", "ledger"), dag.Touches("mail"), dag.Reversible, dag.InDoubt(dag.DoubtAsks)); err != nil {
		t.Fatal(err)
	}
	call := v.effects[0]
	if call.Operation != "bank.pay" || strings.Join(call.Touches, " ") != "card ledger mail" || !call.Reversible || call.Doubt != dag.DoubtAsks || call.Replayable {
		t.Errorf("declared %+v", call)
	}
	for want, option := range map[string]dag.EffectOption{
		"has an operation that is empty":        dag.Operation(""),
		"has 1025 bytes":                        dag.Operation(strings.Repeat("x", 1025)),
		"control character":                     dag.Operation("a\nb"),
		"holds a control character":             dag.Touches("a\u0085b"),
		"is not UTF-8":                          dag.Touches("card", "\xff"),
		"touches something whose name is empty": dag.Touches("card", ""),
		"doubt(9)":                              dag.InDoubt(9),
	} {
		if err := do(option); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if done != 1 || len(v.effects) != 1 {
		t.Errorf("done %d times of %d calls", done, len(v.effects))
	}
}

// A Doubt is told by its name, and read from it.
func TestDoubtText(t *testing.T) {
	for _, d := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
		text, err := json.Marshal(d)
		var again dag.Doubt
		if err != nil || string(text) != `"`+d.String()+`"` || json.Unmarshal(text, &again) != nil || again != d {
			t.Errorf("%s is written %s and read %s: %v", d, text, again, err)
		}
	}
	if _, err := json.Marshal(dag.Doubt(9)); err == nil || dag.Doubt(9).String() != "doubt(9)" {
		t.Errorf("%s is written: %v", dag.Doubt(9), err)
	}
	var d dag.Doubt
	if err := json.Unmarshal([]byte(`"guesses"`), &d); err == nil {
		t.Errorf("read %s", d)
	}
}
