package supervisor

// A queue holds runs that wait, in the order of their coming for each key. Keys take turns:
// pop takes the oldest run of the key that has waited longest since its last turn.
//
// Invariant: turns holds each key of waits once, and no other; no list in waits is empty.
type queue struct {
	waits map[string][]*ticket
	turns []string
	size  int
}

func (q *queue) push(t *ticket) {
	if q.waits == nil {
		q.waits = make(map[string][]*ticket)
	}
	if len(q.waits[t.key]) == 0 {
		q.turns = append(q.turns, t.key)
	}
	q.waits[t.key] = append(q.waits[t.key], t)
	q.size++
}

// pop returns nil if nobody waits.
func (q *queue) pop() *ticket {
	if q.size == 0 {
		return nil
	}
	key := q.turns[0]
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
	q.size--
	return t
}

// of returns how many runs of the key wait.
func (q *queue) of(key string) int { return len(q.waits[key]) }
