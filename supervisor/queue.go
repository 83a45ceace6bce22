package supervisor

import "slices"

// A queue holds runs that wait, in the order of their coming for each key. Keys take turns: pop
// takes the oldest run of the key that has waited longest since its last turn, of those that may
// have one more at work.
//
// Invariant: turns holds each key of waits once, and no other; no list in waits is empty.
type queue struct {
	waits map[string][]*ticket
	turns []string
	size  int

	atWork map[string]int // of each key, how many were taken and are not over; none is zero
}

func (q *queue) push(t *ticket) {
	if q.waits == nil {
		q.waits = make(map[string][]*ticket)
	}
	if len(q.waits[t.key]) == 0 {
		q.turns = append(q.turns, t.key)
	}
	q.waits[t.key] = append(q.waits[t.key], t)
	t.waits = true
	q.size++
}

// unpop puts back a run that had its turn, before the others of its key.
func (q *queue) unpop(t *ticket) {
	q.push(t)
	of := q.waits[t.key]
	copy(of[1:], of)
	of[0] = t
}

// pop returns nil if nobody waits, or none of a key of which fewer than most are at work. Zero
// bounds nobody.
func (q *queue) pop(most int) *ticket {
	i := 0 // few are passed over: each has runs at work
	for i < len(q.turns) && most > 0 && q.atWork[q.turns[i]] >= most {
		i++
	}
	if i == len(q.turns) {
		return nil
	}
	key := q.turns[i]
	copy(q.turns[1:], q.turns[:i]) // they keep their places before the others
	q.turns = q.turns[1:]
	of := q.waits[key]
	t := of[0]
	of[0] = nil
	if of = of[1:]; len(of) == 0 {
		delete(q.waits, key)
	} else {
		q.waits[key] = of
		q.turns = append(q.turns, key)
	}
	t.waits = false
	q.size--
	if q.atWork == nil {
		q.atWork = make(map[string]int)
	}
	q.atWork[key]++
	return t
}

// over notes that one of the key is no longer at work.
func (q *queue) over(key string) {
	if q.atWork[key]--; q.atWork[key] == 0 {
		delete(q.atWork, key)
	}
}

// remove takes out t, and reports whether it waited.
func (q *queue) remove(t *ticket) bool {
	of := q.waits[t.key]
	i := slices.Index(of, t)
	if i < 0 {
		return false
	}
	if of = slices.Delete(of, i, i+1); len(of) == 0 {
		delete(q.waits, t.key)
		turn := slices.Index(q.turns, t.key)
		q.turns = slices.Delete(q.turns, turn, turn+1)
	} else {
		q.waits[t.key] = of
	}
	t.waits = false
	q.size--
	return true
}

// of returns how many runs of the key wait.
func (q *queue) of(key string) int { return len(q.waits[key]) }
