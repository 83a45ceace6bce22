package dag_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
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

// A hexed is read in place: encoding/json gives an unmarshaller the memory that it reads itself.
type hexed [2]byte

func (d hexed) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

func (d *hexed) UnmarshalText(b []byte) error {
	n, err := hex.Decode(b, b)
	copy(d[:], b[:n])
	return err
}

// A keeper gives out what it keeps.
type keeper struct {
	scripted
	kept json.RawMessage
}

func (k *keeper) Settings() json.RawMessage { return k.kept }

func (k *keeper) Ask(call dag.AskCall) (json.RawMessage, error) {
	if call.Default != nil {
		return call.Default, nil
	}
	return k.kept, call.Fits(k.kept)
}

func (k *keeper) Effect(context.Context, dag.EffectCall) (json.RawMessage, error) { return k.kept, nil }

// What a visit keeps stays as it is, whatever an unmarshaller does to what it is given.
func TestUnmarshallersThatReadInPlace(t *testing.T) {
	const want = `["0a0b"]`
	k := &keeper{kept: json.RawMessage(want)}
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, k)
	for name, read := range map[string]func() ([]hexed, error){
		"Settings": func() ([]hexed, error) { return dag.Settings[[]hexed](ctx) },
		"Ask":      func() ([]hexed, error) { return dag.Ask[[]hexed](ctx, "k", "?") },
		"OrDefault": func() ([]hexed, error) {
			return dag.Ask[[]hexed](ctx, "k", "?", dag.Within(1), dag.OrDefault(k.kept))
		},
		"Effect": func() ([]hexed, error) {
			return dag.Effect(ctx, "k", 1, func(context.Context, int) ([]hexed, error) { return nil, nil })
		},
	} {
		if d, err := read(); err != nil || len(d) != 1 || d[0] != (hexed{10, 11}) || string(k.kept) != want {
			t.Errorf("%s: %x, %v, and what is kept is %s", name, d, err, k.kept)
		}
		k.kept = json.RawMessage(want)
	}
}
