package dag_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

type modelSettings struct {
	Model  string `json:"model"`
	Budget int    `json:"budget"`
}

// What a node does not know of the settings is ignored; what does not fit is an error, and
// no half of it is given out. Without settings, and outside a run, there is the zero value.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings string
		want     modelSettings
		err      string
	}{
		{name: "given", settings: `{"model":"small","budget":3,"other":[1]}`, want: modelSettings{"small", 3}},
		{name: "in part", settings: `{"budget":4}`, want: modelSettings{Budget: 4}},
		{name: "none", settings: ``},
		{name: "null", settings: `null`},
		{name: "wrong type", settings: `{"model":"small","budget":"much"}`, err: "the settings of the run"},
		{name: "no object", settings: `[1]`, err: "the settings of the run"},
	} {
		ctx := context.WithValue(t.Context(), dag.VisitKey{}, &scripted{settings: c.settings})
		got, err := dag.Settings[modelSettings](ctx)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v, want %+v, %q", c.name, got, err, c.want, c.err)
		}
	}
	if got, err := dag.Settings[modelSettings](t.Context()); err != nil || got != (modelSettings{}) {
		t.Errorf("outside a run: %+v, %v", got, err)
	}
}
