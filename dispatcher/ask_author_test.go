package dispatcher_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// Who answers is kept in the entry, with how and when, and told by its event.
func TestAskAuthorIsKept(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, asking(t, &w, closedChan()), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	id := res.Interrupts[0].ID
	if err := d.Answer(t.Context(), run, id, "this", dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
	all := askAnswers(t, &store, run)
	a := all[id]
	if len(all) != 1 || string(a.Value) != `"this"` || a.How != checkpoint.AnswerGiven || a.By != "Ada" || a.At.IsZero() {
		t.Errorf("the log has the answers %+v", all)
	}
	told := false
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == dispatcher.InterruptAnswered {
			told = e.By == "Ada" && string(e.Value) == `"this"` && e.Outcome == "answered"
		}
	}
	if !told {
		t.Error("the event does not tell who answered, what, and how")
	}
	res, err = d.Run(t.Context(), run, nil)
	completes(t, res, err)
}

// An author without a name, or with one that can't be shown, is refused, and so is the option
// where nothing would keep it, and any other one where nothing runs. Nothing changes.
func TestAskAuthorRefused(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, asking(t, &w, closedChan()), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	id := res.Interrupts[0].ID
	unchanged(t, &store, run, func() {
		for name, options := range map[string][]dispatcher.RunOption{
			"no name":     {dispatcher.Author("")},
			"a long name": {dispatcher.Author(strings.Repeat("a", 1025))},
			"a control":   {dispatcher.Author("a\nb")},
			"no UTF-8":    {dispatcher.Author("\xff")},
			"twice":       {dispatcher.Author("a"), dispatcher.Author("a")},
			"Correlation": {dispatcher.Correlation("c")},
			"From":        {dispatcher.From(res.Cursor)},
			"no message":  {dispatcher.Message("")},
		} {
			var o *dispatcher.OptionError
			if err := d.Answer(t.Context(), run, id, "this", options...); !errors.As(err, &o) {
				t.Errorf("%s: Answer returned %v, want an OptionError", name, err)
			}
		}
		var o *dispatcher.OptionError
		if _, err := d.Run(t.Context(), run, nil, dispatcher.Author("Ada")); !errors.As(err, &o) || o.Option != "Author" {
			t.Errorf("Run returned %v, want an OptionError", err)
		}
		if err := d.Enqueue(t.Context(), run, nil, dispatcher.Author("Ada")); !errors.As(err, &o) {
			t.Errorf("Enqueue returned %v, want an OptionError", err)
		}
	})
	if err := d.Answer(t.Context(), run, id, "this", dispatcher.RunOption{}, dispatcher.Author("Ada")); err != nil {
		t.Fatal(err)
	}
}

func closedChan() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// askAnswers returns the answers in the log of a run by the id of the interrupt, each of which
// has been answered once.
func askAnswers(t testing.TB, store checkpoint.Store, id string) map[string]checkpoint.Answer {
	t.Helper()
	all := map[string]checkpoint.Answer{}
	for e, err := range store.Read(t.Context(), id, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != checkpoint.Answered {
			continue
		}
		if _, twice := all[e.ID]; twice {
			t.Errorf("interrupt %s of run %s is answered twice", e.ID, id)
		}
		var a checkpoint.Answer
		if err := json.Unmarshal(e.Data, &a); err != nil {
			t.Fatal(err)
		}
		all[e.ID] = a
	}
	return all
}
