package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"slices"
	"time"
)

// An envelope is what a store keeps of one append. All numbers are big-endian:
//
//	 0  magic "pawl"
//	 4  version of the format, 2
//	 5  codec of the payload, 1: a JSON object and a newline per entry
//	 6  flags, none yet
//	 8  length of the payload, 4 bytes
//	12  number of entries, 4 bytes
//	16  sequence number of the first entry, 8 bytes
//	24  when the append was made, milliseconds since 1970, 8 bytes
//	32  epoch of the lease, 8 bytes
//	40  digest of the append before it, 32 bytes
//	72  payload
//	    digest: SHA-256 of all the above, 32 bytes
//	    CRC-32C of all the above, 4 bytes
//
// The checksum finds accidents in a fraction of a microsecond, and who reads compares the digest
// with the one that the next envelope repeats: so what was put in another's place is found without
// hashing anything (ADR 0054). Whether a digest is that of its envelope, which only who has made
// the checksum fit can have changed, is for Verify, Export, Import and Restore to find.
//
// In version 1, which is read and not written any more, the checksum stands before the payload, at
// 72, and is of all but itself; the digest is that of the whole envelope and stands nowhere but in
// the next one.
const (
	magic        = "pawl"
	formatV1     = 1
	formatV2     = 2
	codecJSON    = 1
	headLen      = 72
	sumLen       = 4
	trailerLen   = len(Digest{}) + sumLen
	envelopeMost = headLen + trailerLen // what an envelope has beside its payload, in either version
)

// maxPayload keeps lengths far from what 32 bits can hold.
const maxPayload = math.MaxInt32

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// An Envelope is one append as it is stored. It shares the memory it was read from.
type Envelope struct {
	First    uint64    // sequence number of the first entry
	Count    int       // of entries, at least 1
	At       time.Time // when the append was made
	Epoch    uint64    // of the lease it was made under
	Previous Digest    // of the append before it, zero for the first

	data []byte // all of it
}

// Seal appends to dst the envelope of entries that follow the position after, and returns it with
// the position at its end. Seal does not keep entries. With an *[ArgumentError] it refuses none at
// all, an entry of an unknown kind, a string that is not UTF-8 and Data that is not JSON of UTF-8;
// of Delta and Outer it trusts the caller, who has just encoded them. ErrTooLarge if there are no
// numbers left for the entries.
func Seal(
	dst []byte, after Head, at time.Time, epoch uint64, entries []Entry,
) ([]byte, Head, error) {
	if len(entries) == 0 {
		return dst, Head{}, &ArgumentError{aCall, "list of entries", "is empty: give at least one"}
	}
	if after.Seq >= math.MaxUint64-uint64(len(entries)) { // Unseal would refuse it
		return dst, Head{}, fmt.Errorf("%w: no numbers are left behind entry %d", ErrTooLarge, after.Seq)
	}
	start := len(dst)
	dst = beginSeal(slices.Grow(dst, sizeOf(entries)), formatV2, after, at, epoch, len(entries))
	for i := range entries {
		var err error
		if dst, err = appendEntry(dst, &entries[i]); err != nil {
			return dst[:start], Head{}, &ArgumentError{aCall, fmt.Sprintf("entry %d", i), err.Error()}
		}
		dst = append(dst, '\n')
	}
	if len(dst)-start-headLen > maxPayload {
		return dst[:start], Head{}, ErrTooLarge
	}
	dst, digest := endSeal(dst, start)
	return dst, Head{Seq: after.Seq + uint64(len(entries)), Digest: digest}, nil
}

// beginSeal appends the head of an envelope, without its length.
func beginSeal(dst []byte, version byte, after Head, at time.Time, epoch uint64, count int) []byte {
	dst = append(dst, magic...)
	dst = append(dst, version, codecJSON, 0, 0, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(count))
	dst = binary.BigEndian.AppendUint64(dst, after.Seq+1)
	dst = binary.BigEndian.AppendUint64(dst, uint64(toMillisecond(at).UnixMilli()))
	dst = binary.BigEndian.AppendUint64(dst, epoch)
	return append(dst, after.Digest[:]...)
}

// endSeal ends the envelope that begins at start, and has its payload.
func endSeal(dst []byte, start int) ([]byte, Digest) {
	binary.BigEndian.PutUint32(dst[start+8:], uint32(len(dst)-start-headLen))
	digest := Digest(sha256.Sum256(dst[start:]))
	dst = append(dst, digest[:]...)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli)), digest
}

// sealTexts is [Seal] for entries that are encoded, in the version that they were sealed in.
// Whether they can be read is for Unseal to say, and whoever loops over them.
func sealTexts(dst []byte, version byte, after Head, at time.Time, epoch uint64, texts [][]byte) []byte {
	start := len(dst)
	dst = beginSeal(dst, version, after, at, epoch, len(texts))
	if version == formatV1 {
		dst = append(dst, make([]byte, sumLen)...)
	}
	for _, text := range texts {
		dst = append(append(dst, text...), '\n')
	}
	if version == formatV1 {
		endSealV1(dst[start:])
		return dst
	}
	dst, _ = endSeal(dst, start)
	return dst
}

func endSealV1(e []byte) {
	binary.BigEndian.PutUint32(e[8:], uint32(len(e)-headLen-sumLen))
	binary.BigEndian.PutUint32(e[headLen:], sumV1(e))
}

// sumV1 is the checksum of an envelope of version 1.
func sumV1(e []byte) uint32 {
	return crc32.Update(crc32.Checksum(e[:headLen], castagnoli), castagnoli, e[headLen+sumLen:])
}

// Unseal reads an envelope that fills data, checking everything but its entries, which
// [Envelope.Entries] reads, and its digest, for which see [Envelope.Head]. The error is ErrVersion
// for a version that is not known, whatever else data holds, and otherwise wraps ErrCorrupt and
// says what is wrong.
func Unseal(data []byte) (Envelope, error) {
	if len(data) < len(magic)+1 || string(data[:len(magic)]) != magic {
		return Envelope{}, damage("this is no envelope")
	}
	beside := envelopeMost
	switch v := data[4]; v {
	case formatV2:
	case formatV1:
		beside = headLen + sumLen
	default:
		return Envelope{}, fmt.Errorf("%w: envelope of version %d", ErrVersion, v)
	}
	if len(data) < beside {
		return Envelope{}, damage("the envelope is cut off")
	}
	if want := uint64(binary.BigEndian.Uint32(data[8:])); uint64(len(data)-beside) != want {
		return Envelope{}, damage("the envelope is not as long as it says")
	}
	if !summed(data) {
		return Envelope{}, damage("the checksum differs")
	}
	if data[5] != codecJSON || data[6] != 0 || data[7] != 0 {
		return Envelope{}, fmt.Errorf("%w: envelope of codec %d with flags %#x",
			ErrVersion, data[5], binary.BigEndian.Uint16(data[6:]))
	}
	e := opened(data)
	switch {
	case e.Count == 0 || e.Count > len(data):
		return Envelope{}, damage("the number of entries is impossible")
	case e.First == 0 || e.First > math.MaxUint64-uint64(e.Count):
		return Envelope{}, damage("the sequence number is impossible")
	}
	return e, nil
}

// opened is an envelope that fills data, which is one.
func opened(data []byte) Envelope {
	e := Envelope{
		First: binary.BigEndian.Uint64(data[16:]),
		Count: int(binary.BigEndian.Uint32(data[12:])),
		At:    time.UnixMilli(int64(binary.BigEndian.Uint64(data[24:]))).UTC(),
		Epoch: binary.BigEndian.Uint64(data[32:]),
		data:  data,
	}
	copy(e.Previous[:], data[40:])
	return e
}

// Last returns the sequence number of the last entry.
func (e Envelope) Last() uint64 { return e.First + uint64(e.Count) - 1 }

// Head returns the position at the end of the envelope. The digest is what the envelope says it is,
// which the checksum covers, or in version 1, which doesn't say, computed.
func (e Envelope) Head() Head {
	if len(e.data) == 0 || e.data[4] == formatV1 {
		return Head{Seq: e.Last(), Digest: sha256.Sum256(e.data)}
	}
	return Head{Seq: e.Last(), Digest: Digest(e.data[len(e.data)-trailerLen:])}
}

// hashed returns an error unless the digest that the envelope says it has is its own.
func (e Envelope) hashed() error {
	if e.data[4] != formatV1 && sha256.Sum256(e.data[:len(e.data)-trailerLen]) != e.Head().Digest {
		return damage("its digest is not that of what stands in it")
	}
	return nil
}

// payload are the entries as they are stored.
func (e Envelope) payload() []byte {
	if e.data[4] == formatV1 {
		return e.data[headLen+sumLen:]
	}
	return e.data[headLen : len(e.data)-trailerLen]
}

// Entries yields the entries in order. What they hold shares the envelope's memory, but
// for their strings. An entry that can't be read ends the loop with an error that wraps
// ErrCorrupt.
func (e Envelope) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for left := e.unread(); ; {
			var entry Entry
			more, err := left.take(&entry)
			if !more && err == nil || !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// An unread is what has not been read yet of the entries of an envelope.
type unread struct {
	b         []byte
	next, end uint64 // sequence numbers of the first of them, and behind the last
	at        time.Time
}

func (e *Envelope) unread() unread {
	return unread{b: e.payload(), next: e.First, end: e.First + uint64(e.Count), at: e.At}
}

// take reads the next entry into the zero entry e, if there is one. It leaves e zero if there is
// none, or one that can't be read, which it doesn't take.
func (u *unread) take(e *Entry) (more bool, err error) {
	if u.next == u.end {
		if len(bytes.TrimSpace(u.b)) > 0 {
			return false, damage("there are more entries than the envelope counts")
		}
		return false, nil
	}
	left, err := parseEntry(u.b, e)
	if err != nil {
		*e = Entry{}
		return false, err
	}
	e.Seq, e.At, u.b = u.next, u.at, left
	u.next++
	return true, nil
}

// sizeOf estimates the envelope of entries, so that it is allocated once.
func sizeOf(entries []Entry) int {
	size := envelopeMost
	for i := range entries {
		e := &entries[i]
		size += len(e.Path) + len(e.Outcome) + len(e.ID) + len(e.Post) +
			len(e.Delta) + len(e.Outer) + len(e.Data) + 96 // names of members
	}
	return size
}

// summed reports whether the checksum of an envelope, which has all its bytes, is right.
func summed(e []byte) bool {
	if e[4] == formatV1 {
		return binary.BigEndian.Uint32(e[headLen:]) == sumV1(e)
	}
	sum := len(e) - sumLen
	return binary.BigEndian.Uint32(e[sum:]) == crc32.Checksum(e[:sum], castagnoli)
}
