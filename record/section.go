package record

import "slices"

// A section is one of the lists of items that a record has. What is done to all of them alike is
// done to each of [sections].
type section interface {
	clone(r *Record) // in place, so that r shares no items with the record it was copied from
	plain(r *Record)
	check(c *checker, r *Record)
	diff(a, b *Record) []Change
	merge(m *merger, out, base, a, b *Record)
	onto(out, base, part *Record)
	heard(out, told, was, is *Record)
	agreed(out *Record, g agreement)
}

// sections are the lists of a record, in the order of its members. A list more needs a line here,
// and a case in idOf.
var sections = []section{
	&list[Decision]{
		name: "decisions", of: func(r *Record) *[]Decision { return &r.Decisions },
		copied: Decision.clone, fill: (*Decision).plain, valid: (*checker).decision,
		settle: settledDecision, lose: withVariants, told: heardDecision,
	},
	&list[Learning]{
		name: "learnings", of: func(r *Record) *[]Learning { return &r.Learnings },
		valid: (*checker).learning,
	},
	&list[Question]{
		name: "questionsForUser", of: func(r *Record) *[]Question { return &r.QuestionsForUser },
		copied: Question.clone, fill: (*Question).plain, valid: (*checker).question,
		settle: over((*Question).over), stays: (*Question).over,
	},
	&list[Blocker]{
		name: "blockers", of: func(r *Record) *[]Blocker { return &r.Blockers },
		valid: (*checker).blocker, settle: over(func(b *Blocker) bool { return b.Resolved }),
	},
	&list[ResumePoint]{
		name: "resumePoints", of: func(r *Record) *[]ResumePoint { return &r.ResumePoints },
		copied: ResumePoint.clone, fill: (*ResumePoint).plain, valid: (*checker).point,
		settle: over((*ResumePoint).over), stays: (*ResumePoint).over,
	},
	&list[ToolEffect]{
		name: "toolEffects", of: func(r *Record) *[]ToolEffect { return &r.ToolEffects },
		copied: ToolEffect.clone, fill: (*ToolEffect).plain, valid: (*checker).effect, united: true,
	},
	&list[Invariant]{name: "invariants", of: func(r *Record) *[]Invariant { return &r.Invariants }},
}

// A list is a section, by what is particular to its items. A function is nil where there is nothing
// particular.
type list[T item] struct {
	name   string                               // as the member is called
	of     func(*Record) *[]T                   // where a record has it
	copied func(T) T                            // a copy that shares no memory
	fill   func(*T)                             // see Record.plain
	valid  func(c *checker, where string, x *T) // tells what is wrong with an item, beside its id
	settle settling[T]                          // without a conflict, what two have changed
	lose   func(kept, other *T)                 // has an item that is kept in a conflict remember the other
	stays  func(*T) bool                        // whether an item is settled for those who have not heard of it
	told   func(told, was, is *T) *T            // see heardDecision; nil is that the log tells what the item is
	united bool                                 // merger.effects merges it, and no item is ever lost
}

func (l *list[T]) clone(r *Record) {
	all := slices.Clone(*l.of(r))
	for i := range all {
		if l.copied != nil {
			all[i] = l.copied(all[i])
		}
	}
	*l.of(r) = all
}

func (l *list[T]) plain(r *Record) {
	filled(l.of(r))
	all := *l.of(r)
	for i := range all {
		if l.fill != nil {
			l.fill(&all[i])
		}
	}
}
