package checkpoint

import (
	"iter"
	"runtime"
)

// How far ahead a loop is at most: so many batches, one of which the caller has, each of so many
// values or not many more bytes.
const (
	batches    = 12
	batchItems = 32
	batchBytes = 64 << 10
)

// A sheet is an envelope: the first of its entries, which were read already, and what is left of
// it.
type sheet struct {
	entries []Entry
	left    unread
	kept    []byte // all of it, if its memory is its own and is not used again
}

// reading appends to room the first entries in data, at most so many, whose memory they share, and
// returns what is left.
type reading func(room []Entry, data []byte, most int) ([]Entry, unread)

// readAhead is how many entries of an envelope are read before somebody takes one of them: as many
// as most have. An Each may have thousands in one.
const readAhead = 32

// behind is how many batches wait for a caller who has enough to do. One who may soon have to wait
// reads the entries itself: so both are done at the same time, whatever it does with them.
const behind = 6

// ahead has the loop of lent run in a goroutine of its own, ahead of who takes what is read of it:
// so a long log is read and checked on one processor while it is applied on another one, and parsed
// on that which has less to do.
//
// It yields what read makes of what lent yields, in order, up to the first error. What it yields is
// valid until the next one, as it has to be in lent. Values are copied, but those above 64 KiB:
// while the caller has one of them, lent waits. Once the loop is over lent has returned. A panic in
// lent is one of the caller, and so is a Goexit. With keep, those that are worth it have memory of
// their own.
func ahead(lent iter.Seq2[[]byte, error], read reading, keep bool) iter.Seq2[sheet, error] {
	return func(yield func(sheet, error) bool) {
		r := &reader{
			keep:  keep,
			free:  make(chan *batch, batches),
			full:  make(chan *batch, batches+1),
			taken: make(chan struct{}, 1),
			stop:  make(chan struct{}),
		}
		for range batches {
			r.free <- new(batch)
		}
		go r.read(lent, read) // pass waits for it
		r.pass(yield)
		switch {
		case r.ended:
		case r.panicked != nil:
			panic(r.panicked)
		default:
			runtime.Goexit()
		}
	}
}

// A batch has values, one behind the other, what was read of them, and what has ended the loop
// behind them.
type batch struct {
	bytes   []byte
	size    int     // of all values
	entries []Entry // where those of the sheets are
	sheets  []sheet
	err     error
	lent    bool // what the sheet shares its memory with belongs to the loop, which waits
}

// add reads at most so many entries in a copy of value. With keep it has memory of its own, if it
// is worth that.
func (b *batch) add(read reading, value []byte, keep bool, most int) {
	b.size += len(value)
	if keep && len(value) >= worthKeeping {
		own := make([]byte, len(value))
		copy(own, value)
		b.put(read, own, own, most)
		return
	}
	from := len(b.bytes)
	b.bytes = append(b.bytes, value...)
	b.put(read, b.bytes[from:], nil, most)
}

// put reads data, whose memory is the batch's, lent, or kept.
func (b *batch) put(read reading, data, kept []byte, most int) {
	from := len(b.entries)
	entries, left := read(b.entries, data, most)
	b.entries = entries
	b.sheets = append(b.sheets, sheet{entries[from:len(entries):len(entries)], left, kept})
}

type reader struct {
	keep  bool
	free  chan *batch   // has room for all of them
	full  chan *batch   // has room for all of them, and for one that is lent; closed behind the last one
	taken chan struct{} // the one that was lent is not used any more
	stop  chan struct{} // closed when the caller wants no more

	// Written before full is closed:
	ended    bool
	panicked any
}

// read is the goroutine.
func (r *reader) read(lent iter.Seq2[[]byte, error], read reading) {
	defer close(r.full)
	defer func() {
		if !r.ended {
			r.panicked = recover()
		}
	}()
	r.fill(lent, read)
	r.ended = true
}

// fill makes batches of what lent yields, until the caller wants no more.
func (r *reader) fill(lent iter.Seq2[[]byte, error], read reading) {
	b := <-r.free
	for value, err := range lent {
		switch {
		case err != nil:
			b.err = err
			r.full <- b
			return
		case len(value) > batchBytes:
			r.full <- b
			large := &batch{lent: true}
			large.put(read, value, nil, r.entries())
			r.full <- large
			select {
			case <-r.taken:
				b = r.next()
			case <-r.stop:
				return
			}
		default:
			b.add(read, value, r.keep, r.entries())
			if len(b.sheets) == batchItems || b.size >= batchBytes {
				r.full <- b
				b = r.next()
			}
		}
		if b == nil {
			return
		}
	}
	r.full <- b
}

// entries is how many of an envelope are read here.
func (r *reader) entries() int {
	if len(r.full) < behind {
		return 0
	}
	return readAhead
}

// next is an empty batch, or nil if the caller wants no more.
func (r *reader) next() *batch {
	select {
	case b := <-r.free:
		clear(b.entries)
		clear(b.sheets)
		b.bytes, b.size, b.entries, b.sheets = b.bytes[:0], 0, b.entries[:0], b.sheets[:0]
		return b
	case <-r.stop:
		return nil
	}
}

// pass yields what is in batches, until yield wants no more, and waits for the goroutine.
func (r *reader) pass(yield func(sheet, error) bool) {
	defer func() {
		close(r.stop)
		for range r.full {
		}
	}()
	for b := range r.full {
		for _, x := range b.sheets {
			if !yield(x, nil) {
				return
			}
		}
		switch {
		case b.err != nil:
			yield(sheet{}, b.err)
			return
		case b.lent:
			r.taken <- struct{}{}
		default:
			r.free <- b
		}
	}
}
