package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Version is one version of a record, as it is stored.
type Version struct {
	Record *Record // the caller's; nil if it can't be read
	Number int     // counted from 1
	// Unverified says why nobody should rely on the version: it, or one before it, is not the
	// one that was written. "" if all versions up to this one are whole.
	Unverified string
}

// A chain is the versions of a record.
type chain struct {
	id     string
	head   checkpoint.Head
	all    []Version
	tree   tree
	broken *BrokenError // about the earliest one
}

// add adds what stands in the place of the next version, and why it can't be read, if it can't.
func (c *chain) add(data []byte, damage string) {
	v := Version{Number: len(c.all) + 1}
	if damage == "" {
		v.Record, damage = c.next(data)
	}
	if damage != "" && c.broken == nil {
		c.broken = &BrokenError{c.id, v.Number, damage}
	}
	if c.broken != nil {
		v.Unverified = c.broken.Error()
	}
	c.all = append(c.all, v)
	hash := "?"
	if v.Record != nil {
		hash = v.Record.ContentHash
	}
	c.tree.add(hash)
}

// next is the record that stands in the place of the next version, if it can be read, and why it
// is not that version, "" if it is.
func (c *chain) next(data []byte) (*Record, string) {
	r, err := decodeStored(data)
	if err != nil {
		return nil, err.Error()
	}
	return r, c.fault(r)
}

func (c *chain) fault(r *Record) string {
	switch before := len(c.all); {
	case r.ID != c.id:
		return fmt.Sprintf("it is a version of %q", r.ID)
	case r.MerkleRoot != c.tree.root():
		return "it was written behind other versions"
	case before > 0 && (c.all[before-1].Record == nil || r.ParentCRHash != c.all[before-1].Record.ContentHash):
		return "it does not follow the version before it"
	}
	return ""
}

// last is the last version, which can be relied on.
func (c *chain) last() (*Record, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	return c.all[len(c.all)-1].Record, nil
}

// root is the head of the tree.
func (c *chain) root() Root { return Root{len(c.all), c.tree.root()} }

// version is the version of a content hash, nil if there is none.
func (c *chain) version(hash string) *Version {
	for i := range c.all {
		if r := c.all[i].Record; r != nil && r.ContentHash == hash {
			return &c.all[i]
		}
	}
	return nil
}

// since is when an item of the record came to be, by what says whether a version has it.
func (c *chain) since(has func(*Record) bool) int64 {
	for i := range c.all {
		if r := c.all[i].Record; r != nil && has(r) {
			return r.LastModifiedAt
		}
	}
	return 0
}

// A ledger's log has two entries, by which it is to everybody else a completed run of a graph
// that nobody has, and one for each version.
const (
	logPrefix   = "pawl.record/"
	logGraph    = "pawl.record"
	logVersion  = "record.version"
	logPreamble = 2
)

// load reads all versions of a record. What is damaged is part of the chain, and no error.
func (l *Ledger) load(ctx context.Context, id string) (*chain, error) {
	c := &chain{id: id}
	if err := l.extend(ctx, c); err != nil {
		return nil, err
	}
	if len(c.all) == 0 {
		c.add(nil, "it is missing")
	}
	return c, nil
}

// loadMore loads what somebody has added to a record since it was loaded; or all of it, if that
// does not follow: under its id there may be another one by now.
func (l *Ledger) loadMore(ctx context.Context, c *chain) (*chain, error) {
	had := c.head
	if err := l.extend(ctx, c); err == nil && (c.head == had || c.head.Seq > had.Seq) && c.broken == nil {
		return c, nil
	}
	return l.load(ctx, c.id)
}

// extend reads what a chain has not.
func (l *Ledger) extend(ctx context.Context, c *chain) error {
	key := logPrefix + c.id
	info, err := l.store.Stat(ctx, key)
	switch {
	case errors.Is(err, checkpoint.ErrNotFound):
		return fmt.Errorf("%w: record %q", ErrNotFound, c.id)
	case err != nil:
		return err
	}
	next := c.head.Seq + 1
	c.head = info.Head
	for next <= info.Head.Seq {
		var damaged *checkpoint.CorruptError
		for e, err := range l.store.Read(ctx, key, next, info.Head.Seq) {
			if errors.As(err, &damaged) {
				break
			}
			if err != nil {
				return err
			}
			for ; next < e.Seq; next++ {
				c.hear(next, nil, "it is missing")
			}
			c.hear(e.Seq, &e, "")
			next = e.Seq + 1
		}
		if damaged == nil && next <= info.Head.Seq {
			damaged = &checkpoint.CorruptError{Run: key, Seq: next, Reason: "it is missing"}
		}
		if damaged != nil {
			for at := max(damaged.Seq, next); next <= at; next++ {
				c.hear(next, nil, damaged.Error())
			}
		}
	}
	return nil
}

// hear adds the entry of that number, which is nil if it is damaged.
func (c *chain) hear(seq uint64, e *checkpoint.Entry, damage string) {
	if seq <= logPreamble {
		if damage != "" && c.broken == nil {
			c.broken = &BrokenError{c.id, 1, damage}
		}
		return
	}
	var data []byte
	if damage == "" {
		data, damage = versionIn(e)
	}
	c.add(data, damage)
}

// versionIn is the version that an entry holds, and why it holds none, "" if it does.
func versionIn(e *checkpoint.Entry) ([]byte, string) {
	var n checkpoint.Note
	switch {
	case e.Kind != checkpoint.Noted || json.Unmarshal(e.Data, &n) != nil || n.Name != logVersion:
		return nil, "another entry stands in its place"
	case string(noteOf(n.Value).Data) != string(e.Data):
		return nil, "it is not stored as it was written"
	}
	return n.Value, ""
}

// noteOf is the entry of a version: a checkpoint.Note. It is not encoded as one, because package
// json would escape characters of the record (<, >, &, U+2028, U+2029), whose every byte counts.
func noteOf(data []byte) checkpoint.Entry {
	note := slices.Concat([]byte(`{"note":"`+logVersion+`","value":`), data, []byte("}"))
	return checkpoint.Entry{Kind: checkpoint.Noted, Data: note}
}
