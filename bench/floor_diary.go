package main

import (
	"crypto/sha256"
	"encoding/json"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A diary is a log in memory: a chain of digests of what is written into it as JSON, with checksums.
type diary struct {
	log    []byte
	digest [sha256.Size]byte
}

// diaryBlock is how much memory is made at a time, as small appends of a run share it in a store.
const diaryBlock = 16 << 10

// append returns what v is in the log, which is valid until the next one.
func (d *diary) append(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return d.seal(data), nil
}

// seal is append of what is JSON.
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

// An excerpt is about what an entry of a log says.
type excerpt struct {
	Kind, Path  string
	Delta, Data json.RawMessage
}

var countsOne = json.RawMessage(`{"Count":1}`)

func about(kind, data string) excerpt {
	return excerpt{Kind: kind, Path: "node-9", Delta: countsOne, Data: json.RawMessage(data)}
}
