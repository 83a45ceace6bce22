package dag_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// A hidden is a text that JSON leaves out, beside one that it has.
type hidden struct {
	Text    string
	private *hidden
	Left    string `json:"-"`
}

// Text that is not UTF-8 is refused wherever a node says something, as it is in a cell and in the
// input of an effect: encoding/json would have put another text in its place. What looks like that
// text is taken.
func TestTextThatIsNotUTF8(t *testing.T) {
	ctx := context.WithValue(t.Context(), dag.VisitKey{}, &scripted{answers: map[string]string{"k": `"a"`}})
	calls := map[string]func(value any) error{
		"Emit": func(value any) error { return dag.Emit(ctx, "token", value) },
		"Note": func(value any) error { return dag.Note(ctx, "note", value) },
		"Ask":  func(value any) error { _, err := dag.Ask[string](ctx, "k", value); return err },
		"OrDefault": func(value any) error {
			_, err := dag.Ask[json.RawMessage](ctx, "k", 1, dag.Within(time.Hour), dag.OrDefault(value))
			return err
		},
	}
	bad := "a\xffb"
	loop := &hidden{Left: bad}
	loop.private = loop
	for name, call := range calls {
		for _, value := range []any{
			bad, &bad, []string{"\ufffd", bad}, map[string]int{bad: 1}, map[string]any{"a": []any{1, bad}},
			hidden{Text: bad}, struct{ Any any }{&hidden{Text: bad}}, json.RawMessage("\"" + bad + "\""),
		} {
			err := call(value)
			var argument *dag.ArgumentError
			if !errors.Is(err, state.ErrUTF8) && !errors.As(err, &argument) {
				t.Errorf("%s takes %q: %v", name, value, err)
			}
		}
		loop.Text = `\ufffd`
		for _, value := range []any{
			"a\ufffdb", `a\ufffdb`, json.RawMessage(`"\ufffd"`), map[string]any{"\ufffd": json.RawMessage(`"\ufffd"`)}, loop,
		} {
			if err := call(value); err != nil {
				t.Errorf("%s refuses %q: %v", name, value, err)
			}
		}
	}
}
