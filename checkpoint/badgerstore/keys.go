package badgerstore

import (
	"encoding/binary"
	"slices"
)

// The keys. Numbers are big-endian; a run is its number in the order of creation, which is
// never given twice.
//
//	c <key of a blob> <attempt u64 u32> <piece u32>   a piece of a value too large for one key
//	l <run u64> <first entry u64>   an append: its envelope, or a blob of it
//	m store                         id and format of the store
//	m seal                          of an encrypted store: see seal.go
//	m next                          a number above that of every run there ever was
//	n <digest>                      the number of runs that refer to a base
//	p <run u64> <post id>           a message that has not been drained
//	r <run u64>                     a run: see row
//	s <run u64> <entry u64>         a snapshot: a blob
//	t <run u64>                     a trimmed run whose keys are still being removed: see trimmer
//	u <digest> <attempt>            a base whose pieces are being written or removed
//	v <digest>                      a graph: a blob
//	x <run id>                      its number
//	y <run u64>                     a deleted run whose keys are still being removed
//	z <digest>                      a base: a blob
//
// Runs are numbered as they are made, and all but pieces stands behind the appends. So a table that
// Badger makes of what is new reaches from the oldest run that was appended to up to the end, and
// is not merged with the appends of runs before that. With pieces, which stand first, it reaches
// over all appends that there are, as it does in stores of earlier formats with what [kindsOf] has
// before them.
//
// Invariant: every transaction sets a key, also one that deletes, so that the newest
// version in the database is that of the last transaction. Opening depends on it.
const (
	chunkKey    = 'c'
	logKey      = 'l'
	metaKey     = 'm'
	countKey    = 'n'
	postKey     = 'p'
	rowKey      = 'r'
	snapshotKey = 's'
	trimmedKey  = 't'
	piecesKey   = 'u'
)

// The kinds of keys that are not the same in all formats. None stands for another thing in another
// one.
type kinds struct{ id, graph, deleted, base byte }

// kindsOf has the kinds of a store of that format.
var kindsOf = [...]kinds{
	1: {id: 'i', graph: 'g', deleted: 'd', base: 'b'},
	2: {id: 'x', graph: 'g', deleted: 'd', base: 'b'},
	3: {id: 'x', graph: 'v', deleted: 'y', base: 'z'},
}

// isGraph reports whether a key of that kind is of a graph, in whatever format.
func isGraph(kind byte) bool {
	return slices.ContainsFunc(kindsOf[oldestFormat:], func(k kinds) bool { return k.graph == kind })
}

// isBase reports whether a key of that kind is of a base, in whatever format.
func isBase(kind byte) bool {
	return slices.ContainsFunc(kindsOf[oldestFormat:], func(k kinds) bool { return k.base == kind })
}

var (
	storeKey = []byte("mstore")
	sealKey  = []byte("mseal")
	nextKey  = []byte("mnext")
)

// runKey returns the key of that kind of a run, or the prefix of all of that kind.
func runKey(kind byte, run uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, run)
}

// seqKey returns the key of an append or a snapshot.
func seqKey(kind byte, run, seq uint64) []byte {
	return appendSeqKey(make([]byte, 0, 17), kind, run, seq)
}

func appendSeqKey(b []byte, kind byte, run, seq uint64) []byte {
	b = append(b, kind)
	b = binary.BigEndian.AppendUint64(b, run)
	return binary.BigEndian.AppendUint64(b, seq)
}

// nameKey returns the key that ends in a name: of a run's id, a graph, or a base and its count.
func nameKey(kind byte, name string) []byte { return append([]byte{kind}, name...) }

// An attempt tells the pieces of one writing of a value from those of any other, of the
// same key: it is the newest transaction when the store was opened, and a number.
type attempt struct {
	opened uint64
	number uint32
}

func (a attempt) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, a.opened), a.number)
}

func decodeAttempt(b []byte) attempt {
	return attempt{opened: binary.BigEndian.Uint64(b), number: binary.BigEndian.Uint32(b[8:])}
}

// chunkOf returns the key of a piece of the blob of that key.
func chunkOf(key []byte, a attempt, i int) []byte {
	b := make([]byte, 0, len(key)+17)
	b = a.append(append(append(b, chunkKey), key...))
	return binary.BigEndian.AppendUint32(b, uint32(i))
}

// messageOf returns the key of the blob of a piece whose key is not of one length.
func messageOf(chunk []byte) []byte { return chunk[1 : len(chunk)-16] }

// piecesKeyOf returns the mark of pieces of the base of that digest.
func piecesKeyOf(digest string, a attempt) []byte { return a.append(nameKey(piecesKey, digest)) }

// seqOf returns the number at the end of a key of an append or a snapshot.
func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[9:17]) }

func runOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:9]) }
