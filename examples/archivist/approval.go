package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// A Decision is what a person makes of an answer before it goes out.
type Decision string

const (
	Approve Decision = "approve"
	Edit    Decision = "edit"
	Reject  Decision = "reject"
)

// A Verdict is a person's answer to whether an answer may go out.
type Verdict struct {
	Decision Decision `json:"decision"`
	Text     string   `json:"text,omitempty"` // of an Edit: what goes out instead
}

// approval begins the keys of questions that a Verdict answers.
const approval = "approval"

// approvedBy asks a person whether an answer may go out, if one has to be asked. A verdict that
// means nothing is asked for again. One that a person has given counts, whatever the settings say
// by then.
func approvedBy(ctx context.Context, q *Inquiry, answer string) (string, error) {
	settings, err := settingsOf(ctx)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		key := fmt.Sprintf("%s-%d", approval, n)
		if _, given := dag.Reply(ctx, key); !given && !settings.Approve {
			return answer, nil
		}
		v, err := dag.Ask[Verdict](ctx, key, "May this answer go out?\n\n"+answer)
		if err != nil {
			return "", err
		}
		text := strings.TrimSpace(v.Text)
		switch {
		case v.Decision == Approve:
			q.Verdict.Set(v)
			return answer, nil
		case v.Decision == Edit && text != "":
			q.Verdict.Set(v)
			return clean(text) + "\n\n" + paragraphs(edited), nil
		case v.Decision == Reject:
			q.Verdict.Set(v)
			return paragraphs(rejected), nil
		}
	}
}

const (
	edited   = "A person put this answer in place of mine before it went out."
	rejected = "I had an answer, but a person read it and did not let it go out. " +
		"Please ask in other words."
)

// cited are the books of a draft that the answer which goes out names.
func cited(q *Inquiry, d Draft) []Citation {
	v := q.Verdict.Get()
	var all []Citation
	for _, said := range d.Quotes {
		if v.Decision != Reject && (v.Decision != Edit || strings.Contains(v.Text, said.Title)) {
			all = append(all, said.Citation)
		}
	}
	return all
}

// parseVerdict reads a verdict as a person types it.
func parseVerdict(text string) (Verdict, error) {
	word, rest, edit := strings.Cut(strings.TrimSpace(text), ":")
	switch decision := Decision(strings.ToLower(strings.TrimSpace(word))); {
	case edit && decision == Edit && strings.TrimSpace(rest) != "":
		return Verdict{Edit, strings.TrimSpace(rest)}, nil
	case !edit && (decision == Approve || decision == Reject):
		return Verdict{Decision: decision}, nil
	}
	return Verdict{}, errors.New("answer approve, reject, or edit: and the text that goes out instead")
}
