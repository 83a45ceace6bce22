package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// A manifest is a header of 8 bytes and records; a record is the length of its payload, the CRC-32C
// of it, 4 bytes each, and the payload, a message of changes: tables made and tables removed.
const (
	manifestHeader = 8
	recordHeader   = 8
)

// voidGhosts makes void the records of the manifest that name tables which are not there. It is for
// a live database that has failed to write them, where nothing else can be the reason. A void
// record is as long as it was, so whoever appends to the manifest meanwhile is not disturbed.
func voidGhosts(dir string) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, badger.ManifestFilename), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("mending the manifest: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(dir))
	if err != nil {
		return fmt.Errorf("mending the manifest: %w", err)
	}
	var ghosts []uint64
	for id := range m.Tables {
		if _, err := os.Stat(tablePath(dir, id)); errors.Is(err, os.ErrNotExist) {
			ghosts = append(ghosts, id)
		}
	}
	if len(ghosts) == 0 {
		return nil
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return fmt.Errorf("mending the manifest: %w", err)
	}
	for at := manifestHeader; at+recordHeader <= len(b); {
		end := at + recordHeader + int(binary.BigEndian.Uint32(b[at:]))
		if end > len(b) {
			break
		}
		payload := b[at+recordHeader : end]
		if slices.ContainsFunc(tablesMade(payload), func(id uint64) bool { return slices.Contains(ghosts, id) }) {
			voidMessage(payload)
			binary.BigEndian.PutUint32(b[at+4:], crc32.Checksum(payload, castagnoli))
			if _, err := f.WriteAt(b[at:end], int64(at)); err != nil {
				return fmt.Errorf("mending the manifest: %w", err)
			}
		}
		at = end
	}
	return f.Sync()
}

func tablePath(dir string, id uint64) string { return filepath.Join(dir, fmt.Sprintf("%06d.sst", id)) }

// tablesMade returns the numbers of the tables that a message of changes says were made. Its field
// 1 is a change, in which field 1 is the number and field 2 is 1 if the table was removed; all
// others are numbers too.
func tablesMade(message []byte) (made []uint64) {
	for len(message) > 0 {
		change, rest, ok := cutCounted(message[1:])
		if message[0] != 1<<3|2 || !ok {
			return made
		}
		var id, removed uint64
		for len(change) > 0 {
			value, n := binary.Uvarint(change[1:])
			if n <= 0 {
				return made
			}
			switch change[0] {
			case 1 << 3:
				id = value
			case 2 << 3:
				removed = value
			}
			change = change[1+n:]
		}
		if removed == 0 {
			made = append(made, id)
		}
		message = rest
	}
	return made
}

// cutCounted cuts off what stands behind its length.
func cutCounted(b []byte) (counted, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// voidMessage makes a message of at least 2 bytes say nothing: it is one field that nobody knows,
// the last that a tag of one byte can have, of zeros. Its length is written in 5 bytes where one
// does not suffice.
func voidMessage(b []byte) {
	clear(b)
	b[0] = 15<<3 | 2
	if size := len(b) - 2; size < 0x80 {
		b[1] = byte(size)
		return
	}
	size := len(b) - 6
	for i := range 5 {
		b[1+i] = byte(size>>(7*i)) & 0x7f
		if i < 4 {
			b[1+i] |= 0x80
		}
	}
}
