package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// How the data of a blob is kept. It is squeezed before it is sealed, and in chunks last.
const (
	chunked byte = 1 << iota // as earlier builds did, in chunks of 256 KiB
	squeezed
	sealed
	cut // in chunks of chunkSize

	ways = chunked | squeezed | sealed | cut // that there are
)

// A place is where data stands, and what it is sealed for: it can't be read as another run's, as
// another value of its run, or in another store.
type place struct {
	run   string // "" of what belongs to no run, which its key names by content
	key   []byte
	about []byte // what the blob has beside its data
}

// unopened says what a cipher did not open, unless whoever reads says so: see checkpoint.Corrupt.
func unopened(p place, err error) error {
	for _, known := range []error{checkpoint.ErrCorrupt, checkpoint.ErrVersion, checkpoint.ErrKey, checkpoint.ErrPlaintext} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("checkpoint: opening %v: %w", p, err)
}

// String says what stands in the place.
func (p place) String() string {
	switch kind, id := p.key[0], p.key[1:]; {
	case kind == logKey:
		return fmt.Sprintf("run %q, entry %d", p.run, seqOf(p.key))
	case kind == snapshotKey:
		return fmt.Sprintf("run %q, the snapshot at entry %d", p.run, seqOf(p.key))
	case kind == postKey:
		return fmt.Sprintf("run %q, message %q", p.run, id[8:])
	case isBase(kind):
		return fmt.Sprintf("base %q", id)
	default:
		return fmt.Sprintf("%q", p.key)
	}
}

// A parcel is data as a store keeps it.
type parcel struct {
	place
	data []byte
	how  byte // neither chunked nor cut
}

// pack makes the parcel of data. It may share its memory. The work is done here, in the caller's
// goroutine: the committer never squeezes or seals.
func (s *Store) pack(p place, data []byte) (parcel, error) {
	x := parcel{place: p, data: data}
	if b, gains := squeeze(data); gains {
		x.data, x.how = b, squeezed
	}
	c := s.cipherOf(p)
	if c == nil {
		return x, nil
	}
	x.how |= sealed
	b, err := c.seal(x.data, s.sealedFor(p, x.how))
	x.data = b
	return x, err
}

// unpack returns the data that was packed for that place.
func (s *Store) unpack(p place, packed []byte, how byte) (data []byte, err error) {
	data = packed
	switch c := s.cipherOf(p); {
	case how&^(squeezed|sealed) != 0:
		return nil, fmt.Errorf("%w: a value is packed in the way %#x", checkpoint.ErrVersion, how)
	case c == nil && how&sealed != 0:
		return nil, fmt.Errorf("%w: the value is encrypted: open the store with Options.Cipher", checkpoint.ErrKey)
	case c != nil && how&sealed == 0:
		return nil, fmt.Errorf("%w, and the store is: somebody else has put it there: restore the store from a backup",
			checkpoint.ErrPlaintext)
	case c != nil:
		if data, err = c.open(packed, s.sealedFor(p, how)); err != nil {
			return nil, unopened(p, err)
		}
	}
	if how&squeezed != 0 {
		return stretch(data, limitOf(p.key[0]))
	}
	return data, nil
}

// cipherOf is what seals the data of that place, nil if nothing does. Graphs are not sealed: they
// are the program's, not its users', and are kept for ever, which no key should have to be.
func (s *Store) cipherOf(p place) *careful {
	if p.key[0] == s.kinds.graph {
		return nil
	}
	return s.cipher
}

// limitOf is how long the data of a key of that kind can be.
func limitOf(kind byte) int {
	if kind == logKey || kind == postKey || isGraph(kind) {
		return MaxAppend
	}
	return MaxSnapshot
}

// sealedFor is the place that a cipher is told.
func (s *Store) sealedFor(p place, how byte) []byte {
	b := make([]byte, 0, len(s.name.Store)+len(p.run)+len(p.key)+len(p.about)+1+3*binary.MaxVarintLen64)
	for _, part := range [][]byte{[]byte(s.name.Store), []byte(p.run), p.key} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return append(append(b, how), p.about...)
}

// bare reports whether the parcel of an append can stand in a value as it is, as its envelope.
func (x parcel) bare() bool { return x.how == 0 && len(x.data) <= inlineMost }

// value returns the value of a parcel that is not larger than inlineMost. That of a bare append
// shares its memory.
func (x parcel) value() []byte {
	if x.bare() && x.key[0] == logKey {
		return x.data
	}
	return frame(x.key, x.about, []byte{x.how}, x.data)
}
