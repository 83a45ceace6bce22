package record_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// gated is a record whose question, point and decision need a person.
func gated(id string) *record.Record {
	r := asks(id, record.ResumePoint{RequiredAuthority: dag.Human, OnTimeout: record.TimeoutAbort}, 0)
	r.QuestionsForUser[0].RequiredAuthority = dag.Human
	return r
}

// A point that needs a person is approved by one or not at all: a record that says otherwise is
// none, whichever way it comes.
func TestNobodyApprovesForAPerson(t *testing.T) {
	for name, approve := range map[string]func(*record.ResumePoint){
		"by an agent":   func(p *record.ResumePoint) { p.ApprovalStatus, p.ApprovedBy = record.ApprovalGiven, &bot },
		"by the system": func(p *record.ResumePoint) { p.ApprovalStatus, p.ApprovedBy = record.ApprovalGiven, &record.Automatic },
		"by itself":     func(p *record.ResumePoint) { p.ApprovalStatus = record.ApprovalAutomatic },
		"by nobody":     func(p *record.ResumePoint) { p.ApprovalStatus = record.ApprovalGiven },
	} {
		b := newBook(t)
		approved := gated("r")
		approve(&approved.ResumePoints[0])
		sealed := b.create(t, gated("other")).Record
		forged := sealed.Clone()
		approve(&forged.ResumePoints[0])
		line, err := sealed.Encode()
		done(t, err)
		file := strings.Replace(string(line), `"approvalStatus":"pending"`, `"approvalStatus":"`+string(approved.ResumePoints[0].ApprovalStatus)+`"`, 1)
		for way, come := range map[string]func() error{
			"create":    func() error { _, err := b.Create(t.Context(), approved, bot); return err },
			"hand over": func() error { _, err := record.HandOver(forged, "p", b.now); return err },
			"import":    func() error { _, err := b.Import(t.Context(), strings.NewReader(file)); return err },
		} {
			var invalid *record.InvalidError
			if err := b.unchanged(t, come); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "resumePoints p: it is ") {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
	b := newBook(t)
	answered := gated("r")
	answered.QuestionsForUser[0].Status, answered.QuestionsForUser[0].AnsweredBy = record.QuestionAnswered, &bot
	var invalid *record.InvalidError
	if err := b.unchanged(t, func() error { _, err := b.Create(t.Context(), answered, bot); return err }); !errors.As(err, &invalid) {
		t.Errorf("answered by an agent: %v", err)
	}
}

// An agent makes another record that goes on from one, in which a gate is weaker and passed, and
// merges it: it is refused what it may not do itself. A person may, and so may be brought in by
// anybody what a person has done.
func TestMergePassesNoGate(t *testing.T) {
	for name, forge := range map[string]func(*record.Record){
		"approves": func(r *record.Record) {
			p := &r.ResumePoints[0]
			p.RequiredAuthority, p.ApprovalStatus, p.ApprovedBy = record.AnyAuthority, record.ApprovalGiven, &bot
		},
		"weakens the gate": func(r *record.Record) { r.ResumePoints[0].RequiredAuthority = record.AnyAuthority },
		"says it is safe":  func(r *record.Record) { r.ResumePoints[0].SafeToAutoExecute = true },
		"goes elsewhere":   func(r *record.Record) { r.ResumePoints[0].NextSteps = []string{"elsewhere"} },
		"denies": func(r *record.Record) {
			r.ResumePoints[0].ApprovalStatus = record.ApprovalDenied
			r.ResumePoints[0].RequiredAuthority = dag.Agent
			r.ResumePoints[0].ApprovedBy = &bot
		},
		"takes the point": func(r *record.Record) { r.ResumePoints = nil },
		"answers": func(r *record.Record) {
			q := &r.QuestionsForUser[0]
			q.RequiredAuthority, q.Status, q.AnsweredBy = record.AnyAuthority, record.QuestionAnswered, &bot
		},
		"unblocks":             func(r *record.Record) { r.QuestionsForUser[0].BlocksResumePoints = nil },
		"takes the question":   func(r *record.Record) { r.QuestionsForUser = nil },
		"overrides":            func(r *record.Record) { d := &r.Decisions[0]; d.Description, d.MadeBy = "right", cron },
		"lets itself override": func(r *record.Record) { r.Decisions[0].OverridableBy = []dag.Authority{dag.Agent} },
		"takes the decision":   func(r *record.Record) { r.Decisions = nil },
	} {
		b := newBook(t)
		first := gated("a")
		first.Decisions[0].Status = dag.Accepted
		first.Decisions[0].MadeBy = ann
		a := b.create(t, first)
		other := a.Record.Clone()
		other.ID, other.ParentCRHash = "b", a.Record.ContentHash
		forge(other)
		b.create(t, other)
		if err := b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "a", "b", record.PreferB, bot); return err }); !errors.Is(err, record.ErrAuthority) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.Merge(t.Context(), "a", "b", record.PreferB, ann); err != nil {
			t.Errorf("%s, and a person merges: %v", name, err)
		}
	}

	b := branches(t, gated("o"))
	_, err := b.Answer(t.Context(), "b", "q", "yes", ann)
	done(t, err)
	_, err = b.Approve(t.Context(), "b", "p", ann)
	done(t, err)
	_, err = b.Override(t.Context(), "b", "way", "right", "", ann)
	done(t, err)
	b.change(t, "a", func(r *record.Record) { r.Task.Goal = "run" })
	v, err := b.Merge(t.Context(), "a", "b", record.Manual, bot)
	done(t, err)
	r := v.Record
	same(t, "what a person has done", []any{r.QuestionsForUser[0].Answer, r.ResumePoints[0].ApprovalStatus, r.Decisions[0].Description, r.Task.Goal},
		[]any{"yes", "approved", "right", "run"})
}

// What somebody has decided who could stays so, whatever somebody else has who could in another
// record: who may not decide it himself does not choose between the two.
func TestMergeChoosesForNobody(t *testing.T) {
	bob := record.Author{Type: dag.Human, ID: "bob"}
	for name, c := range map[string]struct{ mine, theirs func(*book) error }{
		"an answer": {
			func(b *book) error { _, err := b.Answer(t.Context(), "a", "q", "yes", ann); return err },
			func(b *book) error { _, err := b.Answer(t.Context(), "b", "q", "no", bob); return err },
		},
		"an approval": {
			func(b *book) error {
				_, err := b.Answer(t.Context(), "a", "q", "yes", ann)
				done(t, err)
				_, err = b.Approve(t.Context(), "a", "p", ann)
				return err
			},
			func(b *book) error { _, err := b.Deny(t.Context(), "b", "p", "no", bob); return err },
		},
	} {
		b := branches(t, gated("o"))
		done(t, c.mine(b))
		done(t, c.theirs(b))
		if err := b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "a", "b", record.PreferB, bot); return err }); !errors.Is(err, record.ErrAuthority) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.Merge(t.Context(), "a", "b", record.PreferB, ann); err != nil {
			t.Errorf("%s, and a person merges: %v", name, err)
		}
	}
}

// Of a decision that was tentative anybody brings in what its own maker has made of it since, and
// nobody what another one has in the name of who made it later.
func TestMergeBringsWhatItsMakerMadeOfADecision(t *testing.T) {
	clerk := record.Author{Type: dag.Agent, ID: "clerk"}
	b := branches(t, draft("o"))
	b.change(t, "b", func(r *record.Record) { r.Decisions[0].Description, r.Decisions[0].Status = "right", dag.Accepted })
	v, err := b.Merge(t.Context(), "a", "b", record.PreferB, clerk)
	done(t, err)
	same(t, "decided", []any{v.Record.Decisions[0].Description, v.Record.Decisions[0].MadeBy}, []any{"right", bot})

	b = newBook(t)
	o := b.create(t, draft("o"))
	for id, way := range map[string]string{"a": "right", "b": "back"} {
		r := o.Record.Clone()
		r.ID, r.ParentCRHash = id, o.Record.ContentHash
		d := &r.Decisions[0]
		d.Description, d.Status, d.MadeBy = way, dag.Accepted, clerk
		b.create(t, r)
	}
	if err := b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "a", "b", record.PreferB, bot); return err }); !errors.Is(err, record.ErrAuthority) {
		t.Errorf("in the name of who made it later: %v", err)
	}
}

// An author is who he is by type and id: what an agent decided before it had a name is its own, to
// change and to have brought in.
func TestADecisionIsItsMakersUnderAnyName(t *testing.T) {
	named := bot
	named.Name = "Bot"
	b := branches(t, draft("o"))
	v, err := b.Get(t.Context(), "b")
	done(t, err)
	_, err = b.Update(t.Context(), "b", v.Record.ContentHash, func(r *record.Record) error {
		d := &r.Decisions[0]
		d.Description, d.Status, d.MadeBy = "right", dag.Accepted, named
		return nil
	}, named)
	done(t, err)
	v, err = b.Merge(t.Context(), "a", "b", record.PreferB, record.Author{Type: dag.Agent, ID: "clerk"})
	done(t, err)
	same(t, "decided", []any{v.Record.Decisions[0].Description, v.Record.Decisions[0].MadeBy}, []any{"right", named})
}

// A point that is approved is not taken away by way of the record of another run that has heard of
// it and tells it no more.
func TestMergeTakesNoPointAway(t *testing.T) {
	b := newBook(t)
	first := gated("p")
	first.Source = &record.Source{Run: "p", Seq: 1, Graph: "g"}
	b.create(t, first)
	_, err := b.Answer(t.Context(), "p", "q", "yes", ann)
	done(t, err)
	v, err := b.Approve(t.Context(), "p", "p", ann)
	done(t, err)
	other := v.Record.Clone()
	other.ID, other.ParentCRHash = "q", v.Record.ContentHash
	other.Source = &record.Source{Run: "q", Seq: 1, Graph: "g"}
	b.create(t, other)
	b.change(t, "q", func(r *record.Record) { r.Task.Goal = "run" })
	v, err = b.Merge(t.Context(), "q", "p", record.PreferA, ann)
	done(t, err)
	other = v.Record.Clone()
	other.ID, other.ParentCRHash, other.ResumePoints = "without", v.Record.ContentHash, nil
	b.create(t, other)
	b.change(t, "p", func(r *record.Record) { r.Metadata.Tags = append(r.Metadata.Tags, "seen") })
	if err := b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "p", "without", record.PreferB, bot); return err }); !errors.Is(err, record.ErrAuthority) {
		t.Errorf("an agent: %v", err)
	}
}

// A record of a run that has gone on does not approve of what stands behind a gate.
func TestAdvancePassesNoGate(t *testing.T) {
	b := newBook(t)
	d := inquire(t, b.store, []string{"ask"}, func(ctx context.Context, q *Inquiry) error {
		_, err := dag.Ask[string](ctx, "who", map[string]any{"question": "who?", "authority": dag.Human})
		return err
	})
	_, err := d.Run(t.Context(), "r", nil)
	rests(t, err)
	r := from(t, d, "r", record.Options{})
	b.create(t, r)
	r.Source.Seq++
	p := &r.ResumePoints[0]
	p.RequiredAuthority, p.ApprovalStatus, p.ApprovedBy = record.AnyAuthority, record.ApprovalGiven, &bot
	done(t, r.Seal())
	if err := b.unchanged(t, func() error { _, err := b.Advance(t.Context(), "r", r, bot); return err }); !errors.Is(err, record.ErrAuthority) {
		t.Errorf("it is approved: %v", err)
	}
}

// Nobody but a person speaks for others; who names nobody speaks for himself.
func TestUpdateSpeaksForItsAuthor(t *testing.T) {
	b := newBook(t)
	first := draft("r")
	first.Learnings = []record.Learning{{ID: "hers", Content: "dry", LearnedBy: ann}}
	v := b.create(t, first)
	namesake := record.Author{Type: dag.System, ID: bot.ID} // of one of the two
	for name, change := range map[string]func(*record.Record){
		"learns for another": func(r *record.Record) { r.Learnings = append(r.Learnings, record.Learning{ID: "l", LearnedBy: ann}) },
		"learns for its namesake": func(r *record.Record) {
			r.Learnings = append(r.Learnings, record.Learning{ID: "l", LearnedBy: namesake})
		},
		"changes what she says": func(r *record.Record) { r.Learnings[0].Content = "wet" },
		"takes what she says":   func(r *record.Record) { r.Learnings[0].LearnedBy = bot },
		"decides for another": func(r *record.Record) {
			r.Decisions = append(r.Decisions, record.Decision{ID: "d", Description: "up", Status: dag.Accepted, MadeBy: ann})
		},
	} {
		update := func(by record.Author) error {
			_, err := b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error { change(r); return nil }, by)
			return err
		}
		for _, by := range []record.Author{bot, cron} {
			if err := b.unchanged(t, func() error { return update(by) }); !errors.Is(err, record.ErrAuthority) {
				t.Errorf("%s %s: %v", by, name, err)
			}
		}
	}
	mended, err := b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error {
		r.Learnings[0].Content = "damp"
		r.Learnings = append(r.Learnings, record.Learning{ID: "said", LearnedBy: bot}, record.Learning{ID: "own"})
		return nil
	}, record.Author{Type: dag.Human, ID: "bob"})
	done(t, err)
	same(t, "by a person", ids(slices.Clone(mended.Record.Learnings), func(l record.Learning) string { return l.LearnedBy.ID }), []string{"ann", "bot", "bob"})
}

// A question that needs a person, and was to wait for ever, has not expired: a record that says so
// is brought in by one who may answer it, or by nobody.
func TestNobodyBringsInAnExpiryThatNeverWas(t *testing.T) {
	b := branches(t, gated("o"))
	v, err := b.Get(t.Context(), "a")
	done(t, err)
	other := v.Record.Clone()
	other.ID, other.QuestionsForUser[0].Status = "c", record.QuestionExpired
	b.create(t, other)
	if err := b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "b", "c", record.PreferB, bot); return err }); !errors.Is(err, record.ErrAuthority) {
		t.Errorf("brought in by an agent: %v", err)
	}
	merged, err := b.Merge(t.Context(), "b", "c", record.PreferB, ann)
	done(t, err)
	same(t, "question", merged.Record.QuestionsForUser[0].Status, record.QuestionExpired)
}
