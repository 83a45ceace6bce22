package checkpoint

import (
	"context"
	"fmt"
	"iter"
)

// A Span is a part of a run's log: what a store was asked to read, and the head that it
// knows the run to have.
type Span struct {
	Run      string
	From, To uint64 // sequence numbers, both included
	Head     Head
	First    uint64 // the oldest entry that is kept; 0 means 1
}

// Between returns s for a Read of from and to: it begins at the oldest entry if from is 0, and
// ends at the head if to is 0 or beyond it.
func (s Span) Between(from, to uint64) Span {
	s.From, s.To = from, to
	if from == 0 {
		s.From = max(s.First, 1)
	}
	if to == 0 || to > s.Head.Seq {
		s.To = s.Head.Seq
	}
	return s
}

// Entries yields the entries of the span out of appends, which loops over the stored envelopes in
// order, from the one that holds an entry. It is the checking half of [Store.Read]: an envelope
// that is damaged, of another place, or not there ends the loop with an error that names the run
// and the entry; a span that begins before First is a [TrimmedError]. That the digest of an
// envelope is its own it checks if ctx says so, see [WithDigests]. Once ctx is done no entry
// follows, but its error. Each envelope has to be valid until the next one.
//
// Of a long span, when a few hundred entries were taken, a goroutine of its own goes on with
// another loop over appends, up to 256 envelopes ahead; it has ended when the loop over the entries
// has. See [Keeping] for memory of its own.
func (s Span) Entries(ctx context.Context, appends func(seq uint64) iter.Seq2[[]byte, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if s.From < s.First {
			yield(Entry{}, &TrimmedError{Run: s.Run, First: s.First})
			return
		}
		if s.From > s.To {
			return
		}
		alone := s.To
		if s.To-s.From >= longSpan {
			alone = s.From + aloneEntries
		}
		l := linked{span: s, hashed: ctx.Value(hashing{}) != nil}
		k, _ := ctx.Value(keeping{}).(*Keeping)
		if s.pass(ctx, l.here(l.upTo(alone, appends(s.From))), k, yield) && l.at.Seq < s.To {
			s.pass(ctx, ahead(l.upTo(s.To, appends(l.at.Seq+1)), readFew, k != nil), k, yield)
		}
	}
}

// A span of longSpan entries is worth another goroutine: checking them takes a millisecond, waking
// it and waiting for it up to a tenth of that. It begins behind aloneEntries: who takes fewer wants
// a page, or a look.
const (
	longSpan     = 1_000
	aloneEntries = 300
)

// readFew is the reading of an envelope that is checked. An entry that can't be read is left.
func readFew(room []Entry, data []byte, most int) ([]Entry, unread) {
	e := opened(data)
	left := e.unread()
	for range most {
		n := len(room)
		room = append(room, Entry{})
		if more, err := left.take(&room[n]); !more || err != nil {
			return room[:n], left
		}
	}
	return room, left
}

// here yields envelopes of which nothing is read yet: those that lent, which is a loop of upTo,
// yields.
func (l *linked) here(lent iter.Seq2[[]byte, error]) iter.Seq2[sheet, error] {
	return func(yield func(sheet, error) bool) {
		for _, err := range lent {
			if err != nil {
				yield(sheet{}, err)
				return
			}
			if !yield(sheet{left: l.left}, nil) {
				return
			}
		}
	}
}

// pass yields the entries of the span that stand on sheets, and reports whether more may follow.
func (s Span) pass(ctx context.Context, sheets iter.Seq2[sheet, error], k *Keeping, yield func(Entry, error) bool) bool {
	for x, err := range sheets {
		if err != nil {
			yield(Entry{}, err)
			return false
		}
		for i := range x.entries {
			k.on(&x.entries[i], x.kept)
			if !s.hand(ctx, &x.entries[i], yield) {
				return false
			}
		}
		for {
			var entry Entry
			at := max(x.left.next, s.From)
			more, err := x.left.take(&entry)
			if err != nil {
				yield(Entry{}, Corrupt(s.Run, at, err))
				return false
			}
			if !more {
				break
			}
			k.on(&entry, x.kept)
			if !s.hand(ctx, &entry, yield) {
				return false
			}
		}
	}
	return true
}

// hand yields an entry, if it is in the span, and reports whether more may follow.
func (s Span) hand(ctx context.Context, e *Entry, yield func(Entry, error) bool) bool {
	if e.Seq < s.From {
		return true
	}
	if e.Seq > s.To {
		return false
	}
	if err := ctx.Err(); err != nil {
		yield(Entry{}, err)
		return false
	}
	return yield(*e, nil)
}

// linked are the envelopes of a span up to a position.
type linked struct {
	span   Span
	hashed bool   // their digests are computed
	at     Head   // the end of the last one that was yielded
	left   unread // of that
}

// hashing is the key under which a context says that digests are to be computed.
type hashing struct{}

// WithDigests returns a context with which [Store.Read] computes the digests of what it reads. That
// finds changes whose author made the checksum fit. A store does it by handing its context on to
// [Span.Entries].
func WithDigests(ctx context.Context) context.Context { return context.WithValue(ctx, hashing{}, true) }

// upTo yields those of appends that follow, up to the one that holds the entry last.
func (l *linked) upTo(last uint64, appends iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for data, err := range appends {
			if err == nil {
				l.at, err = l.link(data)
			}
			if err != nil {
				yield(nil, l.corrupt(err))
				return
			}
			if !yield(data, nil) || l.at.Seq >= last {
				return
			}
		}
		yield(nil, l.corrupt(damage("the entry is missing")))
	}
}

// corrupt is the error of what should follow.
func (l *linked) corrupt(err error) error {
	return Corrupt(l.span.Run, max(l.at.Seq+1, l.span.From), err)
}

// link checks the envelope that has to follow the last one, or, if there is none, has to
// hold the first entry of the span, and returns the position at its end.
func (l *linked) link(data []byte) (Head, error) {
	e, err := Unseal(data)
	if err != nil {
		return l.at, err
	}
	at, s := l.at, l.span
	switch {
	case at.Seq > 0 && e.First != at.Seq+1, at.Seq == 0 && (e.First > s.From || e.Last() < s.From):
		return at, damage(fmt.Sprintf("entry %d stands in its place", e.First))
	case at.Seq > 0 && e.Previous != at.Digest, e.First == 1 && e.Previous != Digest{}:
		return at, damage("it does not follow the append before it")
	}
	head := e.Head()
	if head.Seq == s.Head.Seq && head.Digest != s.Head.Digest {
		return at, &CorruptError{Run: s.Run, Seq: e.First, Reason: "the digest is not the head's"}
	}
	if l.hashed {
		if err := e.hashed(); err != nil {
			return at, err
		}
	}
	l.left = e.unread()
	return head, nil
}
