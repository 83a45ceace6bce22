package badgerstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/pawlgo/pawl/checkpoint"
)

// A frame is what every value but an envelope stands in:
//
//	0  magic "pawr"
//	4  version of the format, 1
//	5  the first byte of its key
//	6  length of the payload, 4 bytes
//	10 CRC-32C of the key and all of the frame but these 4 bytes
//	14 payload
//
// The key is in the checksum, so that a frame can't be taken for that of another key. The checksum
// is compared before the version is: what is not as it was written is damaged, whatever it says.
const (
	frameMagic = "pawr"
	formatV1   = 1
	frameHead  = 14
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame returns the frame of a payload that is given in parts.
func frame(key []byte, parts ...[]byte) []byte {
	n := frameHead
	for _, part := range parts {
		n += len(part)
	}
	b := make([]byte, 0, n)
	b = append(b, frameMagic...)
	b = append(b, formatV1, key[0])
	b = binary.BigEndian.AppendUint32(b, uint32(n-frameHead))
	b = append(b, 0, 0, 0, 0)
	for _, part := range parts {
		b = append(b, part...)
	}
	binary.BigEndian.PutUint32(b[10:], frameSum(key, b))
	return b
}

// unframe returns the payload of the frame b, which shares its memory. The error is
// ErrVersion or wraps ErrCorrupt.
func unframe(key, b []byte) ([]byte, error) {
	switch {
	case len(b) < frameHead || string(b[:4]) != frameMagic:
		return nil, checkpoint.Damage("a value is no frame")
	case b[5] != key[0] || uint64(len(b)-frameHead) != uint64(binary.BigEndian.Uint32(b[6:])):
		return nil, checkpoint.Damage("a frame is not as long as it says, or of another key")
	case binary.BigEndian.Uint32(b[10:]) != frameSum(key, b):
		return nil, checkpoint.Damage("the checksum of a frame differs")
	case b[4] != formatV1:
		return nil, fmt.Errorf("%w: frame of version %d", checkpoint.ErrVersion, b[4])
	}
	return b[frameHead:], nil
}

// frameNumber is the frame of a number, which unframeNumber reads. what is the damage of one that
// is none.
func frameNumber(key []byte, n uint64) []byte {
	return frame(key, binary.BigEndian.AppendUint64(nil, n))
}

func unframeNumber(key, b []byte, what string) (uint64, error) {
	payload, err := unframe(key, b)
	if err == nil && len(payload) != 8 {
		err = checkpoint.Damage(what)
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(payload), nil
}

func frameSum(key, b []byte) uint32 {
	sum := crc32.Checksum(key, castagnoli)
	sum = crc32.Update(sum, castagnoli, b[:10])
	return crc32.Update(sum, castagnoli, b[frameHead:])
}

// A writer appends the fields of a payload, a reader takes them off. What is missing or
// impossible sets the reader's bad, after which everything is zero.
type writer struct{ b []byte }

func (w *writer) uint(n uint64)   { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) string(s string) { w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...) }

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

// count is uint for a number of things of which each takes a byte at least.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) || n > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.fail()
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) string() string { return string(r.bytes(r.count())) }

func (r *reader) fail() { r.bad, r.b = true, nil }

// end reports whether everything was read, and well.
func (r *reader) end() bool { return !r.bad && len(r.b) == 0 }
