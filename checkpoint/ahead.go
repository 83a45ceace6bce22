package checkpoint

import (
	"iter"
	"runtime"
)

// How far ahead a loop is at most: so many batches, one of which the caller has, each of so many values or
// not many more bytes.
const (
	batches    = 8
	batchItems = 32
	batchBytes = 64 << 10
)

// ahead has the loop of lent run in a goroutine of its own, ahead of who takes what it yields: so a long log is
// read and checked on one processor while it is applied on another one.
//
// It yields what lent yields, in order, up to the first error. What it yields is valid until the next one, as
// it has to be in lent. Values are copied, but those above 64 KiB: while the caller has one of them,
// lent waits. Once the loop is over lent has returned. A panic in lent is one of the caller, and so is a Goexit.
func ahead(lent iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := &reader{
			free:  make(chan *batch, batches),
			full:  make(chan *batch, batches+1),
			taken: make(chan struct{}, 1),
			stop:  make(chan struct{}),
		}
		for range batches {
			r.free <- new(batch)
		}
		go r.read(lent) // pass waits for it
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

// A batch has values, one behind the other, and what has ended the loop behind them.
type batch struct {
	bytes []byte
	ends  []int
	err   error
	lent  bool // bytes belong to the loop, which waits
}

type reader struct {
	free  chan *batch   // has room for all of them
	full  chan *batch   // has room for all of them, and for one that is lent; closed behind the last one
	taken chan struct{} // the one that was lent is not used any more
	stop  chan struct{} // closed when the caller wants no more

	// Written before full is closed:
	ended    bool
	panicked any
}

// read is the goroutine.
func (r *reader) read(lent iter.Seq2[[]byte, error]) {
	defer close(r.full)
	defer func() {
		if !r.ended {
			r.panicked = recover()
		}
	}()
	r.fill(lent)
	r.ended = true
}

// fill makes batches of what lent yields, until the caller wants no more.
func (r *reader) fill(lent iter.Seq2[[]byte, error]) {
	b := <-r.free
	for value, err := range lent {
		switch {
		case err != nil:
			b.err = err
			r.full <- b
			return
		case len(value) > batchBytes:
			r.full <- b
			r.full <- &batch{bytes: value, ends: []int{len(value)}, lent: true}
			select {
			case <-r.taken:
				b = r.next()
			case <-r.stop:
				return
			}
		default:
			b.bytes = append(b.bytes, value...)
			b.ends = append(b.ends, len(b.bytes))
			if len(b.ends) == batchItems || len(b.bytes) >= batchBytes {
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

// next is an empty batch, or nil if the caller wants no more.
func (r *reader) next() *batch {
	select {
	case b := <-r.free:
		b.bytes, b.ends = b.bytes[:0], b.ends[:0]
		return b
	case <-r.stop:
		return nil
	}
}

// pass yields what is in batches, until yield wants no more, and waits for the goroutine.
func (r *reader) pass(yield func([]byte, error) bool) {
	defer func() {
		close(r.stop)
		for range r.full {
		}
	}()
	for b := range r.full {
		start := 0
		for _, end := range b.ends {
			if !yield(b.bytes[start:end:end], nil) {
				return
			}
			start = end
		}
		switch {
		case b.err != nil:
			yield(nil, b.err)
			return
		case b.lent:
			r.taken <- struct{}{}
		default:
			r.free <- b
		}
	}
}
