package badgerstore

import "slices"

// An inbox has the keys of the messages of a run, in order, once somebody has looked for them,
// which is to step over all that were drained, until tables are merged. It is never changed: who
// looks at the run has the one of that moment. A run that is loaded has none, one that has just
// begun an empty one.
type inbox struct {
	kept bool // else it is not known which there are
	keys []string
}

// inboxMost is how many keys are kept.
const inboxMost = 64

func (b *inbox) known() bool { return b != nil && b.kept }

// behind is the inbox behind a request that may change it. It is another one, whether the keys are
// known or not: so who has looked meanwhile knows that he may have missed something.
func (b *inbox) behind(q *request) *inbox {
	if !b.known() || q.gone || q.restored > 0 {
		return new(inbox)
	}
	keys := slices.Clone(b.keys)
	if len(q.post) > 0 {
		if at, there := slices.BinarySearch(keys, string(q.post)); !there {
			keys = slices.Insert(keys, at, string(q.post))
		}
	}
	for _, drained := range q.deletes {
		if at, there := slices.BinarySearch(keys, string(drained)); there {
			keys = slices.Delete(keys, at, at+1)
		}
	}
	if len(keys) > inboxMost {
		return new(inbox)
	}
	return &inbox{true, keys}
}

// remember keeps the keys of messages that were found, unless one was posted or drained meanwhile.
func (s *Store) remember(f found, keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.run != nil && f.run.inbox == f.inbox && len(keys) <= inboxMost {
		f.run.inbox = &inbox{true, keys}
	}
}
