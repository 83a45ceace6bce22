package dag

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode"
)

// maxNote is how many bytes the name of a note may have.
const maxNote = 128

// Note adds a fact to the log of the run that is no part of its state, for people and for packages
// that read logs. The name says whose note it is, and of what: "billing.quote". The value may be
// anything that JSON can say.
//
// If the visit finishes well its notes are durable with its end, in one append, in the order in
// which they were made. Notes of an attempt that fails or waits are dropped with what it wrote.
// Inside an [Effect] Note is an error. Outside a run it only checks its arguments.
//
// Names that begin with "pawl." or "record." are for pawl itself: see [Decide], [Learn], [Block]
// and [Require].
func Note(ctx context.Context, name string, value any) error {
	if reason := NoteNameProblem(name); reason != "" {
		return &ArgumentError{"Note", fmt.Sprintf("name %.40q", name), reason}
	}
	return note(ctx, "Note", name, value)
}

func note(ctx context.Context, call, name string, value any) error {
	v, err := within(ctx, call)
	if err != nil {
		return err
	}
	raw, err := inJSON(value)
	if err != nil {
		return &ArgumentError{call, fmt.Sprintf("value of note %q", name), "can't be said in JSON: " + err.Error()}
	}
	if on, ok := v.(Noter); ok {
		return on.Note(name, raw)
	}
	return nil
}

// NoteNameProblem says what is wrong with a text as the name of a note, "" if nothing is.
func NoteNameProblem(name string) string {
	switch reason := noText(name); {
	case reason != "":
		return reason
	case len(name) > maxNote:
		return fmt.Sprintf("has %d bytes, and may have %d", len(name), maxNote)
	case reserved(name):
		return `begins with "pawl." or "record.", as those of pawl itself do: give it another`
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return "holds a control character"
		}
	}
	return ""
}

// A Noter is a [Visit] that keeps notes.
type Noter interface {
	// Note keeps a note whose name and value were checked. It keeps value, and is safe for
	// concurrent use. ErrVisitOver once the attempt has ended.
	Note(name string, value json.RawMessage) error
}
