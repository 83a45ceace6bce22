package record_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// pausing is a run of nodes that decide which way to go, if there is something to decide, and rests
// behind each of them.
func pausing(t *testing.T, b *book, run string, ways ...string) *dispatcher.Dispatcher[Inquiry] {
	t.Helper()
	graph := dag.New[Inquiry]("pausing")
	var after []dag.Edge[Inquiry]
	var names []string
	for i, way := range ways {
		names = append(names, string(rune('a'+i)))
		after = []dag.Edge[Inquiry]{dag.Step(graph, names[i], func(ctx context.Context, _ *Inquiry) error {
			if way == "" {
				return nil
			}
			return dag.Decide(ctx, dag.Decision{ID: "way", Description: way, OverridableBy: []dag.Authority{dag.Human}})
		}, after...)}
	}
	d := inquiry(t, graph, b.store, dispatcher.Options{InterruptAfter: names[:len(names)-1]})
	_, err := d.Run(t.Context(), run, nil)
	rests(t, err)
	return d
}

// advance has a run go on by a node, and its record with it.
func (b *book) advance(t *testing.T, d *dispatcher.Dispatcher[Inquiry], run, id string) *record.Record {
	t.Helper()
	_, _ = d.Resume(t.Context(), run)
	v, err := b.Advance(t.Context(), id, from(t, d, run, record.Options{}), cron)
	done(t, err)
	return v.Record
}

// way is what is chosen, and the variants of it.
func way(r *record.Record) []string {
	return append([]string{r.Decisions[0].Description}, ids(r.Decisions[0].Variants, func(v record.Variant) string { return v.Decision })...)
}

// However often a record goes on with its run, what people have made of it in between stays, and
// wins where the run decides otherwise, once or again; what only the run tells is told, and counted
// once.
func TestPeopleAreHeardThroughEveryAdvance(t *testing.T) {
	b := newBook(t)
	d := pausing(t, b, "r", "left", "", "straight", "", "back", "")
	v := b.create(t, from(t, d, "r", record.Options{}))
	_, err := b.Override(t.Context(), "r", "way", "right", "left is closed", ann)
	done(t, err)
	edit := func(id, goal string) {
		t.Helper()
		v, err = b.Get(t.Context(), "r")
		done(t, err)
		_, err = b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error {
			r.Task.Goal, r.Task.SuccessCriteria = goal, []string{goal}
			r.Learnings = append(r.Learnings, record.Learning{ID: id, Content: goal})
			r.Blockers = []record.Blocker{{ID: "b", Description: goal, ReportedBy: ann}}
			r.Metadata.Priority, r.Metadata.Tags = record.PriorityCritical, []string{id}
			return nil
		}, ann)
		done(t, err)
	}
	check := func(r *record.Record, goal string, learned, steps int, want ...string) {
		t.Helper()
		s := r.ExecutionSummary
		got := []any{r.Task.Goal, r.Task.SuccessCriteria, r.Blockers[0].Description, r.Metadata.Priority, len(r.Metadata.Tags), len(r.Learnings), s.StepsCompleted, len(s.Actions), way(r)}
		same(t, "now", got, []any{goal, []string{goal}, goal, record.PriorityCritical, 1, learned, steps, steps, want})
	}
	edit("one", "the first goal")
	check(b.advance(t, d, "r", "r"), "the first goal", 1, 2, "right", "left")
	check(b.advance(t, d, "r", "r"), "the first goal", 1, 3, "right", "left", "straight")
	check(b.advance(t, d, "r", "r"), "the first goal", 1, 4, "right", "left", "straight")
	edit("two", "the second goal")
	_, err = b.Override(t.Context(), "r", "way", "up", "the sky is clear", ann)
	done(t, err)
	check(b.advance(t, d, "r", "r"), "the second goal", 2, 5, "up", "left", "straight", "back", "right")
	r := b.advance(t, d, "r", "r")
	check(r, "the second goal", 2, 6, "up", "left", "straight", "back", "right")
	same(t, "task", r.Task.Status, "completed")
	before, err := b.Get(t.Context(), "r")
	done(t, err)
	again, err := b.Advance(t.Context(), "r", from(t, d, "r", record.Options{}), cron)
	done(t, err)
	same(t, "with nothing new", again.Number, before.Number)
}

// An answer and an approval that a person has given in the ledger stay while the run goes on
// elsewhere, until the run goes on from there: how that ended, the log knows.
func TestApprovalsStayThroughEveryAdvance(t *testing.T) {
	b := newBook(t)
	graph := dag.New[Inquiry]("inquiry")
	for _, name := range []string{"a", "b", "c", "d"} {
		dag.Step(graph, name, func(ctx context.Context, _ *Inquiry) error {
			_, err := dag.Ask[string](ctx, "q", "for "+name)
			return err
		})
	}
	d := inquiry(t, graph, b.store, dispatcher.Options{})
	res, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	v := b.create(t, from(t, d, "r", record.Options{}))
	q, p := v.Record.QuestionsForUser[3].ID, v.Record.ResumePoints[3].ID
	_, err = b.Answer(t.Context(), "r", q, "yes", ann)
	done(t, err)
	_, err = b.Approve(t.Context(), "r", p, ann)
	done(t, err)
	var now *record.Record
	for i := range 3 {
		done(t, d.Answer(t.Context(), "r", res.Interrupts[i].ID, "x"))
		now = b.advance(t, d, "r", "r")
		k := slices.IndexFunc(now.ResumePoints, func(x record.ResumePoint) bool { return x.ID == p })
		same(t, "now", []any{answer(now, q), now.ResumePoints[k].ApprovalStatus, len(now.ResumePoints)}, []any{"yes", record.ApprovalGiven, 3 - i})
	}
	if _, err := record.HandOver(now, p, b.now); err != nil {
		t.Errorf("the approved point is not handed over: %v", err)
	}
	done(t, d.Answer(t.Context(), "r", q, "no"))
	now = b.advance(t, d, "r", "r")
	same(t, "at last", []any{answer(now, q), len(now.ResumePoints), now.Task.Status}, []any{"no", 0, "completed"})
}

// The point from which a run at rest goes on stays the same one, and approved, while the run is
// named, noted and trimmed, which does not bring it on.
func TestAnApprovalStaysWhileTheRunRests(t *testing.T) {
	for name, c := range map[string]func(d *dispatcher.Dispatcher[Inquiry]) error{
		"named": func(d *dispatcher.Dispatcher[Inquiry]) error { return d.Tag(t.Context(), "r", "", "x") },
		"noted": func(d *dispatcher.Dispatcher[Inquiry]) error { return d.Note(t.Context(), "r", "seen", true) },
		"trimmed": func(d *dispatcher.Dispatcher[Inquiry]) error {
			return d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1})
		},
		"named, and trimmed": func(d *dispatcher.Dispatcher[Inquiry]) error {
			return errors.Join(d.Tag(t.Context(), "r", "", "x"), d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1}))
		},
	} {
		b := newBook(t)
		d := inquire(t, b.store, []string{"a", "ask"}, nothing, asksFor("one"))
		_, err := d.Run(t.Context(), "r", nil)
		rests(t, err)
		done(t, d.Cancel(t.Context(), "r", errors.New("too dear"), dispatcher.Author("ann")))
		v := b.create(t, from(t, d, "r", record.Options{}))
		p := v.Record.ResumePoints[len(v.Record.ResumePoints)-1].ID
		_, err = b.Approve(t.Context(), "r", p, ann)
		done(t, err)
		done(t, c(d))
		now, err := b.Advance(t.Context(), "r", from(t, d, "r", record.Options{}), cron)
		done(t, err)
		points := ids(now.Record.ResumePoints, func(p record.ResumePoint) string { return p.ID + " " + string(p.ApprovalStatus) })
		same(t, name, points, []string{v.Record.ResumePoints[0].ID + " pending", p + " approved"})
	}
}

// answer is that to a question.
func answer(r *record.Record, question string) string {
	k := slices.IndexFunc(r.QuestionsForUser, func(q record.Question) bool { return q.ID == question })
	return r.QuestionsForUser[k].Answer
}

// Two records of one run are merged, of which one had gone on with it further: what people decided
// in either stays when the merged one goes on, and steps are counted once.
func TestPeopleAreHeardBehindAMerge(t *testing.T) {
	b := newBook(t)
	d := pausing(t, b, "r", "left", "", "straight", "", "")
	v := b.create(t, from(t, d, "r", record.Options{}))
	b.branch(t, "other", from(t, d, "r", record.Options{}), v)
	b.override(t, "other", "right")
	b.advance(t, d, "r", "other")
	mine, err := b.Get(t.Context(), "r")
	done(t, err)
	b.learn(t, mine, "mine")
	_, err = b.Merge(t.Context(), "r", "other", record.PreferA, ann)
	done(t, err)
	for i := range 3 {
		r := b.advance(t, d, "r", "r")
		same(t, "now", []any{way(r)[0], len(r.Learnings), r.ExecutionSummary.StepsCompleted}, []any{"right", 1, 3 + i})
	}
}

// branch creates a record that goes on from a version of another one.
func (b *book) branch(t *testing.T, id string, r *record.Record, of *record.Version) *record.Version {
	t.Helper()
	r = r.Clone()
	r.ID, r.ParentCRHash = id, of.Record.ContentHash
	return b.create(t, r)
}

// override has ann choose another way.
func (b *book) override(t *testing.T, id, choice string) *record.Version {
	t.Helper()
	v, err := b.Override(t.Context(), id, "way", choice, "", ann)
	done(t, err)
	return v
}

// A record that goes on from a version that people have changed, or from one that goes on from
// that, keeps what they decided when it goes on with the run; so does the one that it is merged
// back into.
func TestPeopleAreHeardInABranch(t *testing.T) {
	for _, of := range []int{1, 2} {
		b := newBook(t)
		d := pausing(t, b, "r", "left", "", "straight", "", "back", "")
		b.create(t, from(t, d, "r", record.Options{}))
		v := b.override(t, "r", "right")
		for i := range of {
			v = b.branch(t, []string{"other", "another"}[i], v.Record, v)
		}
		id := v.Record.ID
		for range 3 {
			same(t, "in the branch", way(b.advance(t, d, "r", id))[0], "right")
		}
		_, err := b.Merge(t.Context(), "r", id, record.PreferA, ann)
		done(t, err)
		for range 2 {
			same(t, "merged back", way(b.advance(t, d, "r", "r"))[0], "right")
		}
	}
}

// What a branch was made to say anew, of a later position of the log, the run may choose anew.
func TestTheRunIsHeardInABranchOfALaterPosition(t *testing.T) {
	b := newBook(t)
	d := pausing(t, b, "r", "left", "straight", "back", "")
	b.create(t, from(t, d, "r", record.Options{}))
	v := b.override(t, "r", "right")
	_, _ = d.Resume(t.Context(), "r")
	b.branch(t, "other", from(t, d, "r", record.Options{}), v)
	same(t, "the way", way(b.advance(t, d, "r", "other"))[0], "back")
}

// What nobody but the run has chosen it may choose anew, also behind a Merge that brought in no
// more than what somebody chose elsewhere; that stays a variant.
func TestTheRunIsHeardBehindAMergeOfVariants(t *testing.T) {
	b := newBook(t)
	d := pausing(t, b, "r", "left", "straight", "", "back", "home")
	b.branch(t, "other", from(t, d, "r", record.Options{}), b.create(t, from(t, d, "r", record.Options{})))
	b.override(t, "other", "right")
	b.advance(t, d, "r", "r")
	m, err := b.Merge(t.Context(), "r", "other", record.PreferA, ann)
	done(t, err)
	same(t, "merged", way(m.Record), []string{"straight", "left", "right"})
	for _, want := range [][]string{{"straight", "left"}, {"back", "left", "straight"}, {"home", "left", "straight", "back"}} {
		same(t, "now", way(b.advance(t, d, "r", "r")), append(want, "right"))
	}
	b.override(t, "r", "up")
	same(t, "at last", way(b.advance(t, d, "r", "r"))[0], "up")
}

// questioning is a run of nodes that ask one after the other, and what answers it and has records
// go on with it.
func questioning(t *testing.T, b *book, nodes ...string) (*dispatcher.Dispatcher[Inquiry], func(records ...string) *record.Record) {
	t.Helper()
	graph := dag.New[Inquiry]("inquiry")
	var after []dag.Edge[Inquiry]
	for _, name := range nodes {
		after = []dag.Edge[Inquiry]{dag.Step(graph, name, func(ctx context.Context, _ *Inquiry) error {
			_, err := dag.Ask[string](ctx, "q", "for "+name)
			return err
		}, after...)}
	}
	d := inquiry(t, graph, b.store, dispatcher.Options{})
	res, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	return d, func(records ...string) (r *record.Record) {
		t.Helper()
		done(t, d.Answer(t.Context(), "r", res.Interrupts[0].ID, "x"))
		res, _ = d.Run(t.Context(), "r", nil)
		for _, id := range records {
			v, err := b.Advance(t.Context(), id, from(t, d, "r", record.Options{}), cron)
			done(t, err)
			r = v.Record
		}
		return r
	}
}

// Two records of a run have both gone on with it, one further than the other, and one is merged
// into the other, whichever: what the run has left behind is not brought back, approved or not, and
// steps are counted once. An answer that came too late contradicts the one that the run has heard.
// It makes no difference that nothing says what they have in common.
func TestMergeOfRecordsAtTwoPositions(t *testing.T) {
	for _, related := range []bool{true, false} {
		for _, approved := range []bool{false, true} {
			for _, into := range []string{"r", "other"} {
				b := newBook(t)
				d, on := questioning(t, b, "a", "b", "c", "d")
				v := b.create(t, from(t, d, "r", record.Options{}))
				if other := from(t, d, "r", record.Options{}); related {
					b.branch(t, "other", other, v)
				} else {
					other.ID = "other"
					b.create(t, other)
				}
				behind := on("r", "other") // at b
				if approved {
					_, err := b.Answer(t.Context(), "other", behind.QuestionsForUser[1].ID, "theirs", ann)
					done(t, err)
					_, err = b.Approve(t.Context(), "other", behind.ResumePoints[0].ID, ann)
					done(t, err)
				}
				on("r") // at c
				check := func(r *record.Record, steps int, labels ...string) {
					t.Helper()
					got := []any{ids(r.ResumePoints, func(p record.ResumePoint) string { return p.Label }), r.ExecutionSummary.StepsCompleted, r.QuestionsForUser[1].Answer}
					same(t, "now", got, []any{labels, steps, "x"})
				}
				from := map[string]string{"r": "other", "other": "r"}[into]
				m, err := b.Merge(t.Context(), into, from, record.Manual, ann)
				var contradict *record.MergeError
				if errors.As(err, &contradict) != approved || approved && len(contradict.Conflicts) != 1 {
					t.Fatalf("answered elsewhere: %v; merged: %v", approved, err)
				}
				if approved {
					m, err = b.Merge(t.Context(), into, from, map[string]record.Strategy{"r": record.PreferA, "other": record.PreferB}[into], ann)
				}
				done(t, err)
				check(m.Record, 2, "c")
				check(on(into), 3, "d")
				check(on(into), 4)
			}
		}
	}
}

// What nodes have said of a run stays in its record when the log is trimmed, however often, until
// they say otherwise; what stood in the way of the run by then does not.
func TestWhatWasTrimmedStaysTold(t *testing.T) {
	b := newBook(t)
	d := inquire(t, b.store, []string{"a", "b", "c", "d", "e"},
		func(ctx context.Context, _ *Inquiry) error {
			return errors.Join(
				dag.Decide(ctx, dag.Decision{ID: "way", Description: "left"}),
				dag.Decide(ctx, dag.Decision{ID: "pace", Description: "slow"}),
				dag.Learn(ctx, dag.Learning{ID: "hours", Content: "it closes at six"}),
				dag.Block(ctx, dag.Blocker{ID: "card", Description: "no card"}),
				dag.Require(ctx, dag.Invariant{ID: "quiet", Description: "nobody talks"}))
		}, asksFor("one"), asksFor("two"), decides("way"), asksFor("three"))
	cancel := func() { done(t, d.Cancel(t.Context(), "r", errors.New("too dear"), dispatcher.Author("ann"))) }
	trim := func() { done(t, d.Trim(t.Context(), "r", dispatcher.Retention{Last: 1})) }
	told := func(r *record.Record) []any {
		sorted := func(all []string) []string { slices.Sort(all); return all }
		return []any{
			sorted(ids(r.Decisions, func(d record.Decision) string { return d.ID + " " + d.Description })),
			ids(r.Learnings, func(l record.Learning) string { return l.Content }),
			sorted(ids(r.QuestionsForUser, func(q record.Question) string { return q.Question + " " + string(q.Status) })),
			ids(r.Blockers, func(b record.Blocker) string { return b.Description }), len(r.Invariants), len(r.ResumePoints),
		}
	}
	advance := func() *record.Record {
		t.Helper()
		v, err := b.Advance(t.Context(), "r", from(t, d, "r", record.Options{}), cron)
		done(t, err)
		return v.Record
	}
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	b.create(t, from(t, d, "r", record.Options{}))
	answer := func() {
		t.Helper()
		done(t, d.Answer(t.Context(), "r", "", "yes"))
		_, err = d.Resume(t.Context(), "r")
		rests(t, err)
	}
	first := []any{[]string{"pace slow", "way left"}, []string{"it closes at six"}, []string{"one? answered", "two? open"}, []string{"no card"}, 1, 1}
	answer()
	same(t, "told", told(advance()), first)
	trim()
	same(t, "trimmed", told(advance()), first)
	second := []any{[]string{"pace slow", "way way"}, []string{"it closes at six"},
		[]string{"one? answered", "three? open", "two? answered"}, []string{"no card"}, 1, 1}
	answer()
	same(t, "told again", told(advance()), second)
	trim()
	same(t, "trimmed again", told(advance()), second)
	cancel()
	same(t, "cancelled", ids(advance().Blockers, func(b record.Blocker) string { return b.Description }), []string{"no card", "the run is cancelled by ann: too dear"})
	done(t, d.Answer(t.Context(), "r", "", "yes"))
	_, err = d.Resume(t.Context(), "r")
	done(t, err)
	trim()
	second[2], second[5] = []string{"one? answered", "two? answered"}, 0
	same(t, "what was open", told(advance()), second)
}

// A record that people have changed has no more actions than one that From makes, however often it
// goes on with its run.
func TestAdvanceTellsTheLastActions(t *testing.T) {
	b := newBook(t)
	told := func(seq int) *record.Record {
		r := draft("r")
		r.CreatedBy, r.LastModifiedBy = bot, bot
		r.Source = &record.Source{Run: "r", Seq: uint64(seq), Graph: "g"}
		for i := range 1000 {
			r.ExecutionSummary.Actions = append(r.ExecutionSummary.Actions,
				record.Action{Description: "visit", Timestamp: int64(1000*seq + i), Outcome: record.OutcomeSuccess})
		}
		done(t, r.Seal())
		return r
	}
	b.learn(t, b.create(t, told(1)), "people")
	for seq := 2; seq < 5; seq++ {
		v, err := b.Advance(t.Context(), "r", told(seq), cron)
		done(t, err)
		same(t, "actions", v.Record.ExecutionSummary.Actions, told(seq).ExecutionSummary.Actions)
	}
}
