package record

import (
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// No byte of what is stored of a version can be another one: whichever is altered, in any of 50
// versions, that version is the one that does not fit. Done without a store, since a version is
// read from its entry and from what stands before it.
func TestEveryByteOfEveryVersionCounts(t *testing.T) {
	t.Parallel()
	by := Author{Type: dag.Agent, ID: "b"}
	c := &chain{id: "r"}
	parent := ""
	for version := 1; version <= 50; version++ {
		r := &Record{
			ID: "r", ParentCRHash: parent, MerkleRoot: c.tree.root(), CreatedBy: by, LastModifiedBy: by,
			Task: Task{Goal: fmt.Sprint(version), Status: TaskInProgress}, Metadata: Metadata{Priority: PriorityLow},
		}
		if err := r.Seal(); err != nil {
			t.Fatal(err)
		}
		parent = r.ContentHash
		data, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		entry := noteOf(data)
		for i := range entry.Data {
			for _, bit := range []byte{0x01, 0x20}[i%2 : i%2+1] {
				altered := append([]byte(nil), entry.Data...)
				altered[i] ^= bit
				stored, damage := versionIn(&checkpoint.Entry{Kind: checkpoint.Noted, Data: altered})
				if damage == "" {
					_, damage = c.next(stored)
				}
				if damage == "" {
					t.Fatalf("version %d: byte %d is not missed: %s", version, i, altered)
				}
			}
		}
		c.hear(uint64(logPreamble+version), &entry, "")
	}
	r := c.all[49].Record.Clone()
	r.MerkleRoot = c.tree.root() // it stands behind all, and follows another
	if err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, damage := c.next(data); damage == "" {
		t.Error("a version that does not follow the one before it is not missed")
	}
	if c.broken != nil || len(c.all) != 50 {
		t.Fatalf("as it was written it is broken: %v", c.broken)
	}
}

// A version of another record that stands in a record's log is not missed, whole as it is.
func TestVersionOfAnotherRecord(t *testing.T) {
	by := Author{Type: dag.Agent, ID: "b"}
	r := &Record{ID: "r", CreatedBy: by, LastModifiedBy: by, Task: Task{Status: TaskInProgress}, Metadata: Metadata{Priority: PriorityLow}}
	if err := r.Seal(); err != nil {
		t.Fatal(err)
	}
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for id, fits := range map[string]bool{"r": true, "s": false} {
		if _, damage := (&chain{id: id}).next(data); (damage == "") != fits {
			t.Errorf("as a version of %q it is damaged: %q", id, damage)
		}
	}
}
