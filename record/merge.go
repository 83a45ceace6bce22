package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/dag"
)

// A Strategy says who is right where two records contradict each other.
type Strategy string

// The strategies.
const (
	PreferA Strategy = "prefer-a"
	PreferB Strategy = "prefer-b"
	Manual  Strategy = "manual" // nobody is: the conflicts are told
)

// A Conflict is where two records contradict each other.
type Conflict struct {
	Section string          // as the member is called: decisions
	ID      string          // of the item; "" if the section has none
	Field   string          // of a section without items: goal
	A, B    json.RawMessage // null if it was taken away
}

// String tells the conflict on one line, by the members that differ:
// decisions way: status "accepted" or "rejected".
func (c Conflict) String() string {
	const most = 4 // members
	where := strings.TrimRight(c.Section+" "+cmp.Or(c.ID, c.Field), " ")
	differ := fields("", "", c.A, c.B)
	if len(differ) == 0 || len(members(c.A)) == 0 || len(members(c.B)) == 0 {
		a, b := apart(c.A, c.B)
		return fmt.Sprintf("%s: %s or %s", where, a, b)
	}
	var told []string
	for _, d := range differ[:min(len(differ), most)] {
		a, b := apart(d.Before, d.After)
		told = append(told, fmt.Sprintf("%s %s or %s", d.Field, a, b))
	}
	if more := len(differ) - most; more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	return where + ": " + strings.Join(told, ", ")
}

// apart is brief of both, from shortly before where they differ if they begin alike for long.
func apart(a, b []byte) (string, string) {
	same, shown := 0, 20
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if same < 3*shown {
		return brief(a), brief(b)
	}
	from := func(x []byte) string { return "…" + strings.ToValidUTF8(brief(x[same-shown:]), "") }
	return from(a), from(b)
}

func brief(raw []byte) string {
	const most = 120
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "…"
}

// Merge merges two records that have gone on from base, which is nil if they have nothing in
// common. What only one of them has changed is taken from that one. Where both have changed
// something in different ways the strategy says who is right; with Manual the conflicts are
// returned and no record. Some things are no conflict:
//
//   - What is over beats what is not: an answer an open question, an approval a pending point, a
//     completed task one that goes on, an accepted or rejected decision a tentative one.
//   - A decision keeps the other one's choice as a variant. An author who only has variants has
//     chosen nothing.
//   - An effect is never dropped. If the two tell different things of one, both are kept, the other
//     under an id of its own.
//   - Counts add up, and lists of words and actions are joined.
//
// The record has the identity of a and is not sealed. The records that are given don't change.
// Merge(base, a, b, PreferA) has the content of Merge(base, b, a, PreferB), identity apart. The
// error is an [*ArgumentError].
func Merge(base, a, b *Record, s Strategy) (*Record, []Conflict, error) {
	switch {
	case a == nil || b == nil:
		return nil, nil, &ArgumentError{"Merge", "record", "is nil: give two"}
	case s != PreferA && s != PreferB && s != Manual:
		return nil, nil, &ArgumentError{"Merge", "strategy", fmt.Sprintf("is %q: use prefer-a, prefer-b or manual", s)}
	}
	m := merger{s: s}
	out := m.records(cloned(base), cloned(a), cloned(b))
	if s == Manual && len(m.conflicts) > 0 {
		return nil, m.conflicts, nil
	}
	return out, m.conflicts, nil
}

// A merger is a Merge at work.
type merger struct {
	s         Strategy
	conflicts []Conflict
}

func (m *merger) records(base, a, b *Record) *Record {
	out := a.Clone()
	was, x, y := content(base), content(a), content(b)
	if x == was && y != was {
		out = b.Clone()
		out.identify(a)
	}
	out.ToolEffects = m.effects(base.ToolEffects, a.ToolEffects, b.ToolEffects)
	if x == was || y == was || x == y {
		return out
	}
	out.Source = either(m, "source", "source", base.Source, a.Source, b.Source, later)
	m.task(&out.Task, &base.Task, &a.Task, &b.Task)
	m.summary(&out.ExecutionSummary, &base.ExecutionSummary, &a.ExecutionSummary, &b.ExecutionSummary)
	for _, s := range sections {
		s.merge(m, out, base, a, b)
	}
	out.Metadata.Tags = union(base.Metadata.Tags, a.Metadata.Tags, b.Metadata.Tags)
	out.Metadata.Priority = either(m, "metadata", "priority", base.Metadata.Priority, a.Metadata.Priority, b.Metadata.Priority, nil)
	out.Metadata.EstimatedRemainingWork = either(m, "metadata", "estimatedRemainingWork", base.Metadata.EstimatedRemainingWork,
		a.Metadata.EstimatedRemainingWork, b.Metadata.EstimatedRemainingWork, nil)
	return out
}

// A settling says which of two values counts that both have changed, nil if it can't say. What is
// new was nil. It has to say the same if the two are exchanged.
type settling[T any] func(was, a, b *T) *T

// either merges one value.
func either[T any](m *merger, section, field string, base, a, b T, settle settling[T]) T {
	switch was := say(base); {
	case say(a) == say(b), say(b) == was:
		return a
	case say(a) == was:
		return b
	}
	if settle != nil {
		if x := settle(&base, &a, &b); x != nil {
			return *x
		}
	}
	m.conflicts = append(m.conflicts, Conflict{section, "", field, json.RawMessage(say(a)), json.RawMessage(say(b))})
	return pick(m, a, b)
}

func pick[T any](m *merger, a, b T) T {
	if m.s == PreferB {
		return b
	}
	return a
}

// over settles what of two is over in one of them only.
func over[T any](is func(*T) bool) settling[T] {
	return func(_, a, b *T) *T {
		switch {
		case is(a) && !is(b):
			return a
		case is(b) && !is(a):
			return b
		}
		return nil
	}
}

// merge merges a list: the items of base in their order, then what is new, in the order of ids.
func (l *list[T]) merge(m *merger, out, base, a, b *Record) {
	if l.united {
		return
	}
	all := []T{}
	inBase, inA, inB := index(*l.of(base)), index(*l.of(a)), index(*l.of(b))
	for _, id := range order(*l.of(base), *l.of(a), *l.of(b)) {
		x, y := inA[id], inB[id]
		switch was, inX, inY := say(inBase[id]), say(x), say(y); {
		case inX == inY, inY == was:
		case inX == was:
			x = y
		default:
			x = l.contest(m, id, inBase[id], x, y)
		}
		if x != nil {
			all = append(all, *x)
		}
	}
	*l.of(out) = all
}

// contest is what counts of an item that both have changed. What one has changed is not lost
// because the other took it away.
func (l *list[T]) contest(m *merger, id string, was, x, y *T) *T {
	if l.settle != nil && x != nil && y != nil {
		if s := l.settle(was, x, y); s != nil {
			return s
		}
	}
	m.conflicts = append(m.conflicts, Conflict{l.name, id, "", json.RawMessage(say(x)), json.RawMessage(say(y))})
	kept, other := pick(m, x, y), pick(m, y, x)
	switch {
	case kept == nil:
		return other
	case other != nil && l.lose != nil:
		l.lose(kept, other)
	}
	return kept
}

// order are the ids of lists.
func order[T item](base []T, others ...[]T) []string {
	var ids []string
	seen := map[string]bool{}
	for n, list := range append([][]T{base}, others...) {
		for i := range list {
			if id := idOf(&list[i]); n == 0 || !seen[id] {
				ids, seen[id] = append(ids, id), true
			}
		}
	}
	slices.Sort(ids[len(base):])
	return ids
}

// settledDecision settles two decisions: who has got no more than variants since has decided
// nothing, and what is firm beats what is not. What the other one chose stays as a variant.
func settledDecision(was, a, b *Decision) *Decision {
	decided := func(d *Decision) bool { return bare(d) != bare(was) }
	firm := func(d *Decision) bool { return d.Status == dag.Accepted || d.Status == dag.Rejected }
	kept := cmp.Or(over(decided)(was, a, b), over(firm)(was, a, b))
	switch {
	case kept == nil && bare(a) != bare(b):
		return nil
	case kept == nil: // they differ in their variants alone
		kept = a
	}
	d, other := kept.clone(), a
	if kept == a {
		other = b
	}
	d.vary(other.Variants)
	if decided(other) {
		d.vary([]Variant{other.variant()})
	}
	return &d
}

// withVariants adds to a decision what another one chose, and its variants.
func withVariants(d, other *Decision) { d.vary(append(slices.Clone(other.Variants), other.variant())) }

// vary adds variants to a decision, each once, and none that is what was decided.
func (d *Decision) vary(more []Variant) {
	all := slices.Concat(d.Variants, more)
	slices.SortFunc(all, func(a, b Variant) int { return cmp.Compare(say(a), say(b)) })
	all = slices.CompactFunc(all, func(a, b Variant) bool { return say(a) == say(b) })
	d.Variants = slices.DeleteFunc(all, func(v Variant) bool { return say(v) == say(d.variant()) })
}

// effects merges effects: none is dropped, and what is known of one beats that it is in doubt,
// unless it was not done and has begun again.
func (m *merger) effects(base, a, b []ToolEffect) []ToolEffect {
	out := []ToolEffect{}
	var others []ToolEffect
	inBase, inA, inB := index(base), index(a), index(b)
	for _, id := range order(base, a, b) {
		was, x, y := inBase[id], inA[id], inB[id]
		if x == nil || y == nil || say(x) == say(y) {
			out = append(out, *cmp.Or(x, y, was))
			continue
		}
		if e := toldOf(was, x, y); e != nil {
			out = append(out, *e)
			continue
		}
		m.conflicts = append(m.conflicts, Conflict{"toolEffects", id, "", json.RawMessage(say(x)), json.RawMessage(say(y))})
		out = append(out, *pick(m, x, y))
		other := *pick(m, y, x)
		other.ID = other.ID + "~" + short(other)
		if inA[other.ID] == nil && inB[other.ID] == nil {
			others = append(others, other)
		}
	}
	return append(out, others...)
}

// toldOf settles what is told of an effect of which two records tell otherwise: the one that has
// changed is right, unless it takes back that the effect has happened; then the one that knows
// more.
func toldOf(was, x, y *ToolEffect) *ToolEffect {
	happened := func(e *ToolEffect) bool { return e.Status != EffectNotDone && e.Status != EffectInDoubt }
	switch {
	case was != nil && say(x) == say(was) && (happened(y) || !happened(x)):
		return y
	case was != nil && say(y) == say(was) && (happened(x) || !happened(y)):
		return x
	}
	return over(func(e *ToolEffect) bool { return e.Status != EffectInDoubt })(was, x, y)
}

// short is a name for a value, made of its content.
func short(v any) string {
	sum := sha256.Sum256([]byte(say(v)))
	return hex.EncodeToString(sum[:8])
}

func (m *merger) task(out, base, a, b *Task) {
	out.ID = either(m, "task", "id", base.ID, a.ID, b.ID, nil)
	out.Goal = either(m, "task", "goal", base.Goal, a.Goal, b.Goal, nil)
	out.SuccessCriteria = union(base.SuccessCriteria, a.SuccessCriteria, b.SuccessCriteria)
	out.setProgress(either(m, "task", "status", base.progress(), a.progress(), b.progress(),
		over(func(p *progress) bool { return p.Status == TaskCompleted || p.Status == TaskFailed })))
}

// A progress is how far a task is.
type progress struct {
	Status                 TaskStatus
	StartedAt, CompletedAt int64
}

func (t *Task) progress() progress { return progress{t.Status, t.StartedAt, t.CompletedAt} }

func (t *Task) setProgress(p progress) {
	t.Status, t.StartedAt, t.CompletedAt = p.Status, p.StartedAt, p.CompletedAt
}

func (m *merger) summary(out, base, a, b *Summary) {
	out.count(base, a, b)
	out.Actions = slices.Concat(a.Actions, b.Actions)
	slices.SortFunc(out.Actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(say(a), say(b)))
	})
	out.Actions = slices.Compact(out.Actions)
	filled(&out.Actions)
}

// count has a summary say the counts of two that have gone on from base.
func (s *Summary) count(base, a, b *Summary) {
	s.StepsCompleted = sum(base.StepsCompleted, a.StepsCompleted, b.StepsCompleted)
	s.StepsFailed = sum(base.StepsFailed, a.StepsFailed, b.StepsFailed)
	s.TokensConsumed = sum(base.TokensConsumed, a.TokensConsumed, b.TokensConsumed)
	s.ElapsedMs = sum(base.ElapsedMs, a.ElapsedMs, b.ElapsedMs)
}

// sum is what two have made of a count, together; a count never falls.
func sum[N int | int64](base, a, b N) N {
	total := base + (a - base) + (b - base)
	return max(total, a, b)
}

// later settles two positions of one log: the later one has heard all that the other has.
func later(_, a, b **Source) **Source {
	switch x, y := *a, *b; {
	case x == nil || y == nil || x.Run != y.Run || x.Seq == y.Seq:
		return nil
	case x.Seq > y.Seq:
		return a
	}
	return b
}

// union is a list of words: what one of two has taken away is gone.
func union(base, a, b []string) []string {
	out, has := []string{}, map[string]bool{}
	was, inA, inB := words(base), words(a), words(b)
	for _, w := range slices.Concat(base, slices.Sorted(slices.Values(slices.Concat(a, b)))) {
		gone := was[w] && (!inA[w] || !inB[w])
		if !gone && !has[w] {
			out, has[w] = append(out, w), true
		}
	}
	return out
}

// words are those of a list.
func words(list []string) map[string]bool {
	all := make(map[string]bool, len(list))
	for _, w := range list {
		all[w] = true
	}
	return all
}
