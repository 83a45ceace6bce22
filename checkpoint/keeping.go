package checkpoint

import "context"

// A Keeping tells the reader of a log which deltas stay as they are and so can be kept without a
// copy. Its zero value is ready. Use one for one loop at a time.
type Keeping struct {
	delta []byte // of the entry that was yielded last, or nil
}

// worthKeeping is the size of an envelope which is worth memory of its own. Smaller ones are copied
// as cheaply by who keeps a part of them.
const worthKeeping = 512

type keeping struct{}

// With returns a context with which [Store.Read] may give large envelopes memory of their own,
// which nobody writes to, and tells k so. A store does that by handing its context on to
// [Span.Entries]; one that loops over that in another goroutine than it yields in must not, since k
// is told of an entry where it is read.
func (k *Keeping) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, keeping{}, k)
}

// Has reports whether delta, the Delta of the entry that was yielded last, may be kept and shared
// for any time, if nobody writes to it. Keeping it keeps its envelope, at least half of which it
// is.
func (k *Keeping) Has(delta []byte) bool {
	return k != nil && len(delta) > 0 && len(delta) == len(k.delta) && &delta[0] == &k.delta[0]
}

// on is told of the next entry, and of its envelope, if that is kept.
func (k *Keeping) on(e *Entry, kept []byte) {
	switch {
	case k == nil:
	case 2*len(e.Delta) >= len(kept) && len(kept) > 0:
		k.delta = e.Delta
	default:
		k.delta = nil
	}
}
