package record

import (
	"cmp"
	"context"
	"slices"
)

// sides are what two versions are merged of, and over what: see level.
func (w *walker) sides(ctx context.Context, base, a, b *Version) (from, left, right *Record, err error) {
	if a, err = w.home(ctx, base, a); err != nil {
		return nil, nil, nil, err
	}
	if b, err = w.home(ctx, base, b); err != nil {
		return nil, nil, nil, err
	}
	from, left, right, err = w.level(ctx, base, a, b)
	if err != nil {
		return nil, nil, nil, err
	}
	return from, left, right.follows(from, left), nil
}

// home is a version for a merge over base, from which it goes on. What is told of another run than base's has never
// known what base tells, and has taken nothing of it away; and nobody takes away what is settled.
func (w *walker) home(ctx context.Context, base, v *Version) (*Version, error) {
	unheard, err := w.unheard(ctx, base, v)
	switch {
	case err != nil:
		return nil, err
	case !unheard:
		return w.settled(ctx, base, v)
	}
	out := *v
	out.Record = v.Record.onto(base.Record)
	return &out, nil
}

// unheard reports whether a version is of another run than base is, and nothing that it says has brought in what base tells: a
// parent of the same record or run has, and a merge, what both of its sides tell and what they have in common. What a record of
// another run begins with has not.
func (w *walker) unheard(ctx context.Context, base, v *Version) (bool, error) {
	if base == nil || !v.Record.ofAnother(base.Record) {
		return false, nil
	}
	seen := map[string]bool{}
	for all := []*Version{v}; len(all) > 0; {
		x := all[0]
		all = all[1:]
		switch hash := x.Record.ContentHash; {
		case hash == base.Record.ContentHash:
			return false, nil
		case seen[hash]:
			continue
		default:
			seen[hash] = true
		}
		heard, err := w.heard(ctx, x)
		if err != nil {
			return false, err
		}
		all = append(all, heard...)
	}
	return true, nil
}

// heard are the versions of which a version tells all that it has not taken away.
func (w *walker) heard(ctx context.Context, v *Version) (all []*Version, err error) {
	if v.Record.ParentCRHash == "" {
		return nil, nil
	}
	parent, err := w.find(ctx, v.Record.ParentCRHash)
	if err != nil || parent == nil {
		return nil, err
	}
	if v.Number > 1 || !v.Record.ofAnother(parent.Record) {
		all = append(all, parent)
	}
	if v.Record.MergedCRHash == "" {
		return all, nil
	}
	merged, err := w.find(ctx, v.Record.MergedCRHash)
	if err != nil || merged == nil {
		return all, err
	}
	over, err := w.common(ctx, parent, merged)
	if all = append(all, merged); over != nil {
		all = append(all, over)
	}
	return all, err
}

// ofAnother reports whether a record is of a run, and another record is of none or of another one.
func (r *Record) ofAnother(than *Record) bool {
	return r.Source != nil && (than.Source == nil || than.Source.Run != r.Source.Run)
}

// onto is a record with all that base tells and it does not.
func (r *Record) onto(base *Record) *Record {
	out := r.Clone()
	s, was := &out.ExecutionSummary, &base.ExecutionSummary
	s.StepsCompleted += was.StepsCompleted
	s.StepsFailed += was.StepsFailed
	s.TokensConsumed += was.TokensConsumed
	s.ElapsedMs += was.ElapsedMs
	s.Actions = slices.Concat(was.Actions, s.Actions)
	out.Task.SuccessCriteria = union(nil, base.Task.SuccessCriteria, out.Task.SuccessCriteria)
	out.Decisions = keepItems(out.Decisions, base.Decisions, nil)
	out.Learnings = keepItems(out.Learnings, base.Learnings, nil)
	out.QuestionsForUser = keepItems(out.QuestionsForUser, base.QuestionsForUser, nil)
	out.Blockers = keepItems(out.Blockers, base.Blockers, nil)
	out.ResumePoints = keepItems(out.ResumePoints, base.ResumePoints, nil)
	out.ToolEffects = keepItems(out.ToolEffects, base.ToolEffects, nil)
	out.Invariants = keepItems(out.Invariants, base.Invariants, nil)
	m := &out.Metadata
	m.Tags = union(nil, base.Metadata.Tags, m.Tags)
	m.EstimatedRemainingWork = cmp.Or(m.EstimatedRemainingWork, base.Metadata.EstimatedRemainingWork)
	return out
}

// follows is a record that is to be merged into one of another run, over base, which is of one too: as of the run of that
// one, which could not go on with its run else.
func (r *Record) follows(base, other *Record) *Record {
	if base == nil || base.Source == nil || other.Source == nil || !r.ofAnother(other) {
		return r
	}
	out := r.Clone()
	if out.Task.ID == out.Source.Run && other.Task.ID == other.Source.Run {
		out.Task.ID = other.Task.ID
	}
	out.Source = pointer(other.Source)
	return out
}

// settled is a version in which all that is settled in base stays as it is, whatever was made of it there: who may settle it
// may not do so again. Only the log may, of what it has told, behind the position of base; and that of another run is its own.
func (w *walker) settled(ctx context.Context, base, v *Version) (*Version, error) {
	if base == nil || v.Record.ofAnother(base.Record) {
		return v, nil
	}
	was, told := base.Record, &Record{}
	if was.Source != nil && v.Record.Source != nil && v.Record.Source.Seq > was.Source.Seq {
		var err error
		if told, err = w.told(ctx, w.chains[base.Record.ID], base.Number); err != nil {
			return nil, err
		}
	}
	out := *v
	out.Record = v.Record.Clone()
	out.Record.QuestionsForUser = put(out.Record.QuestionsForUser, settledOf(was.QuestionsForUser, told.QuestionsForUser, (*Question).over)...)
	out.Record.ResumePoints = put(out.Record.ResumePoints, settledOf(was.ResumePoints, told.ResumePoints, (*ResumePoint).over)...)
	return &out, nil
}

// settledOf are the items that are over, but for those that the log has told.
func settledOf[T item](list, told []T, over func(*T) bool) []T {
	known := index(told)
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !over(&x) || known[idOf(&x)] != nil })
}

func (q *Question) over() bool { return q.Status != QuestionOpen }

func (p *ResumePoint) over() bool { return p.ApprovalStatus != ApprovalPending }
