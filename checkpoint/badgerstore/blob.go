package badgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A blob is data that is kept packed, see parcel, and may be too large for one key: a frame of
// some bytes about it, how it is packed, and then either the packed data, or, if it is cut,
// its length, its CRC-32C and an attempt. Then the packed data is in chunks, under keys made of
// the blob's and the attempt. It is sealed as a whole: a chunk alone says nothing, and can't
// stand in another's place.
//
// Chunks are written before the blob's key, each in a transaction that it shares with the appends
// of other runs: so a large value keeps nobody waiting for long, and exists when its key does. Two
// who write one key do not meddle with each other's chunks, only the one whose key is written
// counts. Chunks without a key, of the other or of a process that died, are removed with the run;
// those of messages, which go when they are drained, also when it is trimmed; those of a first
// append that fails go with it, or when the store is next opened.
const (
	inlineMost   = 512 << 10
	chunkSize    = 64 << 10
	oldChunkSize = 256 << 10

	// chunksAtOnce are in a piece at most.
	chunksAtOnce = 4
)

const (
	// chunkedEndLen is how long chunkedEnd is, without how the data is packed.
	chunkedEndLen = 24
	// sealingMost is more than what sealing adds to data.
	sealingMost = 64 << 10
)

// putBlob adds to q the blob of data at that place, having written its chunks if it is large.
// Its rule is q's, but for the head, which nobody has before q.
func (s *Store) putBlob(ctx context.Context, q *request, p place, data []byte) error {
	x, err := s.pack(p, data)
	if err != nil {
		return err
	}
	return s.putParcel(ctx, q, x)
}

// putParcel is putBlob for data that is packed.
func (s *Store) putParcel(ctx context.Context, q *request, x parcel) error {
	if len(x.data) <= inlineMost {
		q.set(x.key, x.value())
		return nil
	}
	return s.putChunked(ctx, q, x)
}

// putChunked is putParcel for data that does not go with q, large or not.
func (s *Store) putChunked(ctx context.Context, q *request, x parcel) error {
	a := s.newAttempt()
	err := s.putChunks(ctx, x, a, func(part *request) {
		part.rule, part.run, part.num, part.lease = min(q.rule, held), q.run, q.num, q.lease
		if q.mark != nil {
			part.numbers = true
			part.set(q.mark, frame(q.mark, []byte(q.run.id)))
		}
	})
	if err != nil {
		return err
	}
	q.set(x.key, frame(x.key, x.about, x.chunkedEnd(a)))
	return nil
}

func (s *Store) newAttempt() attempt {
	return attempt{opened: s.opened, number: s.attempts.Add(1)}
}

// putChunks writes the chunks of x, in pieces, each with what prepare adds to its request. Beside
// requests of others a piece is one chunk, of which few are written: see [Store.owes]. Whoever
// gives up a piece gets his memory back while it is written: so what may be his is copied.
func (s *Store) putChunks(ctx context.Context, x parcel, a attempt, prepare func(part *request)) error {
	for i := 0; i*chunkSize < len(x.data); {
		part := newRequest()
		prepare(part)
		for end := i + int(s.pieceChunks.Load()); i < end && i*chunkSize < len(x.data); i++ {
			chunk := x.data[i*chunkSize : min((i+1)*chunkSize, len(x.data))]
			if x.how == 0 {
				chunk = bytes.Clone(chunk)
			}
			part.set(chunkOf(x.key, a, i), chunk)
		}
		if err := s.submitPiece(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// chunkedEnd is what a blob has in place of data that is in chunks.
func (x parcel) chunkedEnd(a attempt) []byte {
	end := binary.BigEndian.AppendUint64([]byte{cut | x.how}, uint64(len(x.data)))
	end = binary.BigEndian.AppendUint32(end, crc32.Checksum(x.data, castagnoli))
	return a.append(end)
}

// blob reads the blob of that run, "" if it is of none, in value, and what is about it, which
// has the given length. The result may share the memory of value.
func (v *view) blob(run string, key, value []byte, aboutLen int) (about, data []byte, err error) {
	payload, err := unframe(key, value)
	if err != nil {
		return nil, nil, err
	}
	if len(payload) < aboutLen+1 {
		return nil, nil, checkpoint.Damage("a blob can't be read")
	}
	about, how, rest := payload[:aboutLen], payload[aboutLen], payload[aboutLen+1:]
	if how&(chunked|cut) != 0 {
		if len(rest) != chunkedEndLen || how&chunked != 0 && how&cut != 0 {
			return nil, nil, checkpoint.Damage("a blob can't be read")
		}
		each := chunkSize
		if how&chunked != 0 {
			each = oldChunkSize
		}
		rest, err = v.chunks(key, decodeAttempt(rest[12:]), each,
			binary.BigEndian.Uint64(rest), binary.BigEndian.Uint32(rest[8:]))
		if err != nil {
			return nil, nil, err
		}
	}
	data, err = v.s.unpack(place{run, key, about}, rest, how&^(chunked|cut))
	return about, data, err
}

// chunks joins the chunks, each of which has so many bytes but the last one, of a value of that
// length and checksum.
func (v *view) chunks(key []byte, a attempt, each int, size uint64, sum uint32) ([]byte, error) {
	if size > MaxSnapshot+sealingMost {
		return nil, checkpoint.Damage("the length of a blob is impossible")
	}
	var data []byte // it grows with what is there, whatever size says
	for i := 0; uint64(len(data)) < size; i++ {
		part, err := v.get(chunkOf(key, a, i))
		if err != nil {
			return nil, err
		}
		if want := min(each, int(size)-len(data)); len(part) != want {
			return nil, checkpoint.Damage(fmt.Sprintf("chunk %d of a blob is missing or cut off", i))
		}
		data = append(grow(data, len(part), int(size)), part...)
	}
	if crc32.Checksum(data, castagnoli) != sum {
		return nil, checkpoint.Damage("the checksum of a blob differs")
	}
	return data, nil
}

// grow makes room in data for n bytes more, of the size that it may have in the end. It gets as
// much again as it has, so that what is there is not copied often.
func grow(data []byte, n, size int) []byte {
	if cap(data)-len(data) >= n {
		return data
	}
	return slices.Grow(data, min(size-len(data), max(n, len(data))))
}

// wholeAppend returns the envelope that the value of an append of that run holds, or is.
func (v *view) wholeAppend(run string, key, value []byte) ([]byte, error) {
	if len(value) < 4 || string(value[:4]) != frameMagic {
		if v.s.cipher == nil {
			return value, nil
		}
		if _, err := checkpoint.Unseal(value); err != nil {
			return nil, err
		}
		return v.s.unpack(place{run: run, key: key}, value, 0) // refuses what is plain
	}
	_, data, err := v.blob(run, key, value, 0)
	return data, err
}
