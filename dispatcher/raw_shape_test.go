package dispatcher_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// Scenarios 3.37: a value that looks like something of pawl's own, an entry, an envelope, an
// interrupt, a delta, is plain data: it comes back from the state, from an answer and from a note
// as it was given, live and for another process.
func TestValuesShapedLikeOursArePlain(t *testing.T) {
	type shaped struct {
		Raw      state.Value[json.RawMessage]
		All      state.List[json.RawMessage]
		ByKey    state.Map[string, json.RawMessage]
		Answered state.Value[json.RawMessage]
	}
	values := []string{
		`{"seq":1,"kind":"done","path":"only","attempt":1,"delta":{"Raw":{"set":1}},"at":"2026-01-02T03:04:05Z"}`,
		`{"v":2,"codec":"json","len":3,"seq":7,"prev":"00","sum":"00","entries":[{"kind":"completed"}]}`,
		`{"id":"x","path":"only","kind":"asked","key":"k","question":"?","want":{"go":"bool"}}`,
		`{"set":1}`, `{"append":[1]}`, `{"Raw":null}`, `{"interrupt":{"kind":"before"}}`, `"pawl."`, `null`, `[]`,
	}
	var want []any
	for _, v := range values {
		want = append(want, plain(t, json.RawMessage(v)))
	}
	b := dag.New[shaped]("shaped")
	dag.Step(b, "only", func(ctx context.Context, s *shaped) error {
		answer, err := dag.Ask[json.RawMessage](ctx, "k", json.RawMessage(values[2]))
		if err != nil {
			return err
		}
		s.Answered.Set(answer)
		s.Raw.Set(json.RawMessage(values[1]))
		for _, v := range values {
			s.All.Append(json.RawMessage(v))
			s.ByKey.Put(v, json.RawMessage(v))
		}
		return dag.Note(ctx, "shape.inside", json.RawMessage(values[0]))
	})
	g := frozen(t, b)
	for i, v := range values[:4] {
		eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
			ctx := t.Context()
			d := process(t, g, store, o)
			res, err := d.Run(ctx, run, func(s *shaped) { s.Raw.Set(json.RawMessage(v)) })
			rests(t, res, err, checkpoint.StatusInterrupted, "only")
			if got := plain(t, res.State.Raw.Get()); !reflect.DeepEqual(got, want[i]) {
				t.Errorf("the input reads as %v, want %s", got, v)
			}
			if q := res.Interrupts[0].Question; !reflect.DeepEqual(plain(t, q), want[2]) {
				t.Errorf("the question is %s, want %s", q, values[2])
			}
			if err := d.Note(ctx, run, "shape.outside", json.RawMessage(v)); err != nil {
				t.Fatal(err)
			}
			if err := d.Answer(ctx, run, res.Interrupts[0].ID, json.RawMessage(v)); err != nil {
				t.Fatal(err)
			}
			live, err := process(t, g, store, o).Resume(ctx, run)
			completes(t, live, err)
			read, err := process(t, g, store, o).State(ctx, run)
			completes(t, read, err)
			for _, s := range []*shaped{live.State, read.State} {
				if got := plain(t, s.Answered.Get()); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("the answer reads as %v, want %s", got, v)
				}
				for j, w := range want {
					if got := plain(t, s.All.At(j)); !reflect.DeepEqual(got, w) {
						t.Errorf("element %d reads as %v, want %s", j, got, values[j])
					}
					if got, ok := s.ByKey.Get(values[j]); !ok || !reflect.DeepEqual(plain(t, got), w) {
						t.Errorf("under %q is %s, %v", values[j], got, ok)
					}
				}
			}
			notes := map[string]any{}
			for _, e := range readLog(t, store) {
				var n checkpoint.Note
				if e.Kind == checkpoint.Noted && json.Unmarshal(e.Data, &n) == nil {
					notes[n.Name] = plain(t, n.Value)
				}
			}
			if w := map[string]any{"shape.outside": want[i], "shape.inside": want[0]}; !reflect.DeepEqual(notes, w) {
				t.Errorf("the notes are %v, want %v", notes, w)
			}
		})
	}
}

func plain(t testing.TB, raw json.RawMessage) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}
