package record_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// branches are two records that go on from one.
func branches(t *testing.T, o *record.Record) *book {
	t.Helper()
	b := newBook(t)
	v := b.create(t, o)
	for _, id := range []string{"a", "b"} {
		r := v.Record.Clone()
		r.ID, r.ParentCRHash = id, v.Record.ContentHash
		b.create(t, r)
	}
	return b
}

// change updates the last version.
func (b *book) change(t *testing.T, id string, change func(*record.Record)) {
	t.Helper()
	v, err := b.Get(t.Context(), id)
	done(t, err)
	_, err = b.Update(t.Context(), id, v.Record.ContentHash, func(r *record.Record) error { change(r); return nil }, bot)
	done(t, err)
}

// content is what two records have to have in common that were merged of the same.
func content(r *record.Record) string {
	c := r.Clone()
	c.ID, c.ContentHash, c.ParentCRHash, c.MergedCRHash, c.MerkleRoot = "", "", "", "", ""
	c.CreatedBy, c.LastModifiedBy, c.CreatedAt, c.LastModifiedAt = record.Author{}, record.Author{}, 0, 0
	return show(c)
}

// One accepts a decision that the other rejects. Manual tells it and writes nothing; who prefers
// one keeps what the other chose; and which of the two is called a does not matter.
func TestLife14ContestedDecisionIsMerged(t *testing.T) {
	contest := func() *book {
		b := branches(t, draft("o"))
		b.change(t, "a", func(r *record.Record) { r.Decisions[0].Status = dag.Accepted })
		b.change(t, "b", func(r *record.Record) { r.Decisions[0].Status, r.Decisions[0].Rationale = dag.Rejected, "wet" })
		return b
	}
	b := contest()
	err := b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "a", "b", record.Manual, ann); return err })
	var merge *record.MergeError
	if !errors.As(err, &merge) || len(merge.Conflicts) != 1 || merge.Conflicts[0].Section != "decisions" || merge.Conflicts[0].ID != "way" {
		t.Fatalf("manual: %v", err)
	}
	v, err := b.Merge(t.Context(), "a", "b", record.PreferA, ann)
	done(t, err)
	d := v.Record.Decisions[0]
	same(t, "prefer a", []any{d.Status, d.Variants}, []any{dag.Accepted, []record.Variant{{Author: bot, Decision: "left", Rationale: "wet", Status: dag.Rejected}}})
	other, err := b.Get(t.Context(), "b")
	done(t, err)
	same(t, "parents", []any{v.Record.MergedCRHash, v.Number, v.Record.LastModifiedBy}, []any{other.Record.ContentHash, 3, ann})
	if verdict, err := b.Verify(t.Context(), "a"); err != nil || !verdict.Valid {
		t.Errorf("merged it is %+v, %v", verdict, err)
	}

	if told, want := merge.Error(), `record: 1 conflict: decisions way: rationale "short" or "wet", status "accepted" or "rejected": prefer one of the two, or change one`; told != want {
		t.Errorf("told %s", told)
	}
	b = contest()
	mirrored, err := b.Merge(t.Context(), "b", "a", record.PreferB, ann)
	done(t, err)
	if content(mirrored.Record) != content(v.Record) {
		t.Errorf("exchanged it is another:\n%s\n%s", content(v.Record), content(mirrored.Record))
	}
}

// Two that contradict each other in many members, and in texts that begin alike, can be told apart,
// on one line that does not grow with them.
func TestConflictsCanBeToldApart(t *testing.T) {
	long := strings.Repeat("the same, ", 1000)
	a := &record.Record{Learnings: []record.Learning{{ID: "l", Content: long + "wet", Source: "a", Confidence: 1, LearnedBy: ann, LearnedAt: 1}}}
	b := &record.Record{Learnings: []record.Learning{{ID: "l", Content: long + "dry", Source: "b", Confidence: 0, LearnedBy: bot, LearnedAt: 2}}}
	a.Task.Goal, b.Task.Goal = "R&D", "rest"
	for _, id := range []string{"1", "2", "3"} {
		a.Invariants = append(a.Invariants, record.Invariant{ID: id, Description: "a"})
		b.Invariants = append(b.Invariants, record.Invariant{ID: id, Description: "b"})
	}
	_, all, err := record.Merge(nil, a, b, record.Manual)
	done(t, err)
	same(t, "told", ids(all[:2], record.Conflict.String), []string{
		`task goal: "R&D" or "rest"`,
		`learnings l: confidence 1 or 0, content …the same, the same, wet" or …the same, the same, dry", learnedAt 1 or 2, ` +
			`learnedBy {"type":"human","id":"ann"} or {"type":"agent","id":"bot"}, and 1 more`,
	})
	if told := (&record.MergeError{Conflicts: all}).Error(); !strings.Contains(told, "5 conflicts") || !strings.Contains(told, "and 2 more") || len(told) > 1000 {
		t.Errorf("told %s", told)
	}
}

// With an ancestor, or itself, there is nothing to merge. Without anything in common whatever
// differs is a conflict.
func TestLife16MergeWithAnAncestorAndAStranger(t *testing.T) {
	b := branches(t, draft("o"))
	b.change(t, "a", func(r *record.Record) { r.Task.Goal = "run" })
	for _, other := range []string{"o", "a"} {
		before := entries(t, b.store)
		v, err := b.Merge(t.Context(), "a", other, record.Manual, ann)
		if err != nil || v.Number != 2 || entries(t, b.store) != before {
			t.Errorf("with %s: %+v, %v", other, v, err)
		}
	}
	v, err := b.Merge(t.Context(), "o", "a", record.Manual, ann) // it was left behind, and catches up
	if err != nil || v.Number != 2 || v.Record.Task.Goal != "run" {
		t.Errorf("an ancestor with what came of it: %+v, %v", v, err)
	}
	_, err = b.Merge(t.Context(), "a", "b", record.Manual, ann)
	done(t, err)
	before := entries(t, b.store)
	if again, err := b.Merge(t.Context(), "a", "b", record.Manual, ann); err != nil || again.Number != 3 || entries(t, b.store) != before {
		t.Errorf("what was merged is merged again: %+v, %v", again, err)
	}

	stranger := draft("s")
	stranger.Task.Goal, stranger.Decisions[0].Description = "swim", "right"
	stranger.Learnings = []record.Learning{{ID: "l", Content: "wet", LearnedBy: bot}}
	b.create(t, stranger)
	err = b.unchanged(t, func() error { _, err := b.Merge(t.Context(), "b", "s", record.Manual, ann); return err })
	var merge *record.MergeError
	if !errors.As(err, &merge) || len(merge.Conflicts) != 2 {
		t.Errorf("a stranger: %v", err)
	}
}

// What was merged long ago, by way of another record, is there, also if the two have something in
// common that is nearer: steps counted once more, and what was taken away came back.
func TestMergeWithAnAncestorThatIsFarAway(t *testing.T) {
	for _, s := range strategies {
		b := branches(t, draft("o"))
		o, err := b.Get(t.Context(), "o")
		done(t, err)
		b.branch(t, "c", o.Record, o)
		b.change(t, "b", func(r *record.Record) {
			r.ExecutionSummary.StepsCompleted++
			r.Learnings = append(r.Learnings, record.Learning{ID: "b", Content: "b", LearnedBy: bot})
		})
		v, err := b.Merge(t.Context(), "c", "b", s, ann)
		done(t, err)
		for _, what := range []string{"x", "y", "z"} {
			v = b.learn(t, v, what)
		}
		v, err = b.Merge(t.Context(), "a", "c", s, ann)
		done(t, err)
		again, err := b.Merge(t.Context(), "a", "b", s, ann)
		done(t, err)
		same(t, string(s), []int{again.Number, again.Record.ExecutionSummary.StepsCompleted}, []int{v.Number, v.Record.ExecutionSummary.StepsCompleted})
		b.change(t, "a", func(r *record.Record) { r.Learnings = r.Learnings[1:] }) // what b had learned
		b.change(t, "b", func(r *record.Record) { r.ExecutionSummary.StepsCompleted += 10 })
		again, err = b.Merge(t.Context(), "a", "b", s, ann)
		done(t, err)
		same(t, "since", append(tells(again.Record), fmt.Sprint(again.Record.ExecutionSummary.StepsCompleted)),
			[]string{"decision way", "learning x", "learning y", "learning z", "11"})
	}
}

// Of two ancestors that are as near, the one of the smallest hash counts, whichever of the two
// records is merged into the other.
func TestOfTwoAncestorsTheSmallerHashCounts(t *testing.T) {
	merged := func(into, from string) (goal, want string) {
		b := branches(t, draft("o")) // a walks
		b.change(t, "b", func(r *record.Record) { r.Task.Goal = "run" })
		hash := map[string]string{}
		for id, parent := range map[string]string{"c": "a", "d": "b"} {
			v, err := b.Get(t.Context(), parent)
			done(t, err)
			r := v.Record.Clone()
			r.ID, r.ParentCRHash, hash[parent] = id, v.Record.ContentHash, v.Record.ContentHash
			b.create(t, r)
		}
		for _, id := range []string{"c", "d"} {
			b.change(t, id, func(r *record.Record) { r.Metadata.Tags = []string{id} })
		}
		_, err := b.Merge(t.Context(), "c", "b", record.Manual, ann)
		done(t, err)
		_, err = b.Merge(t.Context(), "d", "a", record.Manual, ann)
		done(t, err)
		b.change(t, "c", func(r *record.Record) { r.Task.Goal = "walk" }) // d still runs
		v, err := b.Merge(t.Context(), into, from, record.Manual, ann)
		done(t, err)
		if want = "walk"; hash["a"] < hash["b"] {
			want = "run" // which d has changed
		}
		return v.Record.Task.Goal, want
	}
	for _, of := range [][2]string{{"c", "d"}, {"d", "c"}} {
		if goal, want := merged(of[0], of[1]); goal != want {
			t.Errorf("%s merged into %s: it is to %s, and not to %s", of[1], of[0], goal, want)
		}
	}
}

// The versions that one has gone on from are found over merges and over records, nearest first.
func TestAncestors(t *testing.T) {
	b := branches(t, draft("o"))
	b.change(t, "a", func(r *record.Record) { r.Task.Goal = "run" })
	b.change(t, "b", func(r *record.Record) { r.Metadata.Tags = []string{"x"} })
	v, err := b.Merge(t.Context(), "a", "b", record.Manual, ann)
	done(t, err)
	all, err := b.Ancestors(t.Context(), v.Record.ContentHash)
	done(t, err)
	same(t, "ancestors", ids(all, func(v record.Version) string { return fmt.Sprint(v.Record.ID, v.Number) }), []string{"a2", "b2", "a1", "b1", "o1"})
}

// A shredder is a store of which a run is deleted behind each listing.
type shredder struct {
	*memory.Store
	t   *testing.T
	run string
}

func (s *shredder) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	all, err := s.Store.List(ctx, f)
	if err := s.Delete(ctx, s.run); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
		s.t.Error(err)
	}
	return all, err
}

// A record that is deleted while another one is looked for is not missed.
func TestGetByHashBesideADelete(t *testing.T) {
	b := newBook(t)
	v, err := b.Create(t.Context(), draft("a"), ann)
	done(t, err)
	_, err = b.Create(t.Context(), draft("b"), ann)
	done(t, err)
	found, err := ledgerOver(t, &shredder{b.store, t, "pawl.record/b"}, time.Now).GetByHash(t.Context(), v.Record.ContentHash)
	if err != nil || found.Record.ID != "a" {
		t.Errorf("%+v, %v", found, err)
	}
}

// A diff tells what changed, item by item and field by field.
func TestDiffTellsWhatChanged(t *testing.T) {
	b := branches(t, asks("o", record.ResumePoint{}, 0))
	b.change(t, "a", func(r *record.Record) {
		r.Task.Goal = "run"
		r.Learnings = append(r.Learnings, record.Learning{ID: "l", Content: "wet", LearnedBy: bot})
	})
	_, err := b.Skip(t.Context(), "a", "q", ann)
	done(t, err)
	changes, err := b.Diff(t.Context(), "o", "a")
	done(t, err)
	same(t, "changes", ids(changes, record.Change.String), []string{
		`task: goal "walk", now "run"`,
		`learnings l: new: {"id":"l","content":"wet","source":"","confidence":0,"learnedBy":{"type":"agent","id":"bot"},"learnedAt":0}`,
		`questionsForUser q: answeredAt null, now 1000000`,
		`questionsForUser q: answeredBy null, now {"type":"human","id":"ann"}`,
		`questionsForUser q: status "open", now "skipped"`,
	})
	back, err := b.Diff(t.Context(), "a", "o")
	done(t, err)
	same(t, "back", []any{len(back), back[1].String()[:16]}, []any{5, "learnings l: gon"})
	if none, err := b.Diff(t.Context(), "o", "b"); err != nil || none != nil {
		t.Errorf("of the same: %v, %v", none, err)
	}
}

// some makes a record of a few items, of which another may have the same. draw draws numbers below
// n.
func some(draw func(n int) int) *record.Record {
	x := &record.Record{ID: "r", Version: record.SchemaVersion, CreatedBy: bot, LastModifiedBy: bot}
	word := func(words ...string) string { return words[draw(len(words))] }
	x.Task = record.Task{ID: "t", Goal: word("walk", "run"), Status: record.TaskStatus(word("in-progress", "completed", "failed", "blocked"))}
	x.Metadata.Priority = record.Priority(word("low", "high"))
	x.ExecutionSummary.StepsCompleted = draw(5)
	if draw(4) == 1 {
		x.Source = &record.Source{Run: "r", Seq: uint64(draw(3))}
	}
	for _, id := range []string{"1", "2", "3"} {
		if draw(3) > 0 {
			d := record.Decision{ID: id, Description: word("left", "right"), Status: dag.DecisionStatus(word("tentative", "accepted", "rejected", "contested")), MadeBy: bot}
			if draw(3) == 0 {
				d.Variants = []record.Variant{{Author: ann, Decision: word("up", "down")}}
			}
			x.Decisions = append(x.Decisions, d)
		}
		if draw(3) > 0 {
			x.QuestionsForUser = append(x.QuestionsForUser, record.Question{ID: id, Type: record.AskQuestion, Status: record.QuestionStatus(word("open", "answered", "skipped")),
				Answer: word("", "yes"), Priority: record.PriorityLow})
		}
		if draw(3) > 0 {
			x.ResumePoints = append(x.ResumePoints, record.ResumePoint{ID: id, RequiredAuthority: dag.Human, OnTimeout: record.TimeoutAbort,
				ApprovalStatus: record.ApprovalStatus(word("pending", "approved", "denied")), ApprovedBy: &ann})
		}
		if draw(2) > 0 {
			x.ToolEffects = append(x.ToolEffects, record.ToolEffect{ID: id, ToolName: "t", Status: record.EffectStatus(word("done", "in-doubt", "not-done")),
				Outputs: json.RawMessage(word(`{"value":1}`, `{"value":2}`))})
		}
		if draw(2) > 0 {
			x.Learnings = append(x.Learnings, record.Learning{ID: id, Content: word("wet", "dry"), LearnedBy: bot})
			x.Metadata.Tags = append(x.Metadata.Tags, word("x", "y", "z")+id)
			x.ExecutionSummary.Actions = append(x.ExecutionSummary.Actions, record.Action{Description: word("go", "stop"), Timestamp: int64(draw(3)), Outcome: record.OutcomeSuccess})
		}
	}
	return x
}

// An effect is never dropped, nor said not to have happened after all, also if only one of the two
// records has changed, or the other one nothing but this; that one has begun again counts.
func TestMergeDropsNoEffect(t *testing.T) {
	with := func(goal string, status ...record.EffectStatus) *record.Record {
		r := &record.Record{Task: record.Task{Goal: goal}}
		for _, s := range status {
			r.ToolEffects = append(r.ToolEffects, record.ToolEffect{ID: "e", Status: s})
		}
		return r
	}
	for _, goal := range []string{"walk", "run"} {
		for name, of := range map[string]struct {
			was, now []record.EffectStatus
			want     []record.EffectStatus
		}{
			"it is dropped":            {[]record.EffectStatus{"done"}, nil, []record.EffectStatus{"done"}},
			"it is said to be undone":  {[]record.EffectStatus{"done"}, []record.EffectStatus{"not-done"}, []record.EffectStatus{"done", "not-done"}},
			"it is doubted":            {[]record.EffectStatus{"lost"}, []record.EffectStatus{"in-doubt"}, []record.EffectStatus{"lost"}},
			"it is begun again":        {[]record.EffectStatus{"not-done"}, []record.EffectStatus{"in-doubt"}, []record.EffectStatus{"in-doubt"}},
			"it is found out about":    {[]record.EffectStatus{"in-doubt"}, []record.EffectStatus{"not-done"}, []record.EffectStatus{"not-done"}},
			"it happens after a while": {[]record.EffectStatus{"not-done"}, []record.EffectStatus{"done"}, []record.EffectStatus{"done"}},
		} {
			base, a, b := with("walk", of.was...), with(goal, of.was...), with("walk", of.now...)
			for _, s := range []record.Strategy{record.PreferA, record.PreferB} {
				ab, _, err := record.Merge(base, a, b, s)
				done(t, err)
				ba, _, err := record.Merge(base, b, a, s)
				done(t, err)
				for _, m := range []*record.Record{ab, ba} {
					got := ids(m.ToolEffects, func(e record.ToolEffect) string { return string(e.Status) })
					slices.Sort(got)
					same(t, name+", "+goal, got, of.want)
				}
			}
		}
	}
}

// What is merged says that it is the version of the record that a is, whatever is taken of b.
func TestMergeHasTheIdentityOfA(t *testing.T) {
	one := func(id, goal string) *record.Record {
		r := draft(id)
		r.Task.Goal, r.ParentCRHash, r.LastModifiedBy = goal, strings.Repeat(id, 64), record.Author{Type: dag.Agent, ID: id}
		return r
	}
	for _, goal := range []string{"walk", "run"} {
		m, _, err := record.Merge(one("0", "walk"), one("a", goal), one("b", "swim"), record.PreferA)
		done(t, err)
		same(t, goal, []string{m.ID, m.ParentCRHash[:1], m.LastModifiedBy.ID}, []string{"a", "a", "a"})
	}
}

// The laws of merging, over generated records: what was not changed is not touched, the two can
// be exchanged with the strategy, no effect is lost, nothing that is over comes to be open again,
// conflicts are the same whoever is preferred, and what comes of it is a record.
func TestLawsOfMerge(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		laws(t, fmt.Sprint("seed ", seed), some(r.IntN), some(r.IntN), some(r.IntN), seed%5 == 0)
	}
}

func laws(t *testing.T, name string, o, a, b *record.Record, strangers bool) {
	t.Helper()
	if strangers {
		o = nil
	}
	merge := func(o, a, b *record.Record, s record.Strategy) *record.Record {
		t.Helper()
		m, _, err := record.Merge(o, a, b, s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return m
	}
	before := show([]any{o, a, b})
	ab, ba := merge(o, a, b, record.PreferA), merge(o, b, a, record.PreferB)
	if content(ab) != content(ba) {
		t.Errorf("%s: exchanged it is another:\n%s\n%s", name, content(ab), content(ba))
	}
	if show([]any{o, a, b}) != before {
		t.Errorf("%s: what was merged has changed", name)
	}
	equal := func(what string, got, want *record.Record) {
		t.Helper()
		want = want.Clone()
		want.ToolEffects = got.ToolEffects // of which there may be more
		if changes, err := record.Diff(want, got); err != nil || len(changes) > 0 {
			t.Errorf("%s: %s: %v, %v", name, what, changes, err)
		}
	}
	equal("with itself", merge(o, a, a, record.Manual), a)
	if o != nil {
		equal("with its ancestor", merge(o, a, o, record.PreferA), a)
		equal("of its ancestor", merge(o, o, a, record.PreferB), a)
	}
	for _, x := range []*record.Record{o, a, b} {
		if x == nil {
			continue
		}
		for _, e := range x.ToolEffects {
			if x != o && e.Status != record.EffectInDoubt && (o == nil || !told(o, e)) && !told(ab, e) {
				t.Errorf("%s: the effect %s is lost in %s", name, show(e), show(ab.ToolEffects))
			}
			if !slices.ContainsFunc(ab.ToolEffects, func(m record.ToolEffect) bool { return m.ID == e.ID }) {
				t.Errorf("%s: nothing is told of effect %s", name, e.ID)
			}
			if x != o && e.Status == record.EffectDone && !slices.ContainsFunc(ab.ToolEffects, func(m record.ToolEffect) bool {
				return m.Status == record.EffectDone && (m.ID == e.ID || strings.HasPrefix(m.ID, e.ID+"~"))
			}) {
				t.Errorf("%s: effect %s has not happened any more", name, e.ID)
			}
		}
	}
	manual, conflicts, err := record.Merge(o, a, b, record.Manual)
	if _, others, _ := record.Merge(o, a, b, record.PreferB); err != nil || (manual == nil) != (len(conflicts) > 0) || show(conflicts) != show(others) {
		t.Errorf("%s: %d conflicts, %d with a strategy, %v", name, len(conflicts), len(others), err)
	}
	if manual != nil {
		equal("without conflicts", manual, ab)
	}
	if err := ab.Seal(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// told reports whether a record tells all of an effect, under whichever id.
func told(r *record.Record, e record.ToolEffect) bool {
	return slices.ContainsFunc(r.ToolEffects, func(m record.ToolEffect) bool {
		m.ID = e.ID
		m.Inputs, e.Inputs, m.SideEffects, e.SideEffects = nil, nil, nil, nil
		return show(m) == show(e)
	})
}

// Whatever three records say, the laws hold of them. A record is drawn from the digits of a number,
// and not read from JSON: of a long input the fuzzer would try for a minute to make a shorter one.
func FuzzMerge(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		f.Add(r.Uint64(), r.Uint64(), r.Uint64())
	}
	f.Fuzz(func(t *testing.T, o, a, b uint64) {
		laws(t, "fuzzed", some(digits(o)), some(digits(a)), some(digits(b)), false)
	})
}

// digits draws from the digits of a number, and 0 once it has no more.
func digits(number uint64) func(n int) int {
	return func(n int) int {
		drawn := number % uint64(n)
		number /= uint64(n)
		return int(drawn)
	}
}

// What comes behind a merge has one parent, whatever wrote it.
func TestVersionsBehindAMergeHaveOneParent(t *testing.T) {
	for name, write := range map[string]func(*book, *record.Version) (*record.Version, error){
		"Update": func(b *book, v *record.Version) (*record.Version, error) { return b.learn(t, v, "since"), nil },
		"Override": func(b *book, v *record.Version) (*record.Version, error) {
			return b.Override(t.Context(), v.Record.ID, "way", "straight", "shorter", ann)
		},
		"Answer": func(b *book, v *record.Version) (*record.Version, error) {
			return b.Answer(t.Context(), v.Record.ID, "q", "yes", ann)
		},
		"Expire": func(b *book, v *record.Version) (*record.Version, error) {
			b.now = time.UnixMilli(3_000_000)
			return b.Expire(t.Context(), v.Record.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := branches(t, asks("o", record.ResumePoint{}, 2_000_000))
			for _, id := range []string{"a", "b"} {
				v, err := b.Get(t.Context(), id)
				done(t, err)
				b.learn(t, v, "of "+id)
			}
			merged, err := b.Merge(t.Context(), "a", "b", record.PreferA, ann)
			done(t, err)
			if merged.Record.MergedCRHash == "" {
				t.Fatal("the merge has one parent")
			}
			next, err := write(b, merged)
			done(t, err)
			same(t, "parents", []any{next.Number, next.Record.ParentCRHash, next.Record.MergedCRHash}, []any{merged.Number + 1, merged.Record.ContentHash, ""})
		})
	}
}

// Two records of different runs contradict each other about that, whichever has come further.
func TestMergeOfTwoRuns(t *testing.T) {
	of := func(run string, seq uint64) *record.Record {
		r := draft("r")
		r.Source = &record.Source{Run: run, Seq: seq}
		return r
	}
	a, b := of("one", 3), of("other", 7)
	m, conflicts, err := record.Merge(draft("r"), a, b, record.Manual)
	if err != nil || m != nil || len(conflicts) != 1 || conflicts[0].Section != "source" {
		t.Errorf("by hand: %s, %v, %v", show(m), conflicts, err)
	}
	for s, want := range map[record.Strategy]string{record.PreferA: "one", record.PreferB: "other"} {
		if m, _, err := record.Merge(draft("r"), a, b, s); err != nil || m.Source.Run != want {
			t.Errorf("%s: %s, %v", s, show(m), err)
		}
	}
}

// An effect that two tell otherwise is kept once under an id of its own, however often they are
// merged.
func TestMergeKeepsTheOtherEffectOnce(t *testing.T) {
	of := func(output string) *record.Record {
		r := draft("r")
		r.ToolEffects = []record.ToolEffect{{ID: "e", ToolName: "t", Inputs: json.RawMessage("{}"), Outputs: json.RawMessage(output), Status: record.EffectDone}}
		return r
	}
	a, b := of(`{"n":1}`), of(`{"n":2}`)
	for range 3 {
		m, _, err := record.Merge(draft("r"), a, b, record.PreferA)
		done(t, err)
		if len(m.ToolEffects) != 2 || m.ToolEffects[0].ID != "e" || !strings.HasPrefix(m.ToolEffects[1].ID, "e~") {
			t.Fatalf("the effects are %s", show(m.ToolEffects))
		}
		a = m
	}
}

// What is decided is none of its own variants, though the other record has it as one.
func TestMergeKeepsNoVariantOfWhatIsDecided(t *testing.T) {
	b := branches(t, draft("o"))
	for _, id := range []string{"a", "b"} {
		b.change(t, id, func(r *record.Record) { r.Decisions[0].Status = dag.Accepted })
	}
	_, err := b.Override(t.Context(), "b", "way", "right", "dry", ann)
	done(t, err)
	v, err := b.Merge(t.Context(), "a", "b", record.PreferA, ann)
	done(t, err)
	d := v.Record.Decisions[0]
	same(t, "the decision", []any{d.Description, d.Variants}, []any{"left", []record.Variant{{Author: ann, Decision: "right", Rationale: "dry", Status: dag.Accepted}}})
}
