package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// only is the only interrupt that the call can mean without naming it: of Skip the only question
// that waits, of Answer the only thing that waits for a person. A pause is none: a resume ends it.
func (g *giving) only(q *queue) (string, error) {
	var ids, pauses []string
	answered := false
	for _, p := range q.m.pendings() {
		switch {
		case q.ended(p.id) != nil:
			answered = true
		case p.pauses():
			pauses = append(pauses, p.kind+" "+p.t.path())
		case g.how != checkpoint.AnswerSkipped || p.kind == kindAsked:
			ids = append(ids, p.id)
		}
	}
	switch {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return "", &AnswerError{g.run, "", "say which one, for these wait: " + strings.Join(ids, ", "), ErrAmbiguous}
	}
	reason := "nothing waits for an answer"
	switch {
	case g.how == checkpoint.AnswerSkipped:
		reason = "no question waits"
	case answered:
		reason = "everything that waited has its answer"
	case len(pauses) == 1:
		reason = "what waits is a pause, " + pauses[0] + ": Resume ends it"
	case len(pauses) > 1:
		reason = "what waits are pauses, " + strings.Join(pauses, ", ") + ": Resume ends them"
	}
	return "", &AnswerError{g.run, "", reason, ErrNotAwaited}
}

// pauses reports whether nobody asks anything: a resume ends the interrupt.
func (p *pending) pauses() bool {
	return (p.kind == kindBefore || p.kind == kindAfter) && p.ask.By == ""
}

// asks reports whether a person has to answer the interrupt.
func (p *pending) asks() bool { return !p.pauses() }

// unawaited says why nobody waits for the answer to an interrupt.
func (c *core) unawaited(ctx context.Context, id, interrupt string) error {
	for e, err := range c.store.Read(ctx, id, 0, 0) {
		if err != nil {
			return c.refuse(id, err)
		}
		switch {
		case e.Kind == checkpoint.Answered && e.ID == interrupt:
			var a checkpoint.Answer
			if err := json.Unmarshal(e.Data, &a); err != nil {
				return c.refuse(id, &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()})
			}
			return ended(id, interrupt, a)
		case e.Kind == checkpoint.EffectEnded:
			var end checkpoint.EndedEffect
			if err := json.Unmarshal(e.Data, &end); err != nil {
				return c.refuse(id, &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()})
			}
			if end.Interrupt == interrupt {
				return &AnswerError{id, interrupt, "somebody has said what came of the effect" + whoAndWhen(end.By, e.At), ErrNotAwaited}
			}
		}
	}
	return &AnswerError{id, interrupt, "no such interrupt waits: State tells those that do", ErrNotAwaited}
}

// ended is the error of an answer to an interrupt that has ended so.
func ended(id, interrupt string, a checkpoint.Answer) error {
	switch a.How {
	case checkpoint.AnswerSkipped:
		return &AnswerError{id, interrupt, "it was skipped" + whoAndWhen(a.By, a.At), ErrNotAwaited}
	case checkpoint.AnswerDefault:
		return &AnswerError{id, interrupt, "it has expired, and its default counts: a Rewind to before it has it asked again", dag.ErrExpired}
	case checkpoint.AnswerExpired:
		return &AnswerError{id, interrupt, "it has expired: if the run has failed for that a Resume has it asked again, else a Rewind to before it", dag.ErrExpired}
	}
	return &AnswerError{id, interrupt, "it was answered already" + whoAndWhen(a.By, a.At), ErrNotAwaited}
}

// whoAndWhen tells what is known of the two: " (by ann, 2026-11-21T10:00:00Z)".
func whoAndWhen(by string, at time.Time) string {
	var known []string
	if by != "" {
		known = append(known, "by "+by)
	}
	if !at.IsZero() {
		known = append(known, at.UTC().Format(time.RFC3339))
	}
	if known == nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", strings.Join(known, ", "))
}

// at is when an answer was posted that waits to be drained.
func (q *queue) at(a *postedAnswers) time.Time {
	if k := slices.Index(q.said, a); k >= 0 {
		return q.posts[k].At
	}
	return time.Time{}
}
