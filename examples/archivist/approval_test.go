package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// approving is the option of a run whose answer a person has to approve.
func approving(s Settings) dispatcher.RunOption {
	s.Approve = true
	return dispatcher.Settings(s, "a test")
}

// What a person makes of an answer is what goes out, and what is cited is what it names.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		verdict Verdict
		says    string
		cites   int
	}{
		{Verdict{Decision: Approve}, "The best match for “labyrinth” among 660 books is “Labyrinths”", listed},
		{Verdict{Edit, "Read Ariadne.\x1b[2J\nIt is good."}, "Read Ariadne. [2J It is good. " + edited, 1},
		{Verdict{Decision: Reject}, rejected, 0},
	} {
		d := dispatch(t, defaultLibrary(t), new(memory.Store), dispatcher.Options{})
		res, err := d.Run(t.Context(), "r", func(q *Inquiry) { q.Query.Set(labyrinth) }, approving(Settings{}))
		for _, v := range []Verdict{{Decision: "perhaps"}, {Edit, "  "}, c.verdict} { // those that mean nothing are asked again
			if !errors.Is(err, dispatcher.ErrInterrupted) || len(res.Interrupts) != 1 || res.Interrupts[0].Path != "respond" {
				t.Fatalf("%v, interrupts %v, want one of respond", err, res.Interrupts)
			}
			if q := text(res.Interrupts[0].Question); !strings.Contains(q, "May this answer go out?\n\nThe best match") {
				t.Errorf("asked %q", q)
			}
			if res.State.Answer.Get() != "" || res.State.Citations.Len() != 0 {
				t.Errorf("answered before it was approved: %q", res.State.Answer.Get())
			}
			if err := d.Answer(t.Context(), "r", res.Interrupts[0].ID, v); err != nil {
				t.Fatal(err)
			}
			res, err = d.Resume(t.Context(), "r")
		}
		if err != nil || !strings.HasPrefix(flat(res.State), c.says) || res.State.Citations.Len() != c.cites {
			t.Errorf("%s: %v, cited %v, answered\n%s", c.verdict.Decision, err, res.State.Citations.Slice(), res.State.Answer.Get())
		}
	}
}

// An answer that is no verdict is refused, and the question stays.
func TestAnAnswerThatIsNoVerdict(t *testing.T) {
	d := dispatch(t, defaultLibrary(t), new(memory.Store), dispatcher.Options{})
	res, _ := d.Run(t.Context(), "r", func(q *Inquiry) { q.Query.Set(labyrinth) }, approving(Settings{}))
	var refused *dispatcher.AnswerError
	if err := d.Answer(t.Context(), "r", res.Interrupts[0].ID, "approve"); !errors.As(err, &refused) {
		t.Errorf("a text is taken for a verdict: %v", err)
	}
}

func TestRefusalsAreApprovedToo(t *testing.T) {
	for _, question := range []string{"hello", "a book about zzyzx", "What did I ask before?"} {
		d := dispatch(t, defaultLibrary(t), new(memory.Store), dispatcher.Options{})
		_, err := d.Run(t.Context(), "r", func(q *Inquiry) { q.Query.Set(question) }, approving(Settings{}))
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Errorf("%q: %v, want it to wait for a person", question, err)
		}
	}
}

// On the command line: status 3, and then -answer.
func TestApprove(t *testing.T) {
	for _, c := range []struct{ answer, says string }{
		{"approve", "The best match for “labyrinth”"},
		{" Reject ", "a person read it and did not let it go out"},
		{"edit: Go and read “Ariadne”.", "Go and read “Ariadne”.\n\n" + edited},
	} {
		store := t.TempDir()
		o := archivist(t, "-store", store, "-approve", "-run", "r", labyrinth).exits(t, 3)
		if o.stdout != "" || !strings.Contains(o.stderr, "respond asks: May this answer go out?") ||
			!strings.Contains(o.stderr, "-resume -answer 'approve | reject | edit: TEXT'") {
			t.Errorf("printed %q and told\n%s", o.stdout, o.stderr)
		}
		archivist(t, "-store", store, "-resume", "-answer", "maybe").complains(t, 2, "approve, reject")
		archivist(t, "-store", store, "-resume", "-answer", "edit:").complains(t, 2, "approve, reject")
		waiting := ask(t, store, "-run", "r").exits(t, 3).report(t) // without the flag: it holds
		if len(waiting.Interrupts) != 1 || waiting.Answer != "" || len(waiting.Citations) != 0 {
			t.Errorf("interrupts %v, answer %q", waiting.Interrupts, waiting.Answer)
		}
		r := archivist(t, "-store", store, "-json", "-resume", "-answer", c.answer).exits(t, 0).report(t)
		if !strings.Contains(strings.ReplaceAll(r.Answer, "\n", " "), strings.ReplaceAll(c.says, "\n", " ")) {
			t.Errorf("%s: answered\n%s", c.answer, r.Answer)
		}
		if got := paths(r.Nodes); !slices.Equal(got, []string{"respond"}) {
			t.Errorf("%s: executed %q", c.answer, got)
		}
	}
}

// A verdict counts also if nobody would be asked for it any more.
func TestAVerdictOutlivesItsSetting(t *testing.T) {
	store := t.TempDir()
	for run, c := range map[string]struct{ answer, says string }{
		"r": {"reject", "a person read it and did not let it go out"},
		"e": {"edit: Go and read “Ariadne”.", "Go and read “Ariadne”.\n\n" + edited},
	} {
		archivist(t, "-store", store, "-approve", "-run", run, labyrinth).exits(t, 3)
		archivist(t, "-store", store, "-run", run, "-resume", "-approve=false").exits(t, 3)
		o := archivist(t, "-store", store, "-run", run, "-resume", "-answer", c.answer).exits(t, 0)
		if !strings.Contains(strings.ReplaceAll(o.stdout, "\n", " "), strings.ReplaceAll(c.says, "\n", " ")) {
			t.Errorf("%s: answered\n%s", c.answer, o.stdout)
		}
	}
}

// What is set for a run holds for it, until a later command sets something else.
func TestSettingsHold(t *testing.T) {
	store := t.TempDir()
	ask(t, store, "-run", "r", "-books", "2", "-approve", "-cancel-at", "search/rank").exits(t, 3)
	r := archivist(t, "-store", store, "-json", "-resume").exits(t, 3).report(t)
	if r.Status != "interrupted" {
		t.Errorf("without -approve the run is %s", r.Status)
	}
	r = archivist(t, "-store", store, "-json", "-resume", "-approve=false", "-answer", "approve").exits(t, 0).report(t)
	if len(r.Citations) != 2 {
		t.Errorf("cited %v, want 2 as the run was begun", r.Citations)
	}
	ask(t, store, "-run", "s", "-books", "2", "-approve", "-cancel-at", "search/rank").exits(t, 3)
	r = archivist(t, "-store", store, "-json", "-resume", "-books", "3", "-approve=false").exits(t, 0).report(t)
	if len(r.Citations) != 3 {
		t.Errorf("cited %v, want 3 as it was resumed", r.Citations)
	}
	archivist(t, "-store", store, "-model", "sk-0123456789abcdefghijklmnopqrstuvwxyzABCDEF", labyrinth).complains(t, 1, "secret")
}

func TestParseVerdict(t *testing.T) {
	for said, want := range map[string]Verdict{
		"approve": {Decision: Approve}, " REJECT\n": {Decision: Reject}, "edit: a: b ": {Edit, "a: b"}, "Edit:x": {Edit, "x"},
	} {
		if v, err := parseVerdict(said); v != want || err != nil {
			t.Errorf("parseVerdict(%q) = %v, %v, want %v", said, v, err, want)
		}
	}
	for _, said := range []string{"", "edit", "edit: ", "approve: yes", "approved", "no"} {
		if v, err := parseVerdict(said); err == nil {
			t.Errorf("parseVerdict(%q) = %v", said, v)
		}
	}
}
