package checkpoint

import (
	"context"
	"errors"
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

// Entries yields the entries of the span out of appends, the stored envelopes in order,
// of which the first holds the entry From. It is the checking half of [Store.Read]: an
// envelope that is damaged, of another place, or not there ends the loop with an error
// that names the run and the entry; a span that begins before First is a [TrimmedError]. Once ctx is done no entry follows, but
// its error. Each envelope has to be valid until the next one.
//
// Of a span of more than a thousand entries a goroutine of its own loops over appends, up to 256 envelopes ahead;
// it has ended when the loop has.
func (s Span) Entries(ctx context.Context, appends iter.Seq2[[]byte, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if s.From < s.First {
			yield(Entry{}, &TrimmedError{Run: s.Run, First: s.First})
			return
		}
		if s.From > s.To {
			return
		}
		linked := s.linked(appends)
		if s.To-s.From >= longSpan {
			linked = ahead(linked)
		}
		next := s.From
		for data, err := range linked {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			e := opened(data)
			for left := e.unread(); ; {
				var entry Entry
				more, err := left.take(&entry)
				if err != nil {
					yield(Entry{}, Corrupt(s.Run, next, err))
					return
				}
				if !more {
					break
				}
				if entry.Seq < s.From {
					continue
				}
				if err := ctx.Err(); err != nil {
					yield(Entry{}, err)
					return
				}
				if entry.Seq > s.To || !yield(entry, nil) {
					return
				}
				next = entry.Seq + 1
			}
			if next > s.To {
				return
			}
		}
		yield(Entry{}, Corrupt(s.Run, next, damage("the entry is missing")))
	}
}

// longSpan is how many entries are worth another goroutine: checking them takes a millisecond, waking it and
// waiting for it up to a tenth of that.
const longSpan = 1_000

// linked yields those of appends that follow one another, up to the one that holds the entry To.
func (s Span) linked(appends iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var at Head // the end of the envelope before
		for data, err := range appends {
			if err == nil {
				at, err = s.link(at, data)
			}
			if err != nil {
				err = Corrupt(s.Run, max(at.Seq+1, s.From), err)
			}
			if !yield(data, err) || err != nil || at.Seq >= s.To {
				return
			}
		}
	}
}

// link checks the envelope that has to follow the position at, or, if at is zero, has to
// hold the first entry of the span, and returns the position at its end.
func (s Span) link(at Head, data []byte) (Head, error) {
	e, err := Unseal(data)
	if err != nil {
		return at, err
	}
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
	return head, nil
}

// Corrupt returns the error of a run in whose stored data err was found, at the entry of
// sequence number seq, or 0 if it was not in the log: a [CorruptError], or, for what this
// program or these keys can't read, an error that wraps ErrVersion, ErrKey or ErrPlaintext. Any
// other error is returned as it is.
func Corrupt(run string, seq uint64, err error) error {
	var known *CorruptError
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, ErrCorrupt):
		return &CorruptError{Run: run, Seq: seq, Reason: err.Error()}
	case errors.Is(err, ErrVersion), errors.Is(err, ErrKey), errors.Is(err, ErrPlaintext):
		return fmt.Errorf("checkpoint: run %q, entry %d: %w", run, seq, err)
	}
	return err
}

// A damage is an error that says what is wrong with stored data; it wraps ErrCorrupt.
type damage string

func (d damage) Error() string { return string(d) }

func (d damage) Unwrap() error { return ErrCorrupt }

// Damage returns an error that says what is wrong with stored data, for [Corrupt] to say
// where. It wraps ErrCorrupt.
func Damage(reason string) error { return damage(reason) }

// A notFound names the run that does not exist. Stores are asked for runs that don't whenever one
// begins, so its text is made when somebody reads it.
type notFound string

func (n notFound) Error() string { return fmt.Sprintf("%v: run %q", ErrNotFound, string(n)) }

func (n notFound) Unwrap() error { return ErrNotFound }

// NotFound returns the error of a store in which there is no such run. It wraps ErrNotFound.
func NotFound(run string) error { return notFound(run) }
