package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// What is no number, or less than nothing, reaches no target. All of it can be printed.
func TestNoFigure(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	most := func(target float64, s ...float64) row { return atMost("r", s, "ratio", target, "") }
	least := func(target float64, s ...float64) row { return atLeast("r", s, "ratio", target, "") }
	orient := func(s ...float64) row { return shown("r", s, "ratio", "") }
	for _, test := range []struct {
		name  string
		row   row
		ok    bool
		value float64
		note  string
	}{
		{"at most, below 0", most(1, -0.5), false, -0.5, "at most"},
		{"at most, 0", most(1, 0), true, 0, "at most"},
		{"at most, 0 wanted", most(0, 0), true, 0, "at most"},
		{"at most, below 0 wanted", most(0, -1), false, -1, "at most"},
		{"at most, NaN", most(1, nan), false, 0, "no figure: NaN"},
		{"at most, NaN of 0", most(0, nan), false, 0, "no figure: NaN"},
		{"at most, one NaN of three", most(1, 0.5, nan, 0.5), false, 0, "no figure: NaN"},
		{"at most, -Inf", most(1, -inf), false, 0, "no figure: "},
		{"at most, target NaN", most(nan, 1), false, 1, "no target: NaN"},
		{"at least, +Inf", least(1, inf), false, 0, "no figure: "},
		{"at least, NaN", least(1, nan), false, 0, "no figure: NaN"},
		{"at least, 0", least(1, 0), false, 0, "at least"},
		{"at least, above", least(1, 2), true, 2, "at least"},
		{"shown, below 0", orient(-1), false, -1, ""},
		{"shown, 0", orient(0), true, 0, ""},
		{"shown, NaN", orient(nan), false, 0, "no figure: NaN"},
	} {
		r := test.row
		if r.OK != test.ok || r.Value != test.value || !strings.HasPrefix(r.Note, test.note) {
			t.Errorf("%s: %+v, want ok %v, %v, a note of %q", test.name, r, test.ok, test.value, test.note)
		}
		var b strings.Builder
		if err := printJSON(&b, []row{r}); err != nil || !json.Valid([]byte(b.String())) {
			t.Errorf("%s: printed as %q, %v", test.name, b.String(), err)
		}
		if _, reached := r.verdict(); (reached == "NO") == test.ok {
			t.Errorf("%s: a person reads %q", test.name, reached)
		}
	}
}
