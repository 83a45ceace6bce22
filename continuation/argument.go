package continuation

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// How many bytes texts may have that the log keeps.
const (
	maxID     = 256  // ids of triggers, and keys
	maxActor  = 1024 // as dispatcher.Author
	maxReason = 4096 // why somebody decides, or stops
)

// A text is what a caller gives to be kept.
type text struct {
	what string
	is   string
	most int
}

// unsound says what is wrong with a text for people, "" if nothing is.
func (t *text) unsound() string {
	switch {
	case len(t.is) > t.most:
		return fmt.Sprintf("%s of %d bytes, and it may have %d", t.what, len(t.is), t.most)
	case !utf8.ValidString(t.is):
		return t.what + " that is not UTF-8"
	}
	return ""
}

// problem is unsound of a text that is a name.
func (t *text) problem() string {
	if strings.ContainsFunc(t.is, unicode.IsControl) {
		return t.what + " that holds a control character"
	}
	return t.unsound()
}

// tooLarge reports whether a value is larger than a limit of the dispatcher, or of its store.
func tooLarge(err error) bool {
	var limit *dispatcher.LimitError
	return errors.As(err, &limit) || errors.Is(err, checkpoint.ErrTooLarge)
}

// plain is the text of an error without the package that it is from; of a refused answer why it
// was.
func plain(err error) string {
	text := err.Error()
	if refused, ok := err.(*dispatcher.AnswerError); ok {
		text = refused.Reason
	}
	for _, prefix := range []string{"state: ", "dispatcher: ", "checkpoint: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
