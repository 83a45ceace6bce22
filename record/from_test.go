package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// A run that waits for a person tells what it has decided, learned and done, what it waits for,
// and behind which point it goes on. Answered and completed, it tells that.
func TestRecordOfARunThatAsks(t *testing.T) {
	d := inquire(t, newStore(), []string{"search", "compose"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Effect(ctx, "fetch", map[string]string{"url": "x"}, func(context.Context, map[string]string) (int, error) {
			return 12345, nil
		}, dag.Operation("web.get"), dag.Touches("cache"), dag.Replayable)
		return errors.Join(err,
			dag.Decide(ctx, dag.Decision{ID: "source", Description: "the web", OverridableBy: []dag.Authority{dag.Human}}),
			dag.Decide(ctx, dag.Decision{ID: "source", Description: "the library", Rationale: "it is quiet"}),
			dag.Learn(ctx, dag.Learning{ID: "hours", Content: "it closes at six", Confidence: 0.5}),
			dag.Block(ctx, dag.Blocker{ID: "card", Description: "no card", Severity: "high", Needs: "a card"}),
			dag.Require(ctx, dag.Invariant{ID: "quiet", Description: "nobody talks"}))
	}, func(ctx context.Context, q *Inquiry) error {
		word, err := dag.Ask[string](ctx, "tone", map[string]any{"question": "which tone?", "options": []string{"dry", "warm"}, "authority": "human"})
		q.Answer.Set(word)
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	r := from(t, d, "r", record.Options{Goal: "answer", Criteria: []string{"answered"}, Author: bot, Tokens: 7})
	same(t, "task", []any{r.Task.ID, r.Task.Goal, r.Task.Status, r.Task.CompletedAt}, []any{"r", "answer", "blocked", 0})
	same(t, "steps", []any{r.ExecutionSummary.StepsCompleted, r.ExecutionSummary.StepsFailed, r.ExecutionSummary.TokensConsumed}, []any{1, 0, 7})
	same(t, "authors", []any{r.CreatedBy, r.LastModifiedBy}, []any{bot, bot})

	node := record.Author{Type: dag.Agent, ID: "inquiry/search"}
	dec := r.Decisions[0]
	same(t, "decision", []any{dec.Description, dec.Rationale, dec.Status, dec.MadeBy, dec.Variants},
		[]any{"the library", "it is quiet", dag.Accepted, node, []record.Variant{{Author: node, Decision: "the web", Status: dag.Accepted}}})
	same(t, "learning", []any{r.Learnings[0].Content, r.Learnings[0].Confidence, r.Learnings[0].LearnedBy}, []any{"it closes at six", 0.5, node})
	same(t, "blocker", []any{r.Blockers[0].ID, r.Blockers[0].Needs, r.Blockers[0].Resolved}, []any{"card", "a card", false})
	same(t, "invariants", r.Invariants, []record.Invariant{{ID: "quiet", Description: "nobody talks"}})
	e := r.ToolEffects[0]
	same(t, "effect", []any{e.IdempotencyKey, e.ToolName, e.Operation, string(e.Inputs), string(e.Outputs), e.Status, e.IsReplayable, e.SideEffects},
		[]any{"r/search#fetch", "web.get", "fetch", `{"url":"x"}`, `{"value":12345}`, "done", true, []string{"cache"}})

	q, p := r.QuestionsForUser[0], r.ResumePoints[0]
	same(t, "question", []any{q.Question, q.Options, q.Status, q.Priority, q.BlocksResumePoints, q.RequiredAuthority},
		[]any{"which tone?", []string{"dry", "warm"}, "open", "blocking", []string{p.ID}, dag.Human})
	same(t, "point", []any{p.Label, p.NextSteps, p.ApprovalStatus, p.OnTimeout, p.RequiredAuthority, p.SafeToAutoExecute},
		[]any{"compose", []string{"compose"}, "pending", "escalate", dag.Human, false})

	done(t, d.Answer(t.Context(), "r", "", "dry", dispatcher.Author("ann")))
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	r = from(t, d, "r", record.Options{})
	q = r.QuestionsForUser[0]
	same(t, "answered", []any{q.Status, q.Answer, q.AnsweredBy, len(r.ResumePoints), r.Task.Status, r.Task.CompletedAt > 0},
		[]any{"answered", "dry", ann, 0, "completed", true})
}

// The same log gives the same record, to the last byte.
func TestRecordIsAReadingOfTheLog(t *testing.T) {
	d := inquire(t, newStore(), []string{"only"}, func(ctx context.Context, q *Inquiry) error {
		return dag.Learn(ctx, dag.Learning{ID: "l", Content: "c"})
	})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	if a, b := from(t, d, "r", record.Options{}), from(t, d, "r", record.Options{}); a.ContentHash != b.ContentHash {
		t.Errorf("%s\n%s", show(a), show(b))
	}
}

// A run that was rewound tells nothing of what was abandoned, but for the effects, which have
// happened all the same. What is done again has another key, the one that the other side gets.
func TestRecordOfARunThatWasRewound(t *testing.T) {
	var keys []string
	d := inquire(t, newStore(), []string{"first", "second"}, func(ctx context.Context, q *Inquiry) error {
		return dag.Decide(ctx, dag.Decision{ID: "kept", Description: "yes"})
	}, func(ctx context.Context, q *Inquiry) error {
		keys = append(keys, dag.Key(ctx)+"#pay")
		_, err := dag.Effect(ctx, "pay", 5, func(context.Context, int) (bool, error) { return true, nil })
		word, ask := dag.Ask[string](ctx, "word", "which?")
		if ask != nil {
			return ask
		}
		return errors.Join(err, dag.Decide(ctx, dag.Decision{ID: "abandoned " + word, Description: "yes"}))
	})
	run := "r/~%"
	_, err := d.Run(t.Context(), run, nil)
	rests(t, err)
	done(t, d.Answer(t.Context(), run, "", "once"))
	_, err = d.Run(t.Context(), run, nil)
	done(t, err)
	done(t, d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}))

	r := from(t, d, run, record.Options{})
	decision := func(d record.Decision) string { return d.ID }
	same(t, "decisions", ids(r.Decisions, decision), []string{"kept"})
	same(t, "questions", len(r.QuestionsForUser), 0)
	same(t, "steps and status", []any{r.ExecutionSummary.StepsCompleted, r.Task.Status, r.Task.CompletedAt}, []any{1, "not-started", 0})
	same(t, "effects", []any{len(r.ToolEffects), r.ToolEffects[0].Abandoned, r.ToolEffects[0].IdempotencyKey}, []any{1, true, keys[0]})
	p := r.ResumePoints[0]
	same(t, "point", []any{p.NextSteps, p.SafeToAutoExecute, p.RequiredAuthority}, []any{[]string{"second"}, true, record.AnyAuthority})

	_, err = d.Run(t.Context(), run, nil)
	rests(t, err)
	r = from(t, d, run, record.Options{})
	same(t, "effects", []any{len(r.ToolEffects), r.ToolEffects[1].Abandoned, r.ToolEffects[1].IdempotencyKey, r.ToolEffects[1].Status},
		[]any{2, false, keys[len(keys)-1], "done"})
	if keys[0] == keys[len(keys)-1] {
		t.Error("the effect was done again under the same key")
	}
}

// What an edit voids does not count: the visit is run again, and says again what holds.
func TestRecordOfWhatWasVoided(t *testing.T) {
	store := newStore()
	b := dag.New[Inquiry]("inquiry")
	dag.Step(b, "notes", func(ctx context.Context, q *Inquiry) error {
		q.Answer.Set("mine")
		return dag.Decide(ctx, dag.Decision{ID: "d", Description: "mine"})
	})
	dag.Step(b, "asks", func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "word", "which?")
		return err
	})
	graph, err := b.Build()
	done(t, err)
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	done(t, err)
	_, err = d.Run(t.Context(), "r", nil)
	rests(t, err)
	if r := from(t, d, "r", record.Options{}); len(r.Decisions) != 1 || r.ExecutionSummary.StepsCompleted != 1 {
		t.Fatalf("before it was voided: %s", show(r))
	}
	done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set("hers") }, dispatcher.EditOptions{Void: []string{"notes"}}))
	if r := from(t, d, "r", record.Options{}); len(r.Decisions) != 0 || r.ExecutionSummary.StepsCompleted != 0 || len(r.QuestionsForUser) != 1 {
		t.Errorf("what was voided counts: %s", show(r))
	}
}

// A frame that is voided is begun anew, and what was asked in it is asked anew.
func TestRecordOfAFrameThatWasVoided(t *testing.T) {
	d := framed(t, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "word", "which?")
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	first := from(t, d, "r", record.Options{}).QuestionsForUser[0].ID
	done(t, d.Edit(t.Context(), "r", func(q *Inquiry) { q.Answer.Set("hers") }, dispatcher.EditOptions{Void: []string{"sub"}}))
	_, err = d.Run(t.Context(), "r", nil)
	rests(t, err)
	if r := from(t, d, "r", record.Options{}); len(r.QuestionsForUser) != 1 || r.QuestionsForUser[0].ID == first {
		t.Errorf("what was asked before it was voided counts: %s", show(r))
	}
}

// framed makes a dispatcher of a graph with one node inside another graph, and one instead.
func framed(t *testing.T, node func(context.Context, *Inquiry) error) *dispatcher.Dispatcher[Inquiry] {
	t.Helper()
	in := dag.New[Inquiry]("inner")
	dag.Step(in, "node", node)
	inner, err := in.Build()
	done(t, err)
	b := dag.New[Inquiry]("inquiry")
	sub := dag.Embed(b, "sub", inner, func(*Inquiry, *Inquiry) {}, func(*Inquiry, *Inquiry) {})
	dag.Step(b, "instead", func(context.Context, *Inquiry) error { return nil }, sub.Failed())
	graph, err := b.Build()
	done(t, err)
	d, err := dispatcher.New(graph, newStore(), dispatcher.Options{})
	done(t, err)
	return d
}

// A failure counts once, for the visit that failed, and not for what it is inside of.
func TestRecordOfAFailureInAFrame(t *testing.T) {
	d := framed(t, func(context.Context, *Inquiry) error { return errors.New("no") })
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	if r := from(t, d, "r", record.Options{}); r.ExecutionSummary.StepsFailed != 1 {
		t.Errorf("%d steps have failed: %s", r.ExecutionSummary.StepsFailed, show(r))
	}
}

// What nobody knows is told as that: the effect is in doubt, which is a blocker, and only a
// person may go on.
func TestRecordOfAnEffectInDoubt(t *testing.T) {
	d := inquire(t, newStore(), []string{"pay"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (bool, error) {
			return false, errors.New("connection reset")
		})
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	r := from(t, d, "r", record.Options{})
	same(t, "task and effect", []any{r.Task.Status, r.ToolEffects[0].Status, r.ExecutionSummary.StepsFailed}, []any{"failed", "in-doubt", 1})
	blockers := ids(r.Blockers, func(b record.Blocker) string { return b.ID })
	if len(blockers) < 2 || blockers[0] != "doubt:r/pay#charge" || blockers[1] != "failed:pay" {
		t.Errorf("blockers %q", blockers)
	}
	p := r.ResumePoints[0]
	same(t, "point", []any{p.RequiredAuthority, p.SafeToAutoExecute, len(p.Preconditions)}, []any{dag.Human, false, 1})

	done(t, d.Resolve(t.Context(), "r", "pay", "charge", dispatcher.Happened(true)))
	_, err = d.Resume(t.Context(), "r")
	done(t, err)
	r = from(t, d, "r", record.Options{})
	same(t, "then", []any{r.Task.Status, r.ToolEffects[0].Status, len(r.Blockers), r.ExecutionSummary.StepsFailed, len(r.ToolEffects)},
		[]any{"completed", "done", 0, 0, 1})
}

// What a person has said of an effect in doubt is the answer to the question that asked for it,
// whichever way it was said.
func TestRecordOfADoubtThatAsked(t *testing.T) {
	for name, c := range map[string]struct {
		say    dispatcher.Resolution
		answer string
	}{
		"it happened": {dispatcher.Happened(true), `{"happened":true}`},
		"it did not":  {dispatcher.NotHappened("the bank says so"), `{"not_happened":"the bank says so"}`},
	} {
		for _, answers := range []bool{true, false} {
			lost := true
			d := inquire(t, newStore(), []string{"pay"}, func(ctx context.Context, q *Inquiry) error {
				_, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (bool, error) {
					if lost {
						return false, errors.New("connection reset")
					}
					return true, nil
				}, dag.InDoubt(dag.DoubtAsks))
				return err
			})
			_, err := d.Run(t.Context(), "r", nil)
			rests(t, err)
			q := from(t, d, "r", record.Options{}).QuestionsForUser[0]
			same(t, name, []any{q.Status, q.Question, q.RequiredAuthority}, []any{"open", "what came of effect charge?", dag.Human})
			lost = false
			if answers {
				done(t, d.Answer(t.Context(), "r", q.ID, c.say, dispatcher.Author("ann")))
			} else {
				done(t, d.Resolve(t.Context(), "r", "pay", "charge", c.say, dispatcher.Author("ann")))
			}
			_, err = d.Resume(t.Context(), "r")
			done(t, err)
			r := from(t, d, "r", record.Options{})
			q = r.QuestionsForUser[0]
			same(t, name, []any{len(r.QuestionsForUser), q.Status, q.Answer, q.AnsweredBy, q.AnsweredAt > 0, r.ToolEffects[0].Status},
				[]any{1, "answered", c.answer, ann, true, "done"})
		}
	}
}

// A question that ends by itself tells when, and what then comes of its point.
func TestRecordOfAQuestionThatEnds(t *testing.T) {
	d := inquire(t, newStore(), []string{"ask"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "word", "which?", dag.Within(time.Hour), dag.OrDefault("none"))
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	r := from(t, d, "r", record.Options{})
	q, p := r.QuestionsForUser[0], r.ResumePoints[0]
	same(t, "it", []any{q.ExpiresAt > r.CreatedAt, p.OnTimeout, p.TimeoutMs}, []any{true, "continue", 3600000})
	done(t, d.Skip(t.Context(), "r", "", dispatcher.Author("ann")))
	q = from(t, d, "r", record.Options{}).QuestionsForUser[0]
	same(t, "skipped", []any{q.Status, q.AnsweredBy}, []any{"skipped", ann})
}

// An effect whose output a fork has taken from its origin was never done under the key that it has
// in the fork, so it is not replayable there.
func TestRecordOfAnEffectThatAForkHasTaken(t *testing.T) {
	d := inquire(t, newStore(), []string{"a", "pay"}, nothing, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Effect(ctx, "charge", 1, func(context.Context, int) (int, error) { return 1, nil }, dag.Replayable)
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	forks, err := d.Fork(t.Context(), "r", "1", dispatcher.ForkOptions[Inquiry]{})
	done(t, err)
	_, err = d.Run(t.Context(), forks[0], nil)
	done(t, err)
	for run, want := range map[string]bool{"r": true, forks[0]: false} {
		e := from(t, d, run, record.Options{}).ToolEffects[0]
		same(t, run, []any{e.Status, e.IsReplayable}, []any{"done", want})
	}
}

// The options of a question are told as they were given, also those that are no texts.
func TestRecordOfAQuestionWithOptions(t *testing.T) {
	d := inquire(t, newStore(), []string{"ask"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[int](ctx, "many", map[string]any{"question": "how many?", "options": []any{"none", 1, map[string]any{"id": "all"}}})
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	q := from(t, d, "r", record.Options{}).QuestionsForUser[0]
	same(t, "it", q.Options, []string{"none", "1", `{"id":"all"}`})
}

// A question of a node's own is no wait of package continuation, whatever number it has as
// continuation: it says what it says, and who may answer it.
func TestRecordOfAQuestionLikeAWait(t *testing.T) {
	for _, member := range []string{`"continuation":1`, `"continuation":2,"of":"the story"`, `"continuation":1,"of":[{"page":3}]`} {
		d := inquire(t, newStore(), []string{"ask"}, func(ctx context.Context, _ *Inquiry) error {
			_, err := dag.Ask[string](ctx, "next", json.RawMessage(`{`+member+`,"question":"Publish it?","type":"approval","options":["yes","no"]}`))
			return err
		})
		_, err := d.Run(t.Context(), "inquiry", nil)
		rests(t, err)
		q := from(t, d, "inquiry", record.Options{}).QuestionsForUser[0]
		if q.Question != "Publish it?" || q.Type != record.AskApproval || q.RequiredAuthority != dag.Human || len(q.Options) != 2 {
			t.Errorf("%s: the question is %s", member, show(q))
		}
	}
}

// A wait of package continuation says what it is and who may end it, and its record who did.
func TestRecordOfAWait(t *testing.T) {
	d := inquire(t, newStore(), []string{"refund"}, func(ctx context.Context, q *Inquiry) error {
		_, err := continuation.Await[string](ctx, "approval", continuation.Wait{
			Kind: continuation.KindApproval, Key: "refund-7", Question: "Refund 40?", Authority: dag.Human,
		})
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	r := from(t, d, "r", record.Options{})
	q := r.QuestionsForUser[0]
	same(t, "open", []any{q.Type, q.Question, q.RequiredAuthority, q.ExpiresAt > 0, r.ResumePoints[0].RequiredAuthority},
		[]any{"approval", "Refund 40?", dag.Human, true, dag.Human})

	same(t, "point", r.ResumePoints[0].Description, "refund waits for approval: Refund 40?")

	rt, err := continuation.New(d, continuation.Options{})
	done(t, err)
	_, err = rt.Trigger(t.Context(), continuation.Trigger{
		ID: "1", Key: "refund-7", Kind: continuation.KindApproval, Decision: continuation.Approved,
		Actor: continuation.Actor{ID: "ann", Authority: dag.Human}, Payload: []byte(`"fine"`),
	})
	done(t, err)
	r = from(t, d, "r", record.Options{})
	q = r.QuestionsForUser[0]
	same(t, "answered", []any{q.Status, q.Answer, q.AnsweredBy, r.Task.Status}, []any{"answered", "approved: fine", ann, "completed"})
}

// A run that was answered by somebody else than it has asked for has gone on with that: the record
// tells by whom, and does not say that nobody else could.
func TestRecordOfAnAnswerByAnybody(t *testing.T) {
	d := inquire(t, newStore(), []string{"ask"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "who", map[string]any{"question": "who?", "authority": dag.Human})
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	done(t, d.Answer(t.Context(), "r", "", "me", dispatcher.Author("bot")))
	r := from(t, d, "r", record.Options{Authors: func(string) record.Author { return bot }})
	q := r.QuestionsForUser[0]
	same(t, "answered", []any{q.Status, q.AnsweredBy, q.RequiredAuthority}, []any{"answered", bot, record.AnyAuthority})
}

// An effect of another turn is another one, under another key, also when the turns before were
// rewound and trimmed away.
func TestRecordOfTurns(t *testing.T) {
	var keys []string
	pay := func(ctx context.Context, q *Inquiry) error {
		keys = append(keys, dag.Key(ctx)+"#pay")
		_, err := dag.Effect(ctx, "pay", 1, func(context.Context, int) (int, error) { return 1, nil })
		return err
	}
	d := inquire(t, newStore(), []string{"first", "pay"}, nothing, pay)
	told := func(r *record.Record) []string {
		return ids(r.ToolEffects, func(e record.ToolEffect) string { return e.IdempotencyKey })
	}
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	_, err = d.Turn(t.Context(), "r", nil)
	done(t, err)
	r := from(t, d, "r", record.Options{})
	same(t, "two turns", []any{told(r), r.ExecutionSummary.StepsCompleted}, []any{keys, 4})

	done(t, d.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{}))
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	done(t, d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1}))
	_, err = d.Turn(t.Context(), "r", nil)
	done(t, err)
	same(t, "trimmed", told(from(t, d, "r", record.Options{})), keys[len(keys)-1:])
}

// An approval is a question for a person, and a pause a point without a question.
func TestRecordOfApprovalsAndPauses(t *testing.T) {
	b := dag.New[Inquiry]("inquiry")
	dag.Step(b, "write", nothing)
	graph, err := b.Build()
	done(t, err)
	for name, c := range map[string]struct {
		o    dispatcher.Options
		want []any
	}{
		"approval": {dispatcher.Options{Gates: dispatcher.Gates{Preset: dispatcher.GateEverything}}, []any{1, dag.Human, 1}},
		"pause":    {dispatcher.Options{InterruptBefore: []string{"write"}}, []any{0, record.AnyAuthority, 0}},
	} {
		d, err := dispatcher.New(graph, newStore(), c.o)
		done(t, err)
		_, err = d.Run(t.Context(), "r", nil)
		rests(t, err)
		r := from(t, d, "r", record.Options{})
		p := r.ResumePoints[0]
		same(t, name, []any{len(r.QuestionsForUser), p.RequiredAuthority, len(p.Preconditions)}, c.want)
		for _, q := range r.QuestionsForUser {
			same(t, "question", []any{q.Type, q.RequiredAuthority, q.Options}, []any{"approval", dag.Human, []string{"approve", "reject"}})
		}
		done(t, d.Answer(t.Context(), "r", r.ResumePoints[0].ID[len("wait:"):], dispatcher.Approve, dispatcher.Author("ann")))
		_, err = d.Resume(t.Context(), "r")
		done(t, err)
		r = from(t, d, "r", record.Options{})
		same(t, "then", []any{len(r.QuestionsForUser), len(r.ResumePoints)}, []any{c.want[0], 0})
	}
}

// Who has cancelled a run is told as long as it rests for that, and not when it has gone on.
func TestRecordOfACancelledRun(t *testing.T) {
	d := inquire(t, newStore(), []string{"ask", "again"}, asksFor("one"), asksFor("two"))
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	done(t, d.Cancel(t.Context(), "r", errors.New("too dear"), dispatcher.Author("ann")))
	r := from(t, d, "r", record.Options{})
	same(t, "cancelled", []any{r.Task.Status, r.Blockers[0].Description}, []any{"blocked", "the run is cancelled by ann: too dear"})
	p := r.ResumePoints[len(r.ResumePoints)-1]
	same(t, "points", []any{len(r.ResumePoints), p.SafeToAutoExecute, p.NextSteps}, []any{2, false, []string{"ask"}})

	done(t, d.Answer(t.Context(), "r", "", "yes"))
	_, err = d.Resume(t.Context(), "r")
	rests(t, err)
	r = from(t, d, "r", record.Options{})
	same(t, "gone on", []any{len(r.Blockers), len(r.ResumePoints), r.ResumePoints[0].Label}, []any{0, 1, "again"})
}

func asksFor(key string) func(context.Context, *Inquiry) error {
	return func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, key, key+"?")
		return err
	}
}

// Numbers that canonical JSON can't hold become strings: nothing is rounded in silence.
func TestRecordOfLargeNumbers(t *testing.T) {
	d := inquire(t, newStore(), []string{"pay"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Effect(ctx, "n", uint64(12345678901234567891), func(context.Context, uint64) (float64, error) { return 0.1, nil })
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	e := from(t, d, "r", record.Options{}).ToolEffects[0]
	same(t, "effect", []any{string(e.Inputs), string(e.Outputs)}, []any{`{"value":"12345678901234567891"}`, `{"value":0.1}`})
}

// What of an effect has no canonical form is told all the same: of a member that is there twice the
// last one, and of half a character that there is one.
func TestRecordOfJSONWithoutACanonicalForm(t *testing.T) {
	d := inquire(t, newStore(), []string{"pay"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Effect(ctx, "n", json.RawMessage(`{"a":1,"a":2}`), func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"s":"\ud83d"}`), nil
		})
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	e := from(t, d, "r", record.Options{}).ToolEffects[0]
	same(t, "effect", []any{string(e.Inputs), string(e.Outputs)}, []any{`{"a":2}`, `{"s":"�"}`})
}

// Of a run that was trimmed, and of a fork, the record tells what is there, and from where.
func TestRecordOfATrimmedRunAndAFork(t *testing.T) {
	var keys []string
	note := func(id string) func(context.Context, *Inquiry) error {
		return func(ctx context.Context, q *Inquiry) error {
			keys = append(keys, dag.Key(ctx)+"#e")
			_, err := dag.Effect(ctx, "e", 1, func(context.Context, int) (int, error) { return 1, nil })
			return errors.Join(err, dag.Learn(ctx, dag.Learning{ID: id, Content: id}))
		}
	}
	d := inquire(t, newStore(), []string{"a", "b"}, note("a"), note("b"))
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	forks, err := d.Fork(t.Context(), "r", "1", dispatcher.ForkOptions[Inquiry]{})
	done(t, err)
	learned := func(r *record.Record) []string {
		return ids(r.Learnings, func(l record.Learning) string { return l.ID })
	}
	_, err = d.Run(t.Context(), forks[0], nil)
	done(t, err)
	r := from(t, d, forks[0], record.Options{})
	same(t, "fork", []any{learned(r), r.Source.Origin != "", r.ToolEffects[0].IdempotencyKey}, []any{[]string{"b"}, true, keys[len(keys)-1]})

	done(t, d.Rewind(t.Context(), "r", "1", dispatcher.RewindOptions{}))
	done(t, d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1}))
	_, err = d.Run(t.Context(), "r", nil)
	done(t, err)
	r = from(t, d, "r", record.Options{})
	last := r.ToolEffects[len(r.ToolEffects)-1]
	same(t, "trimmed", []any{learned(r), r.Source.First > 1, last.IdempotencyKey}, []any{[]string{"b"}, true, keys[len(keys)-1]})
}

// When a run has begun is not known once its beginning was trimmed, and a record that goes on with
// it keeps what it was told.
func TestRecordOfWhenATrimmedRunBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook(t)
		d := inquire(t, b.store, []string{"a", "b"}, nothing, asksFor("one"))
		_, err := d.Run(t.Context(), "r", nil)
		rests(t, err)
		v := b.create(t, from(t, d, "r", record.Options{}))
		same(t, "began", v.Record.Task.StartedAt, time.Now().UnixMilli())
		done(t, d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1}))
		<-time.After(time.Hour) // of the bubble's clock: the run is resumed an hour later
		done(t, d.Answer(t.Context(), "r", "", "yes"))
		_, err = d.Resume(t.Context(), "r")
		done(t, err)
		r := from(t, d, "r", record.Options{})
		same(t, "trimmed", []any{r.Source.First > 1, r.Task.StartedAt}, []any{true, 0})
		now, err := b.Advance(t.Context(), "r", r, cron)
		done(t, err)
		same(t, "goes on", []any{now.Record.Task.StartedAt, now.Record.Task.Status}, []any{v.Record.Task.StartedAt, "completed"})
	})
}

func nothing(context.Context, *Inquiry) error { return nil }

// Without a log, or a run, there is nothing to make a record of.
func TestFromRefuses(t *testing.T) {
	d := inquire(t, newStore(), []string{"a"}, nothing)
	var bad *record.ArgumentError
	if _, err := record.From(t.Context(), nil, "r", record.Options{}); !errors.As(err, &bad) {
		t.Errorf("no dispatcher: %v", err)
	}
	if _, err := record.From(t.Context(), inquire(t, nil, []string{"a"}, nothing), "r", record.Options{}); !errors.As(err, &bad) {
		t.Errorf("no store: %v", err)
	}
	if _, err := record.From(t.Context(), d, "r", record.Options{}); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("no run: %v", err)
	}
}

// An effect that was in doubt when its turn ended stays so: one of the next turn is another one.
func TestRecordOfADoubtOfAnEarlierTurn(t *testing.T) {
	fails := true
	var keys []string
	d := inquire(t, newStore(), []string{"call"}, func(ctx context.Context, _ *Inquiry) error {
		keys = append(keys, dag.Key(ctx)+"#ring")
		_, err := dag.Effect(ctx, "ring", 1, func(context.Context, int) (int, error) {
			if fails {
				return 0, errors.New("no answer")
			}
			return 1, nil
		})
		if errors.Is(err, dag.ErrInDoubt) {
			return nil // whether it rang or not
		}
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	done(t, err)
	fails = false
	_, err = d.Turn(t.Context(), "r", nil)
	done(t, err)
	all := from(t, d, "r", record.Options{}).ToolEffects
	same(t, "keys", ids(all, func(e record.ToolEffect) string { return e.IdempotencyKey }), keys)
	same(t, "statuses", ids(all, func(e record.ToolEffect) string { return string(e.Status) }), []string{string(record.EffectInDoubt), string(record.EffectDone)})
}

// What a run at rest is told to be does not depend on who has its lease for a moment: neither who
// has come to rest with it, and tells that (dispatcher.Hooks.OnEnd), nor who only says something of
// it. So no approval is lost to that.
func TestALeaseSaysNothingOfARunAtRest(t *testing.T) {
	store := newStore()
	var d *dispatcher.Dispatcher[Inquiry]
	var atEnd *record.Record
	b := dag.New[Inquiry]("inquiry")
	dag.Step(b, "fails", func(context.Context, *Inquiry) error { return errors.New("no") })
	d = inquiry(t, b, store, dispatcher.Options{Hooks: dispatcher.Hooks{OnEnd: func(context.Context, dispatcher.End) error {
		atEnd = from(t, d, "r", record.Options{})
		return nil
	}}})
	if _, err := d.Run(t.Context(), "r", nil); err == nil {
		t.Fatal("it does not fail")
	}
	at := from(t, d, "r", record.Options{})
	if len(at.ResumePoints) != 1 || show(atEnd) != show(at) {
		t.Fatalf("at its end the record is\n%s\nand behind that\n%s", show(atEnd), show(at))
	}

	l := ledgerOver(t, store, nil)
	_, err := l.Create(t.Context(), at, bot)
	done(t, err)
	_, err = l.Approve(t.Context(), at.ID, at.ResumePoints[0].ID, ann)
	done(t, err)
	done(t, d.Note(t.Context(), "r", "a.b", 1))
	lease, err := store.Acquire(t.Context(), "r", checkpoint.Amender("somebody"))
	done(t, err)
	beside := from(t, d, "r", record.Options{})
	done(t, store.Release(t.Context(), lease))
	v, err := l.Advance(t.Context(), at.ID, beside, bot)
	if err != nil || len(v.Record.ResumePoints) != 1 || v.Record.ResumePoints[0].ApprovalStatus != record.ApprovalGiven {
		t.Errorf("beside an amendment the record has the points %s, %v; want the one that was approved", show(v.Record), err)
	}
}
