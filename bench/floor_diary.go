package main

import (
	"crypto/sha256"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A diary is a log in memory: a chain of digests of what is written into it as JSON, with
// checksums.
type diary struct {
	log    []byte
	digest [sha256.Size]byte
}

// diaryBlock is how much memory is made at a time, as small appends of a run share it in a store.
const diaryBlock = 16 << 10

// seal returns what data, which is JSON, is in the log, valid until the next one.
func (d *diary) seal(data []byte) []byte {
	if len(d.log)+len(d.digest)+len(data) > cap(d.log) { // nothing is copied
		d.log = make([]byte, 0, max(diaryBlock, len(d.digest)+len(data)))
	}
	from := len(d.log)
	d.log = append(append(d.log, d.digest[:]...), data...)
	d.digest = sha256.Sum256(d.log[from:])
	_ = crc32.Checksum(d.log[from:], castagnoli)
	return d.log[from:]
}
