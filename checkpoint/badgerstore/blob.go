package badgerstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/pawlgo/pawl/checkpoint"
)

// A blob is a value that may be too large for one key: a frame of some bytes about it, and
// then either 0 and the value, or 1, its length, its CRC-32C and an attempt. Then the value
// is in chunks, under keys made of the blob's and the attempt.
//
// Chunks are written before the blob's key, each in a transaction that it shares with the
// appends of other runs: so a large value keeps nobody waiting for long, and exists when
// its key does. Two who write one key do not meddle with each other's chunks, only the one
// whose key is written counts. Chunks without a key, of the other or of a process that died,
// are removed with the run.
const (
	inlineMost = 512 << 10
	chunkSize  = 256 << 10
)

const (
	inline  = 0
	chunked = 1
)

// putBlob adds to q the blob of data under key, having written its chunks if it is large.
// Its rule is q's, but for the head, which nobody has before q.
func (s *Store) putBlob(ctx context.Context, q *request, key, about, data []byte) error {
	if len(data) <= inlineMost {
		q.set(key, frame(key, about, []byte{inline}, data))
		return nil
	}
	a := s.newAttempt()
	err := s.putChunks(ctx, key, a, data, func(part *request) {
		part.rule, part.run, part.lease = min(q.rule, held), q.run, q.lease
	})
	if err != nil {
		return err
	}
	q.set(key, frame(key, about, chunkedEnd(data, a)))
	return nil
}

func (s *Store) newAttempt() attempt {
	return attempt{opened: s.opened, number: s.attempts.Add(1)}
}

// putChunks writes the chunks of data, each with what prepare adds to its request.
func (s *Store) putChunks(
	ctx context.Context, key []byte, a attempt, data []byte, prepare func(part *request),
) error {
	for i := 0; i*chunkSize < len(data); i++ {
		part := newRequest()
		prepare(part)
		part.set(chunkOf(key, a, i), data[i*chunkSize:min((i+1)*chunkSize, len(data))])
		if err := s.submitBulk(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// chunkedEnd is what a blob has in place of data that is in chunks.
func chunkedEnd(data []byte, a attempt) []byte {
	end := binary.BigEndian.AppendUint64([]byte{chunked}, uint64(len(data)))
	end = binary.BigEndian.AppendUint32(end, crc32.Checksum(data, castagnoli))
	return a.append(end)
}

// blob reads the blob in value, and what is about it, which has the given length. The
// result may share the memory of value.
func (v *view) blob(key, value []byte, aboutLen int) (about, data []byte, err error) {
	payload, err := unframe(key, value)
	if err != nil {
		return nil, nil, err
	}
	if len(payload) < aboutLen+1 {
		return nil, nil, checkpoint.Damage("a blob can't be read")
	}
	about, rest := payload[:aboutLen], payload[aboutLen+1:]
	switch kind := payload[aboutLen]; {
	case kind == inline:
		return about, rest, nil
	case kind == chunked && len(rest) == 24:
		data, err = v.chunks(key, decodeAttempt(rest[12:]),
			binary.BigEndian.Uint64(rest), binary.BigEndian.Uint32(rest[8:]))
		return about, data, err
	}
	return nil, nil, checkpoint.Damage("a blob can't be read")
}

// chunks joins the chunks of a value of that length and checksum.
func (v *view) chunks(key []byte, a attempt, size uint64, sum uint32) ([]byte, error) {
	if size > MaxSnapshot {
		return nil, checkpoint.Damage("the length of a blob is impossible")
	}
	data := make([]byte, 0, size)
	for i := 0; uint64(len(data)) < size; i++ {
		part, err := get(v.txn, chunkOf(key, a, i))
		if err != nil {
			return nil, err
		}
		if want := min(chunkSize, int(size)-len(data)); len(part) != want {
			return nil, checkpoint.Damage(fmt.Sprintf("chunk %d of a blob is missing or cut off", i))
		}
		data = append(data, part...)
	}
	if crc32.Checksum(data, castagnoli) != sum {
		return nil, checkpoint.Damage("the checksum of a blob differs")
	}
	return data, nil
}

// wholeAppend returns the envelope that an append's value holds, or is.
func (v *view) wholeAppend(key, value []byte) ([]byte, error) {
	if len(value) < 4 || string(value[:4]) != frameMagic {
		return value, nil
	}
	_, data, err := v.blob(key, value, 0)
	return data, err
}
