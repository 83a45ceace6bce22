package record_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// tells lists what a record tells, by its ids.
func tells(r *record.Record) (all []string) {
	all = append(all, ids(r.Decisions, func(d record.Decision) string { return "decision " + d.ID })...)
	all = append(all, ids(r.Learnings, func(l record.Learning) string { return "learning " + l.ID })...)
	all = append(all, ids(r.Invariants, func(i record.Invariant) string { return "invariant " + i.ID })...)
	return append(all, ids(r.ResumePoints, func(p record.ResumePoint) string { return "point " + string(p.ApprovalStatus) })...)
}

// Another run takes work over, and its record is merged home: what was told before is told still,
// whether or not anybody has changed the record since, and again when both have gone on. Its run
// stays that of who handed over, with which it goes on.
func TestWorkThatWasTakenOverIsMergedHome(t *testing.T) {
	for _, s := range strategies {
		for _, changed := range []bool{false, true} {
			b := newBook(t)
			d := inquire(t, b.store, []string{"think", "ask"}, func(ctx context.Context, q *Inquiry) error {
				done(t, dag.Decide(ctx, dag.Decision{ID: "way", Description: "by sea", OverridableBy: []dag.Authority{dag.Human}}))
				done(t, dag.Require(ctx, dag.Invariant{ID: "budget", Description: "at most 100"}))
				return dag.Learn(ctx, dag.Learning{ID: "calm", Content: "the sea is calm"})
			}, func(ctx context.Context, q *Inquiry) error {
				_, err := dag.Ask[string](ctx, "who", "who goes on?")
				return err
			})
			_, err := d.Run(t.Context(), "first", nil)
			rests(t, err)
			b.now = time.Now()
			r := from(t, d, "first", record.Options{Goal: "travel", Criteria: []string{"there"}, Metadata: record.Metadata{Tags: []string{"sea"}}})
			b.create(t, r)
			_, err = b.Answer(t.Context(), "first", r.QuestionsForUser[0].ID, "second", ann)
			done(t, err)
			v, err := b.Approve(t.Context(), "first", r.ResumePoints[0].ID, ann)
			done(t, err)
			work, err := record.HandOver(v.Record, r.ResumePoints[0].ID, b.now)
			done(t, err)

			other := inquire(t, b.store, []string{"sail"}, func(ctx context.Context, q *Inquiry) error {
				return dag.Learn(ctx, dag.Learning{ID: "rough", Content: "the sea was rough"})
			})
			_, err = other.Start(t.Context(), "second", nil, dispatcher.Labels(work.Labels()))
			done(t, err)
			second := b.create(t, from(t, other, "second", record.Options{Goal: "travel"}))
			if changed {
				b.change(t, "first", func(r *record.Record) { r.Metadata.Tags = append(r.Metadata.Tags, "seen") })
			}
			v, err = b.Merge(t.Context(), "first", "second", s, ann)
			done(t, err)
			want := []string{"decision way", "learning calm", "learning rough", "invariant budget", "point approved"}
			same(t, string(s), tells(v.Record), want)
			same(t, "run, steps and words", []any{v.Record.Source.Run, v.Record.Task.ID, v.Record.ExecutionSummary.StepsCompleted, v.Record.Task.SuccessCriteria, v.Record.Metadata.Tags[0]},
				[]any{"first", "first", 2, []string{"there"}, "sea"})

			b.learn(t, second, "since") // of the second
			v, err = b.Merge(t.Context(), "first", "second", record.Manual, ann)
			done(t, err)
			same(t, "merged again", len(v.Record.Learnings), 3)
			same(t, "of run, steps", []any{v.Record.Source.Run, v.Record.ExecutionSummary.StepsCompleted}, []any{"first", 2})
			done(t, d.Answer(t.Context(), "first", "", "first"))
			_, err = d.Run(t.Context(), "first", nil)
			done(t, err)
			v, err = b.Advance(t.Context(), "first", from(t, d, "first", record.Options{Goal: "travel"}), cron)
			done(t, err)
			same(t, "gone on with", []any{v.Record.Source.Run, len(v.Record.Decisions), len(v.Record.Learnings), len(v.Record.ResumePoints)}, []any{"first", 1, 3, 0})
		}
	}
}

// The record of a run that has taken work over knows what it was brought by a merge: what it takes
// away of that is gone.
func TestWhatWasBroughtInCanBeTakenAway(t *testing.T) {
	b := newBook(t)
	first := toldAt(1, "left")
	first.ID, first.Learnings = "first", []record.Learning{{ID: "wet", Content: "wet", LearnedBy: ann}}
	v := b.create(t, first)
	second := draft("second")
	second.Source, second.ParentCRHash = &record.Source{Run: "s", Seq: 1, Digest: "00", Graph: "g"}, v.Record.ContentHash
	second.Decisions = nil
	b.create(t, second)
	b.change(t, "first", func(r *record.Record) { r.Task.Goal = "run" })
	v, err := b.Merge(t.Context(), "second", "first", record.PreferB, ann)
	done(t, err)
	same(t, "brought in", append(tells(v.Record), v.Record.Source.Run), []string{"decision way", "learning wet", "s"})
	b.change(t, "second", func(r *record.Record) { r.Learnings = nil })
	v, err = b.Merge(t.Context(), "first", "second", record.Manual, ann)
	done(t, err)
	same(t, "taken away", append(tells(v.Record), v.Record.Source.Run), []string{"decision way", "r"})
}

// What a person has answered and denied, though anybody may, stays so whatever a record that goes
// on from there has made of it, and whoever merges that.
func TestMergeLeavesWhatIsSettled(t *testing.T) {
	for name, forge := range map[string]func(*record.Record){
		"takes it away": func(r *record.Record) { r.QuestionsForUser, r.ResumePoints = nil, nil },
		"opens it": func(r *record.Record) {
			q, p := &r.QuestionsForUser[0], &r.ResumePoints[0]
			q.Status, q.Answer, q.AnsweredBy, q.AnsweredAt = record.QuestionOpen, "", nil, 0
			p.ApprovalStatus, p.ApprovedBy, p.ApprovedAt, p.ApprovalReason = record.ApprovalPending, nil, 0, ""
		},
		"decides it again": func(r *record.Record) {
			r.QuestionsForUser[0].Answer, r.QuestionsForUser[0].AnsweredBy = "no", &bot
			r.ResumePoints[0].ApprovalStatus, r.ResumePoints[0].ApprovedBy = record.ApprovalGiven, &bot
		},
	} {
		for _, s := range strategies {
			for _, by := range []record.Author{bot, ann} {
				for _, run := range []*record.Source{nil, {Run: "r", Seq: 1, Digest: "00", Graph: "g"}} {
					b := newBook(t)
					first := asks("a", record.ResumePoint{}, 0)
					first.Source = run
					b.create(t, first)
					_, err := b.Answer(t.Context(), "a", "q", "yes", ann)
					done(t, err)
					v, err := b.Deny(t.Context(), "a", "p", "too wet", ann)
					done(t, err)
					other := v.Record.Clone()
					other.ID, other.ParentCRHash, other.MerkleRoot = "b", v.Record.ContentHash, ""
					forge(other)
					b.create(t, other)
					m, err := b.Merge(t.Context(), "a", "b", s, by)
					done(t, err)
					same(t, name, []any{m.Record.QuestionsForUser, m.Record.ResumePoints}, []any{v.Record.QuestionsForUser, v.Record.ResumePoints})
					if _, err := b.Answer(t.Context(), "a", "q", "nine", bot); !errors.Is(err, record.ErrSettled) {
						t.Errorf("%s, %s, and it is answered again: %v", name, s, err)
					}
				}
			}
		}
	}
}

// taken is the record of a run that has taken work over from the version with the hash parent, if
// there is one.
func taken(id, parent string) *record.Record {
	r := draft(id)
	r.Decisions = nil
	r.ParentCRHash = parent
	r.Source = &record.Source{Run: "run-" + id, Seq: 1, Digest: "00", Graph: "g"}
	r.Learnings = []record.Learning{{ID: id, Content: "of " + id, LearnedBy: ann}}
	return r
}

// Work is handed over, and handed over again, and merged home step by step: the records between
// have never known what the first one tells, so they take nothing of it away.
func TestWorkThatWasHandedOverTwiceIsMergedHome(t *testing.T) {
	for _, s := range strategies {
		b := newBook(t)
		x := asks("r", record.ResumePoint{}, 0)
		x.Source = &record.Source{Run: "run-r", Seq: 1, Digest: "00", Graph: "g"}
		x.Invariants = []record.Invariant{{ID: "budget", Description: "at most 100"}}
		b.create(t, x)
		_, err := b.Answer(t.Context(), "r", "q", "yes", ann)
		done(t, err)
		r, err := b.Deny(t.Context(), "r", "p", "too wet", ann)
		done(t, err)
		second := b.create(t, taken("s", r.Record.ContentHash))
		b.create(t, taken("t", second.Record.ContentHash))
		_, err = b.Merge(t.Context(), "s", "t", s, ann)
		done(t, err)
		v, err := b.Merge(t.Context(), "r", "s", s, ann)
		done(t, err)
		same(t, string(s), append(tells(v.Record), v.Record.Source.Run, v.Record.QuestionsForUser[0].Answer),
			[]string{"decision way", "learning s", "learning t", "invariant budget", "point denied", "run-r", "yes"})
	}
}

// The record of a run that has taken the work over from one that knew the first one is merged into
// that.
func TestWorkOfAThirdRunIsMergedHomeAtOnce(t *testing.T) {
	for _, s := range strategies {
		b := newBook(t)
		r := b.create(t, taken("r", ""))
		b.create(t, taken("s", r.Record.ContentHash))
		b.change(t, "r", func(r *record.Record) { r.Task.Goal = "run" })
		v, err := b.Merge(t.Context(), "s", "r", record.PreferB, ann)
		done(t, err)
		b.create(t, taken("t", v.Record.ContentHash))
		v, err = b.Merge(t.Context(), "r", "t", s, ann)
		done(t, err)
		same(t, string(s), tells(v.Record), []string{"learning r", "learning t"})
	}
}

// Two runs have taken the work over, and the one that brings both home has steps of each once, and
// of the first record once.
func TestWhatTwoHaveInCommonCountsOnce(t *testing.T) {
	b := newBook(t)
	counts := func(r *record.Record) *record.Record { r.ExecutionSummary.StepsCompleted = 2; return r }
	r := b.create(t, counts(taken("r", "")))
	b.create(t, counts(taken("s", r.Record.ContentHash)))
	b.create(t, counts(taken("t", r.Record.ContentHash)))
	_, err := b.Merge(t.Context(), "s", "t", record.Manual, ann)
	done(t, err)
	v, err := b.Merge(t.Context(), "r", "s", record.Manual, ann)
	done(t, err)
	same(t, "steps", v.Record.ExecutionSummary.StepsCompleted, 6)
}

// Who has taken work over can be told all that the record tells from which he did, also if nobody
// has changed that since, and once.
func TestWhoTookOverIsToldWhatWasHandedOver(t *testing.T) {
	for _, s := range strategies {
		b := newBook(t)
		x := taken("r", "")
		x.ExecutionSummary.StepsCompleted = 3
		r := b.create(t, x)
		b.create(t, taken("s", r.Record.ContentHash))
		v, err := b.Merge(t.Context(), "s", "r", s, ann)
		done(t, err)
		same(t, string(s), append(tells(v.Record), v.Record.Source.Run), []string{"learning r", "learning s", "run-s"})
		same(t, "steps, version", []int{v.Record.ExecutionSummary.StepsCompleted, v.Number}, []int{3, 2})
		b.change(t, "s", func(r *record.Record) { r.Learnings = r.Learnings[1:] })
		v, err = b.Merge(t.Context(), "s", "r", s, ann)
		done(t, err)
		same(t, "again", []int{len(v.Record.Learnings), v.Number}, []int{1, 3})
	}
}

// What a record has heard of the one from which it goes on, by way of a third, it is not told
// again: neither steps, nor what it has taken away of that. What came of the rest since it is told.
func TestWhatWasHeardInPartCountsOnce(t *testing.T) {
	b := newBook(t)
	counts := func(r *record.Record, n int) *record.Record { r.ExecutionSummary.StepsCompleted = n; return r }
	first := counts(taken("r", ""), 2)
	first.Learnings = append(first.Learnings, record.Learning{ID: "wet", Content: "wet", LearnedBy: bot}, record.Learning{ID: "cold", Content: "cold", LearnedBy: ann})
	first.QuestionsForUser = asks("r", record.ResumePoint{}, 0).QuestionsForUser
	first.QuestionsForUser[0].BlocksResumePoints = nil
	r := b.create(t, first)
	b.create(t, counts(taken("s", r.Record.ContentHash), 10))
	_, err := b.Merge(t.Context(), "s", "r", record.Manual, ann)
	done(t, err)
	b.change(t, "r", func(r *record.Record) {
		counts(r, 5)
		r.Learnings[1].Content = "very wet"
		r.Learnings = append(r.Learnings, record.Learning{ID: "late", Content: "late", LearnedBy: bot})
	})
	v, err := b.Answer(t.Context(), "r", "q", "yes", ann)
	done(t, err)
	b.create(t, counts(taken("t", v.Record.ContentHash), 100))
	v, err = b.Merge(t.Context(), "t", "s", record.Manual, ann)
	done(t, err)
	same(t, "steps of all and two of the first", v.Record.ExecutionSummary.StepsCompleted, 112)
	b.change(t, "t", func(r *record.Record) {
		r.Learnings = slices.DeleteFunc(r.Learnings, func(l record.Learning) bool { return l.ID == "cold" })
	})
	_, err = b.Answer(t.Context(), "t", "q", "no", ann)
	done(t, err)
	v, err = b.Merge(t.Context(), "t", "r", record.Manual, ann)
	done(t, err)
	same(t, "steps", v.Record.ExecutionSummary.StepsCompleted, 115)
	same(t, "tells", tells(v.Record), []string{"learning r", "learning wet", "learning late", "learning s", "learning t"})
	for _, l := range v.Record.Learnings {
		if l.ID == "wet" {
			same(t, "since", l.Content, "very wet")
		}
	}
	same(t, "what was settled", v.Record.QuestionsForUser[0].Answer, "yes")
}

// What somebody has heard of a record is the newest of its versions that both have heard, though an
// older one is nearer by a merge.
func TestPartIsTheNewestThatBothHaveHeard(t *testing.T) {
	b := newBook(t)
	a1 := b.create(t, steps(taken("a", ""), 2))
	b.create(t, steps(taken("c", a1.Record.ContentHash), 1))
	b.change(t, "a", func(r *record.Record) {
		steps(r, 5).Learnings = append(r.Learnings, record.Learning{ID: "wet", Content: "wet", LearnedBy: bot})
	})
	b.create(t, steps(taken("d", a1.Record.ContentHash), 10))
	_, err := b.Merge(t.Context(), "d", "a", record.Manual, ann)
	done(t, err)
	b.change(t, "a", func(r *record.Record) { steps(r, 6) })
	a4, err := b.Merge(t.Context(), "a", "c", record.Manual, ann)
	done(t, err)
	b.create(t, steps(taken("v", a4.Record.ContentHash), 100))
	_, err = b.Merge(t.Context(), "v", "d", record.Manual, ann)
	done(t, err)
	b.change(t, "v", func(r *record.Record) {
		r.Learnings = slices.DeleteFunc(r.Learnings, func(l record.Learning) bool { return l.ID == "wet" })
	})
	v, err := b.Merge(t.Context(), "v", "a", record.Manual, ann)
	done(t, err)
	same(t, "steps", v.Record.ExecutionSummary.StepsCompleted, 117)
	if slices.ContainsFunc(v.Record.Learnings, func(l record.Learning) bool { return l.ID == "wet" }) {
		t.Error("what was taken away came back")
	}
}

// Both sides of a merge may have been heard, and it not.
func TestBothSidesOfAMergeHeardApart(t *testing.T) {
	b := newBook(t)
	a1 := b.create(t, steps(taken("a", ""), 2))
	c1 := b.create(t, steps(taken("c", a1.Record.ContentHash), 1))
	b.create(t, steps(taken("d", a1.Record.ContentHash), 10))
	_, err := b.Merge(t.Context(), "d", "a", record.Manual, ann)
	done(t, err)
	b.create(t, steps(taken("e", c1.Record.ContentHash), 20))
	_, err = b.Merge(t.Context(), "e", "c", record.Manual, ann)
	done(t, err)
	a4, err := b.Merge(t.Context(), "a", "c", record.Manual, ann)
	done(t, err)
	b.create(t, steps(taken("v", a4.Record.ContentHash), 100))
	for _, from := range []string{"d", "e", "a", "a"} { // of the second a there is nothing to merge any more
		_, err = b.Merge(t.Context(), "v", from, record.Manual, ann)
		done(t, err)
	}
	v, err := b.Get(t.Context(), "v")
	done(t, err)
	same(t, "steps", v.Record.ExecutionSummary.StepsCompleted, 133)
}

// steps sets how many steps a record counts.
func steps(r *record.Record, n int) *record.Record {
	r.ExecutionSummary.StepsCompleted = n
	return r
}

// What has come home by way of a third record is not merged once more, however long that way was.
func TestWhatCameHomeByALongWayIsMergedOnce(t *testing.T) {
	b := newBook(t)
	of := func(id, run string, parent *record.Record) *record.Record {
		r := draft(id)
		if parent != nil {
			r = parent.Clone()
			r.ID, r.ParentCRHash = id, parent.ContentHash
		}
		r.Source = &record.Source{Run: run, Seq: 1, Graph: "g"}
		return b.create(t, r).Record
	}
	home := of("home", "first", nil)
	away := of("away", "second", home)
	last := of("third", "second", away)
	for _, goal := range []string{"walk on", "run", "fly"} {
		v, err := b.Update(t.Context(), "third", last.ContentHash, func(r *record.Record) error { r.Task.Goal = goal; return nil }, ann)
		done(t, err)
		last = v.Record
	}
	v, err := b.Merge(t.Context(), "home", "third", record.PreferA, ann)
	done(t, err)
	again, err := b.Merge(t.Context(), "home", "away", record.PreferA, ann)
	done(t, err)
	same(t, "merged by a short way", []any{again.Number, again.Record.ContentHash}, []any{v.Number, v.Record.ContentHash})
}
