package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// Export and Import name the argument that is nil, also behind an interface.
func TestEdgesExportAndImportOfNil(t *testing.T) {
	var nobody *memory.Store
	var store memory.Store
	for _, test := range []struct {
		s        checkpoint.Store
		r        io.Reader
		w        io.Writer
		argument string
	}{
		{nil, strings.NewReader(""), &bytes.Buffer{}, "store"},
		{nobody, strings.NewReader(""), &bytes.Buffer{}, "store"},
		{&store, nil, nil, "er"},
		{&store, (*strings.Reader)(nil), (*bytes.Buffer)(nil), "er"},
	} {
		_, err := checkpoint.Import(t.Context(), test.s, test.r, checkpoint.ImportOptions{})
		for call, err := range map[string]error{"Import": err, "Export": checkpoint.Export(t.Context(), test.s, "r", test.w)} {
			var e *checkpoint.ArgumentError
			if !errors.As(err, &e) || e.Call != call || !strings.HasSuffix(e.Argument, test.argument) || !strings.Contains(err.Error(), "is nil: open") {
				t.Errorf("%s returns %v, want that the %s is nil", call, err, test.argument)
			}
		}
	}
	var e *checkpoint.ArgumentError
	var none context.Context
	if err := checkpoint.Export(none, &store, "r", &bytes.Buffer{}); !errors.As(err, &e) || e.Argument != "context" {
		t.Errorf("Export with a nil context returns %v", err)
	}
}

// A file that is refused says what to do about it.
func TestEdgesImportSaysWhatToDo(t *testing.T) {
	var store memory.Store
	_, err := checkpoint.Import(t.Context(), &store, strings.NewReader("{}\n"), checkpoint.ImportOptions{})
	if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.HasSuffix(err.Error(), ": export the run again") {
		t.Errorf("a file that is no export: %v", err)
	}
	_, err = checkpoint.Import(t.Context(), &store, strings.NewReader(strings.Repeat("x", 100)+"\n"), checkpoint.ImportOptions{LineBytes: 10})
	if !errors.Is(err, checkpoint.ErrTooLarge) || !strings.HasSuffix(err.Error(), "ImportOptions.LineBytes") {
		t.Errorf("a line that is too long: %v", err)
	}
}

// What a store has taken can be exported and imported, however deeply it is nested: in a line it is
// a level deeper, or two.
func TestEdgesExportOfDeepData(t *testing.T) {
	for _, depth := range []int{1_000, 9_997, 9_998, 9_999, 10_000} {
		deep := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		var here, there memory.Store
		l, err := here.Acquire(t.Context(), "r", "me")
		if err != nil {
			t.Fatal(err)
		}
		opened := checkpoint.Entry{Kind: checkpoint.Opened, Data: []byte(`{}`)}
		if _, err = here.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{opened, {Kind: checkpoint.Noted, Data: deep}}); err != nil {
			t.Fatal(err)
		}
		if err = here.Post(t.Context(), "r", checkpoint.Post{ID: "p", Kind: "note", Data: deep}); err != nil {
			t.Fatal(err)
		}
		if err = here.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err = checkpoint.Export(t.Context(), &here, "r", &file); err != nil {
			t.Fatal(err)
		}
		if _, err = checkpoint.Import(t.Context(), &there, &file, checkpoint.ImportOptions{}); err != nil {
			t.Errorf("nested %d deep: %v", depth, err)
		}
	}
}
