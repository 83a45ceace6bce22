package dispatcher

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// told is what a run was told from outside that is neither its graph nor its state.
type told struct {
	labels      map[string]string // never changes
	correlation string            // never changes
	settings    json.RawMessage   // what holds now; nil if there are none
}

// tell takes what a run was opened with.
func (m *machine) tell(x *fact) error {
	o := x.opening
	if o == nil {
		if len(x.Data) == 0 {
			return nil
		}
		o = &checkpoint.Opening{}
		if err := json.Unmarshal(x.Data, o); err != nil {
			return err
		}
	}
	m.told = told{labels: o.Labels, correlation: o.Correlation}
	if o.Settings != nil {
		m.told.settings = o.Settings.Value
	}
	return nil
}

// set makes other settings hold from now on. Visits that have begun keep theirs.
func (m *machine) set(x *fact) error {
	var s checkpoint.Setting
	if err := json.Unmarshal(x.Data, &s); err != nil {
		return err
	}
	m.told.settings = s.Value
	return nil
}

// report tells it to a caller, who may keep and change what it gets.
func (t *told) report(r *report) {
	r.Labels, r.Correlation, r.Settings = maps.Clone(t.labels), t.correlation, slices.Clone(t.settings)
}

// about completes what is told about the run in events, before there are any of this call.
func (m *machine) about(a *about) {
	a.turn, a.labels, a.correlation = m.turn, m.told.labels, m.told.correlation
}
