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

// home is a version for a merge over base, from which it goes on. What is told of another run than
// base's, and has not heard what base tells, has taken nothing of it away; and nobody takes away
// what is settled.
func (w *walker) home(ctx context.Context, base, v *Version) (*Version, error) {
	if heard, err := w.knows(ctx, v, base); err != nil {
		return nil, err
	} else if heard {
		return w.settled(ctx, base, v)
	}
	known, err := w.hearing(ctx, v)
	if err != nil {
		return nil, err
	}
	all, err := w.hearing(ctx, base)
	if err != nil {
		return nil, err
	}
	part, err := w.part(ctx, known, all)
	if err != nil {
		return nil, err
	}
	out := *v
	out.Record = v.Record.onto(base.Record, part)
	return &out, nil
}

// part is what there is of all among known: the newest of these versions, or, if there are several
// that have not heard of each other, what they come to together.
func (w *walker) part(ctx context.Context, known, all []*Version) (*Record, error) {
	both := slices.DeleteFunc(all, func(x *Version) bool { return !among(known, x) })
	inner := map[string]bool{} // what another of them has heard
	for _, x := range both {
		heard, err := w.heard(ctx, x)
		if err != nil {
			return nil, err
		}
		for _, y := range heard {
			inner[y.Record.ContentHash] = true
		}
	}
	var newest *Version
	for _, x := range both {
		if inner[x.Record.ContentHash] {
			continue
		}
		if newest != nil {
			var err error
			if x, err = w.home(ctx, newest, x); err != nil {
				return nil, err
			}
		}
		newest = x
	}
	if newest == nil {
		return &Record{}, nil
	}
	return newest.Record, nil
}

// knows reports whether a version has heard all that base tells, from which it goes on. It has, if
// it is of the same run.
func (w *walker) knows(ctx context.Context, v, base *Version) (bool, error) {
	if base == nil || !v.Record.ofAnother(base.Record) {
		return true, nil
	}
	known, err := w.hearing(ctx, v)
	return among(known, base), err
}

func among(all []*Version, v *Version) bool {
	return slices.ContainsFunc(all, func(x *Version) bool { return x.Record.ContentHash == v.Record.ContentHash })
}

// hearing are a version and all that it has heard, nearest first: a parent of the same record or
// run, and of a merge both sides and what they have in common. What a record of another run begins
// with it has not.
func (w *walker) hearing(ctx context.Context, v *Version) ([]*Version, error) {
	all, seen := []*Version{v}, map[string]bool{v.Record.ContentHash: true}
	for i := 0; i < len(all); i++ {
		heard, err := w.heard(ctx, all[i])
		if err != nil {
			return nil, err
		}
		for _, x := range heard {
			if !seen[x.Record.ContentHash] {
				all, seen[x.Record.ContentHash] = append(all, x), true
			}
		}
	}
	return all, nil
}

// heard are the versions of which a version tells all that it has not taken away.
func (w *walker) heard(ctx context.Context, v *Version) ([]*Version, error) {
	all, err := w.parents(ctx, v)
	if err != nil || v.Record.MergedCRHash == "" || len(all) < 2 {
		return all, err
	}
	over, err := w.common(ctx, all[0], all[1])
	if over != nil {
		all = append(all, over)
	}
	return all, err
}

// parents are the parents of which a version tells all that it has not taken away.
func (w *walker) parents(ctx context.Context, v *Version) (all []*Version, err error) {
	for _, hash := range []string{v.Record.ParentCRHash, v.Record.MergedCRHash} {
		if hash == "" {
			continue
		}
		parent, err := w.find(ctx, hash)
		switch {
		case err != nil:
			return nil, err
		case parent == nil, hash == v.Record.ParentCRHash && v.Number == 1 && v.Record.ofAnother(parent.Record):
		default:
			all = append(all, parent)
		}
	}
	return all, nil
}

// ofAnother reports whether a record is of a run, and another record is of none or of another one.
func (r *Record) ofAnother(than *Record) bool {
	return r.Source != nil && (than.Source == nil || than.Source.Run != r.Source.Run)
}

// onto is a record with all that base tells and it does not, but for what it has taken away of the
// part that it has heard.
func (r *Record) onto(base, part *Record) *Record {
	out := r.Clone()
	s, was, known := &out.ExecutionSummary, &base.ExecutionSummary, &part.ExecutionSummary
	s.count(known, was, s)
	heard := words(nil)
	for _, a := range known.Actions {
		heard[say(a)] = true
	}
	s.Actions = append(slices.DeleteFunc(slices.Clone(was.Actions), func(a Action) bool { return heard[say(a)] }), s.Actions...)
	out.Task.SuccessCriteria = union(part.Task.SuccessCriteria, base.Task.SuccessCriteria, out.Task.SuccessCriteria)
	for _, s := range sections {
		s.onto(out, base, part)
	}
	m := &out.Metadata
	m.Tags = union(part.Metadata.Tags, base.Metadata.Tags, m.Tags)
	m.EstimatedRemainingWork = cmp.Or(m.EstimatedRemainingWork, base.Metadata.EstimatedRemainingWork)
	return out
}

// onto puts before the list of out what it lacks of base. Of the part that it has heard it gets
// what base has made of that since, where it has changed nothing, or base has settled it.
func (l *list[T]) onto(out, base, part *Record) {
	own, inBase, known := *l.of(out), index(*l.of(base)), index(*l.of(part))
	var all []T
	for x, has := range pairs(*l.of(base), own) {
		if was := known[idOf(x)]; has == nil && (was == nil || say(x) != say(was)) {
			all = append(all, *x)
		}
	}
	for i := range own {
		x := &own[i]
		is, was := inBase[idOf(x)], known[idOf(x)]
		switch {
		case was == nil: // it is its own
		case say(x) == say(was), is != nil && say(is) != say(was) && l.stays != nil && l.stays(is):
			x = is
		}
		if x != nil {
			all = append(all, *x)
		}
	}
	*l.of(out) = all
}

// follows is a record that is to be merged into one of another run, over base, which is of one too:
// as of the run of that one, which could not go on with its run else.
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

// settled is a version in which all that is settled in base stays as it is, whatever was made of it
// there: who may settle it may not do so again. Only the log may, of what it has told, behind the
// position of base; and that of another run is its own.
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
