package record

import (
	"cmp"
	"context"
	"slices"
)

// told is what the log of the run had told by version n of a chain, without what people have made
// of it: what Advance goes on from. No version has it alone, so it is found in what each Advance
// changed.
func (w *walker) told(ctx context.Context, c *chain, n int) (*Record, error) {
	var told *Record
	from := 1
	for i := n - 1; i >= 1; i-- { // a merge brought in what the log had told to another record
		if c.all[i].Record.MergedCRHash == "" || !c.heard(i) {
			continue
		}
		v, err := w.find(ctx, c.all[i].Record.MergedCRHash)
		if err != nil && !cantBeRead(err) {
			return nil, err
		}
		if err != nil || v == nil || v.Unverified != "" {
			continue // all that it brought in counts as told
		}
		if told, err = w.told(ctx, w.chains[v.Record.ID], v.Number); err != nil {
			return nil, err
		}
		from = i + 1
		break
	}
	if told == nil {
		var err error
		if told, err = w.first(ctx, c); err != nil {
			return nil, err
		}
	}
	for i := from; i < n; i++ {
		if c.heard(i) {
			told = heard(cloned(told), cloned(c.all[i-1].Record), cloned(c.all[i].Record))
		}
	}
	return told, nil
}

// first is what the log had told by the first version of a chain. If that goes on from a version of
// another record, at the position of the log that it tells of, people may have been at it there.
func (w *walker) first(ctx context.Context, c *chain) (*Record, error) {
	r := c.all[0].Record
	if r.ParentCRHash == "" || r.Source == nil {
		return r, nil
	}
	v, err := w.find(ctx, r.ParentCRHash)
	switch {
	case err != nil && !cantBeRead(err):
		return nil, err
	case err != nil || v == nil || v.Unverified != "" || say(v.Record.Source) != say(r.Source):
		return r, nil // all of it counts as told
	}
	return w.told(ctx, w.chains[v.Record.ID], v.Number)
}

// heard reports whether a version tells of another position of the log than the one before it.
func (c *chain) heard(i int) bool {
	return say(c.all[i-1].Record.Source) != say(c.all[i].Record.Source)
}

// heard is what the log tells in a version, by what it had told in the one before: what differs
// between the two.
func heard(told, was, is *Record) *Record {
	out := is.Clone()
	t, w := &told.Task, &was.Task
	out.Task.ID, out.Task.Goal = since(t.ID, w.ID, is.Task.ID), since(t.Goal, w.Goal, is.Task.Goal)
	out.Task.SuccessCriteria = union(w.SuccessCriteria, t.SuccessCriteria, is.Task.SuccessCriteria)
	out.Task.setProgress(since(t.progress(), w.progress(), is.Task.progress()))
	s, x, y := &out.ExecutionSummary, &told.ExecutionSummary, &was.ExecutionSummary
	s.StepsCompleted += x.StepsCompleted - y.StepsCompleted
	s.StepsFailed += x.StepsFailed - y.StepsFailed
	s.TokensConsumed += x.TokensConsumed - y.TokensConsumed
	s.ElapsedMs += x.ElapsedMs - y.ElapsedMs
	for _, s := range sections {
		s.heard(out, told, was, is)
	}
	m, v := &told.Metadata, &was.Metadata
	out.Metadata.Tags = union(v.Tags, m.Tags, is.Metadata.Tags)
	out.Metadata.Priority = since(m.Priority, v.Priority, is.Metadata.Priority)
	out.Metadata.EstimatedRemainingWork = since(m.EstimatedRemainingWork, v.EstimatedRemainingWork, is.Metadata.EstimatedRemainingWork)
	return out
}

// since is what was told of a value last: what it has become, if it is another one.
func since[T comparable](told, was, is T) T {
	if is == was {
		return told
	}
	return is
}

// heard is heard of a list. What has changed the log tells as it has become, unless somebody else
// has said something of it, and told knows better.
func (l *list[T]) heard(out, told, was, is *Record) {
	all := []T{}
	inTold, inWas, inIs := index(*l.of(told)), index(*l.of(was)), index(*l.of(is))
	for _, id := range order(nil, *l.of(told), *l.of(is)) {
		x, y, z := inTold[id], inWas[id], inIs[id]
		switch before := say(y); {
		case before == say(z):
		case l.told == nil || y == nil || z == nil || say(x) == before:
			x = z
		default:
			x = l.told(x, y, z)
		}
		if x != nil {
			all = append(all, *x)
		}
	}
	*l.of(out) = all
}

// heardDecision is what was told of a decision that people have changed. If they were contradicted
// they have got a variant more, and nothing else of it is known; else it is the log's, with
// variants of theirs.
func heardDecision(told, was, is *Decision) *Decision {
	if bare(was) == bare(is) {
		return told
	}
	var known []Variant
	if told != nil {
		known = append(slices.Clone(told.Variants), told.variant())
	}
	theirs := append(slices.Clone(was.Variants), was.variant())
	b := is.clone()
	b.Variants = slices.DeleteFunc(slices.Clone(is.Variants), func(v Variant) bool {
		return slices.Contains(theirs, v) && !slices.Contains(known, v)
	})
	return &b
}

// advanced is what a record becomes with what the log tells now, by what it had told to it: how
// questions ended, it knows.
func advanced(told, r, fresh *Record) (*Record, error) {
	next, _, err := Merge(told, r, fresh, PreferA)
	if err != nil {
		return nil, err
	}
	next.QuestionsForUser = put(next.QuestionsForUser, settledOf(fresh.Clone().QuestionsForUser, nil, (*Question).over)...)
	next.leave(told, fresh)
	return next, nil
}

// keeping is what a trimmed log tells, and what it had told that it may have told of what is gone.
func (r *Record) keeping(told *Record) *Record {
	if r.Source.First == 0 {
		return r
	}
	out := r.Clone()
	out.Task.StartedAt = cmp.Or(r.Task.StartedAt, told.Task.StartedAt)
	out.Decisions = keepItems(out.Decisions, told.Decisions, nil)
	out.Learnings = keepItems(out.Learnings, told.Learnings, nil)
	out.Invariants = keepItems(out.Invariants, told.Invariants, nil)
	out.QuestionsForUser = keepItems(out.QuestionsForUser, told.QuestionsForUser, (*Question).over)
	out.Blockers = keepItems(out.Blockers, told.Blockers, func(b *Blocker) bool { return b.ReportedBy != Automatic })
	return out
}

// keepItems puts before a list what it lacks of what was told, if it is to be kept; nil is all.
func keepItems[T item](list, told []T, keeps func(*T) bool) []T {
	var kept []T
	for x, has := range pairs(told, list) {
		if has == nil && (keeps == nil || keeps(x)) {
			kept = append(kept, *x)
		}
	}
	return append(kept, list...)
}

// leave takes away the resume points that the run has left behind.
func (r *Record) leave(told, fresh *Record) {
	was, is := index(told.ResumePoints), index(fresh.ResumePoints)
	r.ResumePoints = slices.DeleteFunc(r.ResumePoints, func(p ResumePoint) bool { return was[p.ID] != nil && is[p.ID] == nil })
}

// level are the records that two versions are merged of, and what they are merged over: their
// common ancestor, nil if there is none. Of one run, what the log had told to the one that is
// behind the other has heard as well: they are merged over what the ancestor would be there.
func (w *walker) level(ctx context.Context, base, a, b *Version) (from, left, right *Record, err error) {
	from, left, right = recordOf(base), a.Record, b.Record
	switch {
	case left.Source == nil || right.Source == nil || left.Source.Run != right.Source.Run,
		from != nil && from.ContentHash == left.ContentHash: // it catches up with what came of it
		return from, left, right, nil
	}
	tell := func(v *Version) *Record {
		if err != nil || v == nil {
			return &Record{}
		}
		var told *Record
		told, err = w.told(ctx, w.chains[v.Record.ID], v.Number)
		return told
	}
	first, one, other := tell(base), tell(a), tell(b)
	if err != nil {
		return nil, nil, nil, err
	}
	var behind *Record
	switch {
	case left.Source.Seq > right.Source.Seq:
		behind, right = other, right.Clone()
		right.leave(other, one)
	case left.Source.Seq < right.Source.Seq:
		behind, left = one, left.Clone()
		left.leave(one, other)
	default:
		behind = agreement{cloned(first), cloned(one), cloned(left), cloned(other), cloned(right)}.told()
	}
	from, err = advanced(first, cloned(from), behind)
	return from, left, right, err
}

// recordOf is the record of a version, nil if there is none.
func recordOf(v *Version) *Record {
	if v == nil {
		return nil
	}
	return v.Record
}
