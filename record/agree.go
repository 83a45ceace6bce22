package record

// An agreement is of two records that stand at one position of a log, which has told the same to
// both. What it told since somebody contradicted it in one of them, only the other knows.
type agreement struct {
	first        *Record // what it had told to what they have in common
	one, left    *Record // what it has told to one of them, as far as that knows, and what that says
	other, right *Record
}

// told is what the log has told by there, as far as the two know together. It is the same if they
// are exchanged.
func (g agreement) told() *Record {
	out := g.one.Clone()
	out.Task.ID = agreed(g, func(r *Record) string { return r.Task.ID })
	out.Task.Goal = agreed(g, func(r *Record) string { return r.Task.Goal })
	out.Task.SuccessCriteria = union(g.first.Task.SuccessCriteria, g.one.Task.SuccessCriteria, g.other.Task.SuccessCriteria)
	out.Task.setProgress(agreed(g, func(r *Record) progress { return r.Task.progress() }))
	for _, s := range sections {
		s.agreed(out, g)
	}
	out.Metadata.Tags = union(g.first.Metadata.Tags, g.one.Metadata.Tags, g.other.Metadata.Tags)
	out.Metadata.Priority = agreed(g, func(r *Record) Priority { return r.Metadata.Priority })
	out.Metadata.EstimatedRemainingWork = agreed(g, func(r *Record) string { return r.Metadata.EstimatedRemainingWork })
	return out
}

// agreed is what the log has told of a value.
func agreed[T any](g agreement, of func(*Record) T) (told T) {
	p := func(r *Record) *T { v := of(r); return &v }
	if v := toldBoth(p(g.first), p(g.one), p(g.left), p(g.other), p(g.right)); v != nil {
		told = *v
	}
	return told
}

func (l *list[T]) agreed(out *Record, g agreement) {
	in := func(r *Record) map[string]*T { return index(*l.of(r)) }
	first, one, left, other, right := in(g.first), in(g.one), in(g.left), in(g.other), in(g.right)
	told := []T{}
	for _, id := range order(nil, *l.of(g.one), *l.of(g.other)) {
		if v := toldBoth(first[id], one[id], left[id], other[id], right[id]); v != nil {
			told = append(told, *v)
		}
	}
	*l.of(out) = told
}

// toldBoth is what the log has told of a value or an item, nil if that is nothing. Which says what
// it was told knows; of two that both don't, the one that was told something later. If both do, and
// say otherwise, it was written into one of them.
func toldBoth[T any](first, one, left, other, right *T) *T {
	x, y := bare(one), bare(other)
	switch knows, too := x == bare(left), y == bare(right); {
	case x == y && say(one) <= say(other):
		return one
	case x == y:
		return other
	case knows && too:
		return nil
	case knows:
		return one
	case too, x == bare(first):
		return other
	case y == bare(first), x < y:
		return one
	}
	return other
}

// bare is what a value says, of a decision without its variants: those of people are none of the
// log's.
func bare[T any](v *T) string {
	if d, decides := any(v).(*Decision); decides && d != nil {
		c := d.clone()
		c.Variants = nil
		return say(c)
	}
	return say(v)
}
