package dispatcher

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// A RunOption is one more wish of a call. A call that runs something takes [From], [Expire],
// [Settings], [Labels], [Correlation], [Drain], [Manual], [UnlessCancelled], [OrStart] or
// [Answering]. A call that changes a run and runs nothing, or that answers first, takes [Author],
// [Because] and [Message]; Note takes From too.
//
// Each option may be given once, except Answering. A call refuses an option that is wrong with an
// [*OptionError], a [*SecretError] or a [*LimitError], before anything happens. The zero RunOption
// wishes nothing.
type RunOption struct {
	name string
	wish func(*wishes) error
}

// From lets Resume and Continue go on only from this cursor. The error is ErrStaleCursor if the run
// no longer stands there, and checkpoint.ErrCursor if the cursor is another run's or names nothing.
// [Dispatcher.Note] takes From in the same sense; other calls refuse it.
//
// A Tag, a Note and a Trim leave the run where it is but are entries all the same, so a cursor from
// before them is stale; State has the current one. A cursor without Visits is taken at its Seq
// alone. A cursor does not tell a run from one of the same id that was deleted.
func From(c checkpoint.Cursor) RunOption {
	return RunOption{"From", func(w *wishes) error {
		if w.how != modeResume && w.how != modeContinue && w.how != modeNote {
			return &OptionError{"From", "is for Resume, Continue and Note only"}
		}
		w.from = &c
		return nil
	}}
}

// Expire lets Resume and Continue end these questions as if their time were over, whatever the
// clock says: with their default, or with dag.ErrExpired. It is for a program that keeps time
// itself, because the clock was set back or for reasons of its own. A question that has its answer
// keeps it. If one of the questions does not wait, or never expires, the error is ErrNotAwaited and
// nothing has changed.
func Expire(interrupts ...string) RunOption {
	interrupts = slices.Clone(interrupts) // the option may be used later
	return RunOption{"Expire", func(w *wishes) error {
		if w.how != modeResume && w.how != modeContinue {
			return &OptionError{"Expire", "is for Resume and Continue only"}
		}
		w.expire = interrupts
		return nil
	}}
}

// Settings are what the nodes of the run read with dag.Settings: anything that JSON can say, up to
// [Limits].ValueBytes. They are no part of the state. What v holds is taken when the option is
// made; nil means that there are no settings any more.
//
// A call that opens a run gives it its settings. A call that goes on with a run replaces the
// settings as soon as it does so, if they differ, by an entry with the author, who then needs a
// name. A completed run keeps its own.
//
// What looks like a secret is refused with a [*SecretError]. That is a net and no proof.
func Settings(v any, author string) RunOption {
	said, failed := marshal(v) // now: the option may be used later, and v changed by then
	return RunOption{"Settings", func(w *wishes) (err error) {
		if reason := badText(author, maxLabel); reason != "" {
			return &OptionError{"Settings", "have an author whose name " + reason}
		}
		w.author, w.sets = author, true
		w.settings, err = settled(said, failed, w.limits)
		return err
	}}
}

// Labels are keys and values by which a run is found (checkpoint.Filter) and that its events carry:
// at most 64, with keys of 1 to 128 bytes and values of up to 1024, in UTF-8 without control
// characters. They are given when a run is opened. A later call may give only the same ones; it is
// refused with others. No labels at all wish nothing.
func Labels(labels map[string]string) RunOption {
	labels = maps.Clone(labels) // the option may be used later
	return RunOption{"Labels", func(w *wishes) error {
		if len(labels) > maxLabels {
			return &OptionError{"Labels", fmt.Sprintf("are %d, and may be %d", len(labels), maxLabels)}
		}
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			if key == "" {
				return &OptionError{"Labels", "hold an empty key"}
			}
			if reason := badText(key, maxKey); reason != "" {
				return &OptionError{"Labels", fmt.Sprintf("hold the key %.64q, which %s", key, reason)}
			}
			if reason := badText(labels[key], maxLabel); reason != "" {
				return &OptionError{"Labels", fmt.Sprintf("hold a value, of %q, which %s", key, reason)}
			}
			if at, reason := secretIn(map[string]any{key: labels[key]}, "", false); reason != "" {
				return &SecretError{"labels", at, reason}
			}
		}
		w.labels = maps.Clone(labels) // one option may be given to several runs
		return nil
	}}
}

// Correlation is the id that joins what belongs together: the run, its events, and what a program
// writes elsewhere. It has 1 to 256 bytes of UTF-8 without control characters.
//
// It is given when a run is opened, and every call that goes on with the run inherits it; such a
// call has to give the same one or none. If nobody gives one it is a fresh UUIDv7, unless there is
// neither a log nor an observer to tell it to.
func Correlation(id string) RunOption {
	return RunOption{"Correlation", func(w *wishes) error {
		if id == "" {
			return &OptionError{"Correlation", "is empty"}
		}
		if reason := badText(id, maxCorrelation); reason != "" {
			return &OptionError{"Correlation", reason}
		}
		if reason := secretForm(id); reason != "" {
			return &SecretError{"correlation", ".", reason}
		}
		w.correlation = id
		return nil
	}}
}

// Message gives what a call sends a name, so that a caller who doesn't know whether the call
// succeeded can repeat it. Of several calls with one name the run gets one, over all processes and
// however late. The name has 1 to 200 bytes of UTF-8 without control characters. Message is for:
//
//   - Enqueue. While an input waits, another content under its name is an [*OptionError]. Once it
//     was drained the name stays used, also behind a [Dispatcher.Rewind] to before it: the content
//     is no longer looked at, and the call returns nil.
//     The input that opens a run (Create, Run, Start, or a Turn with [OrStart]) has none: a caller
//     who may send that again keeps its name in the state, and looks for it there, by
//     [Dispatcher.At] at "0", before he enqueues it.
//   - Note, whose notes are told apart by it in the same way.
//   - Answer, Answers and Skip. A repeated one changes nothing and returns nil, whatever the run
//     waits for by then. Beside [Answering] the call then goes on without it.
//
// A [Resolution] with a Message is refused, with ErrAnswerType: each doubt is resolved once, and
// saying it again, even in the same words, is ErrNotAwaited, or ErrNotInDoubt from
// [Dispatcher.Resolve].
func Message(id string) RunOption {
	return RunOption{"Message", func(w *wishes) error {
		if id == "" {
			return &OptionError{"Message", "is empty"}
		}
		if reason := badText(id, maxMessage); reason != "" {
			return &OptionError{"Message", reason}
		}
		w.message = id
		return nil
	}}
}

// OrStart has a Turn begin the run if there is none, as Start would, with its input as that of the
// first turn. So one line takes whatever somebody says in a conversation, the first thing and the
// hundredth. It is for Turn and StreamTurn alone.
func OrStart() RunOption {
	return RunOption{"OrStart", func(w *wishes) error {
		if w.how != modeTurn {
			return &OptionError{"OrStart", "is for Turn and StreamTurn only: Run begins a run that is not there"}
		}
		w.orStart = true
		return nil
	}}
}

// What labels and a correlation id may have, in bytes; and how many labels there may be.
const (
	maxLabels      = 64
	maxKey         = 128
	maxLabel       = 1024
	maxCorrelation = 256
	maxMessage     = 200
)

// badText says what is wrong with a text that people and tools are to read.
func badText(text string, most int) string {
	switch {
	case len(text) > most:
		return fmt.Sprintf("has %d bytes, and may have %d", len(text), most)
	case !utf8.ValidString(text):
		return "is not UTF-8"
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return "holds a control character"
		}
	}
	return ""
}

// wishes are what the options of a call say together.
type wishes struct {
	how    mode
	limits Limits

	from        *checkpoint.Cursor
	expire      []string // questions
	sets        bool     // Settings were given
	settings    json.RawMessage
	author      string
	labels      map[string]string
	correlation string
	message     string
	by          string // Author
	because     string
	manual      bool
	// unlessCancelled: a cancelled run is left alone
	unlessCancelled bool
	ears            *listener // of the Stream that the call belongs to
	drain           <-chan struct{}
	orStart         bool
	answers         map[string]any // by interrupt; nil: none
	giving          *giving        // them
	unsaid          error          // why what they are can't be said; of a run that is there
	apart           bool           // they can't share the append of the resume, as the call has found
	since           uint64         // where the run stood then
	knew            []string       // the cancels that waited when the call began
	graceEnd        time.Time      // what is left of its grace period then; zero if that has not begun
}

// nothing is what most calls wish, by their modes. It is never written to.
var nothing = func() (all [modes]wishes) {
	for how := range all {
		all[how].how = mode(how)
	}
	return all
}()

// wish reads the options of a call.
func (c *core) wish(how mode, options []RunOption) (*wishes, error) {
	if len(options) == 0 {
		return &nothing[how], nil
	}
	w := &wishes{how: how, limits: c.opts.Limits}
	var given []string
	about := answers(options) // what is said of answers goes beside them
	if about && c.store == nil {
		return nil, ErrNoStore
	}
	for _, o := range options {
		if o.wish == nil {
			continue
		}
		if o.name != answering && slices.Contains(given, o.name) {
			return nil, &OptionError{o.name, "is given twice"}
		}
		given = append(given, o.name)
		switch {
		case about && (o.name == "Author" || o.name == "Because" || o.name == "Message"):
		case how == modeEnqueue && o.name != "Message":
			return nil, &OptionError{o.name, "is not for Enqueue, which takes Message alone: give it to the call that runs"}
		case how == modeNote:
			if !slices.Contains([]string{"Author", "Message", "From"}, o.name) {
				return nil, &OptionError{o.name, "is not for Note, which takes Author, Message and From"}
			}
		case how == modeAnswer:
			if !slices.Contains([]string{"Author", "Because", "Message"}, o.name) {
				return nil, &OptionError{o.name, "is for calls that run something: this one takes Author, Because and Message"}
			}
		case how == modeAct && o.name != "Author" && o.name != "Because":
			return nil, &OptionError{o.name, "is for calls that run something: this one takes Author alone"}
		case how != modeAct && o.name == "Because":
			return nil, &OptionError{o.name, becauseIsFor}
		case how != modeAct && o.name == "Author":
			return nil, &OptionError{o.name, "is for calls that change a run and run nothing, and beside Answering"}
		case how != modeEnqueue && o.name == "Message":
			return nil, &OptionError{o.name, "is for Enqueue, Note and answers alone: it names what is given"}
		}
		if err := o.wish(w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// settled returns settings in the one form in which they are kept and compared: members
// sorted, nothing that JSON does not need, nil for null. err is that of encoding them.
func settled(raw json.RawMessage, err error, limits Limits) (json.RawMessage, error) {
	switch {
	case errors.Is(err, state.ErrUTF8):
		return nil, &OptionError{"Settings", "hold text that is not UTF-8"}
	case err != nil:
		return nil, &OptionError{"Settings", "can't be said in JSON: " + plain(err)}
	}
	if err := limits.allow(raw, "the settings"); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, &OptionError{"Settings", "are not JSON"}
	}
	if at, reason := secretIn(value, "", false); reason != "" {
		at = cmp.Or(at, ".")
		return nil, &SecretError{"settings", at, reason}
	}
	if value == nil {
		return nil, nil
	}
	return encode(value), nil
}

// opening is what the log says first of a run that is opened with these wishes. It is nil
// if there is neither a log nor anything to say to anybody.
func (w *wishes) opening(c *core) *checkpoint.Opening {
	unheard := c.store == nil && c.opts.Observe == nil && w.ears == nil
	if unheard && w.labels == nil && w.correlation == "" && w.settings == nil {
		return nil
	}
	o := &checkpoint.Opening{Graph: c.plan.Name, Digest: c.plan.Digest, Labels: w.labels, Correlation: w.correlation}
	if o.Correlation == "" {
		o.Correlation = NewRunID()
	}
	if w.settings != nil {
		o.Settings = &checkpoint.Setting{Value: w.settings, Author: w.author}
	}
	return o
}

// fits reports why the wishes can't be those of a call that goes on with the run.
func (w *wishes) fits(t *told) error {
	switch {
	case len(w.labels) > 0 && !maps.Equal(w.labels, t.labels):
		return &OptionError{"Labels", "are not those that the run was opened with: leave them out, or begin another run"}
	case w.correlation != "" && w.correlation != t.correlation:
		return &OptionError{"Correlation", fmt.Sprintf("%q is not that of the run, %q", w.correlation, t.correlation)}
	case w.changes(t) && w.author == "":
		return &OptionError{"Settings", "are to be changed and have no author: say who changes them, or leave them out"}
	}
	return nil
}

// changes reports whether the run is to have other settings than it has.
func (w *wishes) changes(t *told) bool { return w.sets && !bytes.Equal(w.settings, t.settings) }

// change is the entry that says so.
func (w *wishes) change() *checkpoint.Entry {
	return &checkpoint.Entry{
		Kind: checkpoint.SettingsChanged,
		Data: encode(checkpoint.Setting{Value: w.settings, Author: w.author}),
	}
}
