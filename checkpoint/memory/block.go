package memory

import (
	"bytes"
	"sync"
)

// A desk is where appends are sealed, before anybody knows whether they count.
type desk struct{ data []byte }

var desks = sync.Pool{New: func() any { return new(desk) }}

// deskBytes is the largest desk that is kept.
const deskBytes = 256 << 10

func (d *desk) clear() {
	if d.data = d.data[:0]; cap(d.data) <= deskBytes {
		desks.Put(d)
	}
}

// Small appends of a run share blocks of memory, each twice as large as the one before it up to
// blockBytes. A block goes when none of its appends is kept any more.
const (
	firstBlock = 512
	blockBytes = 16 << 10
	ownBytes   = 1 << 10 // what is larger has memory of its own
)

// own returns a copy of data that is the run's.
func (r *run) own(data []byte) []byte {
	if len(data) > ownBytes {
		return bytes.Clone(data)
	}
	if len(data) > cap(r.block)-len(r.block) {
		r.block = make([]byte, 0, min(max(firstBlock, 2*cap(r.block), 2*len(data)), blockBytes))
	}
	from := len(r.block)
	r.block = append(r.block, data...)
	return r.block[from:len(r.block):len(r.block)]
}
