package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/internal/misuse"
	"github.com/transparency-dev/merkle/proof"
)

// A Ledger keeps records in a store, each as a log of versions. Nothing is overwritten, every
// version names its author and the hash of the one before it, and every change is conditional on
// the version that it was made to. When a call returns nil what it wrote is durable, in the sense
// of the store; a refusal has changed nothing. Each call reads all versions of the record: a Ledger
// is made for hundreds of versions, not for millions.
//
// A Ledger checks what an author may do, and not who calls: the caller says who the author is. All
// methods are safe for concurrent use, also of several Ledgers over one store. Beside the errors
// that their docs name they return those of the store, among them [checkpoint.ErrCommitUnknown],
// after which a read shows what happened, and, if they change something, a [*BrokenError].
type Ledger struct {
	store checkpoint.Store
	owner string
	o     LedgerOptions
}

// LedgerOptions configure a [Ledger]. The zero LedgerOptions work.
type LedgerOptions struct {
	// Now tells the time. Nil means time.Now.
	Now func() time.Time
	// Overridden is the status of a decision that somebody has overridden: tentative, accepted or
	// contested. Zero means accepted.
	Overridden dag.DecisionStatus
}

// NewLedger returns a ledger over a store, which may hold the logs of runs as well. A ledger's own
// logs are completed runs of a graph named pawl.record, so nobody recovers or resumes them. Their
// ids begin with pawl.record/, which a Dispatcher refuses.
func NewLedger(store checkpoint.Store, o LedgerOptions) (*Ledger, error) {
	o.Overridden = cmp.Or(o.Overridden, dag.Accepted)
	switch {
	case misuse.Missing(store):
		return nil, &ArgumentError{"NewLedger", "store", "is nil: open one"}
	case !slices.Contains([]dag.DecisionStatus{dag.Tentative, dag.Accepted, dag.Contested}, o.Overridden):
		return nil, &ArgumentError{"NewLedger", "option Overridden",
			fmt.Sprintf("is %q: use tentative, accepted or contested", o.Overridden)}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Ledger{store, "ledger " + uuid.NewString(), o}, nil
}

// Create keeps a record as version 1 of a new one, and returns that. A record without an id gets
// one, one without creator the author; an id has at most 244 bytes. Its ParentCRHash may name a
// version of another record, which it then goes on from. ErrExists if there is a record of the id,
// checkpoint.ErrRunID if it can't be one. The record that is given does not change.
func (l *Ledger) Create(ctx context.Context, r *Record, by Author) (*Version, error) {
	if err := l.needs(ctx, "Create", by); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, &ArgumentError{"Create", "record", "is nil: make one, or use From"}
	}
	first := r.Clone()
	if first.ID == "" {
		first.ID = uuid.Must(uuid.NewV7()).String()
	}
	now := millis(l.o.Now())
	first.CreatedBy, first.CreatedAt = cmp.Or(r.CreatedBy, by), cmp.Or(r.CreatedAt, now)
	first.LastModifiedBy, first.LastModifiedAt = by, now
	first.MerkleRoot, first.MergedCRHash = "", ""
	if err := first.Seal(); err != nil {
		return nil, err
	}
	return l.begin(ctx, first.ID, first)
}

// begin makes a log of versions.
func (l *Ledger) begin(ctx context.Context, id string, versions ...*Record) (*Version, error) {
	opening, err := json.Marshal(checkpoint.Opening{Graph: logGraph, Labels: map[string]string{logGraph: id}})
	if err != nil {
		return nil, err
	}
	entries := []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}, {Kind: checkpoint.Completed}}
	for _, r := range versions {
		data, err := r.Encode()
		if err != nil {
			return nil, err
		}
		entries = append(entries, noteOf(data))
	}
	exists := fmt.Errorf("%w: record %q", ErrExists, id)
	switch _, err := l.store.Stat(ctx, logPrefix+id); {
	case err == nil:
		return nil, exists
	case errors.Is(err, checkpoint.ErrRunID): // of the log, whose id is longer than what the caller gave
		return nil, fmt.Errorf("%w: record %.64q: give an id of 1 to %d bytes of UTF-8 without control characters",
			checkpoint.ErrRunID, id, 256-len(logPrefix))
	case !errors.Is(err, checkpoint.ErrNotFound):
		return nil, err
	}
	err = l.append(ctx, id, checkpoint.Head{}, entries)
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil, exists
	}
	if err != nil {
		return nil, err
	}
	return &Version{Record: versions[len(versions)-1], Number: len(versions)}, nil
}

// patience is how long a lease is waited for that somebody else holds: who writes holds it for
// one append. A store that takes one back may take as long.
const patience = 10 * time.Second

// append appends under a lease of its own.
func (l *Ledger) append(ctx context.Context, id string, after checkpoint.Head, entries []checkpoint.Entry) error {
	var lease checkpoint.Lease
	var asked time.Time
	wait := time.Millisecond
	for begun := time.Now(); ; wait = min(2*wait, 50*time.Millisecond) {
		var err error
		asked = time.Now()
		if lease, err = l.store.Acquire(ctx, logPrefix+id, l.owner+" "+uuid.NewString()); err == nil {
			break
		}
		if !errors.Is(err, checkpoint.ErrBusy) || time.Since(begun) > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
	kept, stop := checkpoint.Keep(ctx, l.store, lease, asked)
	_, err := l.store.Append(kept, lease, after, entries)
	if kept.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		err = context.Cause(kept) // the lease is lost
	}
	stop()
	// What was appended is. A store that can't release has its own way to end leases.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = l.store.Release(last, lease)
	return err
}

// write adds a version, which change makes of those that are there, again and again until no other
// writer was faster. A change that returns nil writes nothing.
func (l *Ledger) write(
	ctx context.Context, id string, by Author, change func(*chain) (*Record, error),
) (*Version, error) {
	for c, err := l.load(ctx, id); ; c, err = l.loadMore(ctx, c) {
		if err != nil {
			return nil, err
		}
		head, err := c.last()
		if err != nil {
			return nil, err
		}
		next, err := change(c)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return &Version{Record: head, Number: len(c.all)}, nil
		}
		next.ID, next.ParentCRHash, next.MerkleRoot = c.id, head.ContentHash, c.tree.root()
		next.CreatedBy, next.CreatedAt = head.CreatedBy, head.CreatedAt
		next.LastModifiedBy, next.LastModifiedAt = by, max(millis(l.o.Now()), head.LastModifiedAt)
		if err := next.Seal(); err != nil {
			return nil, err
		}
		data, err := next.Encode()
		if err != nil {
			return nil, err
		}
		err = l.append(ctx, id, c.head, []checkpoint.Entry{noteOf(data)})
		if err == nil {
			return &Version{Record: next, Number: len(c.all) + 1}, nil
		}
		if !errors.Is(err, checkpoint.ErrConflict) {
			return nil, err
		}
	}
}

// Get returns the last version of a record. If that version or one before it is broken and it can
// still be read, Version.Unverified says so; if it can't be read the error is a [*BrokenError].
func (l *Ledger) Get(ctx context.Context, id string) (*Version, error) {
	if err := l.called(ctx, "Get"); err != nil {
		return nil, err
	}
	c, err := l.load(ctx, id)
	if err != nil {
		return nil, err
	}
	if v := &c.all[len(c.all)-1]; v.Record != nil {
		return v, nil
	}
	return nil, c.broken
}

// History returns all versions of a record, oldest first, those that are broken among them.
func (l *Ledger) History(ctx context.Context, id string) ([]Version, error) {
	if err := l.called(ctx, "History"); err != nil {
		return nil, err
	}
	c, err := l.load(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.all, nil
}

// A Verdict is what [Ledger.Verify] has found.
type Verdict struct {
	Valid bool
	// BrokenAt is the earliest version that is broken, counted from 1; 0 if Valid, or if all that
	// is known is that some version is not the one that it was.
	BrokenAt int
	Reason   string // "" if Valid
	Root     Root   // of the versions that are there
}

// Verify reads a record and tells whether its versions are whole: each is what was hashed, names
// the one before it, and was written behind those that are there.
//
// That alone shows damage and clumsy changes. Roots that were kept elsewhere ([Ledger.Root]) also
// show that a version was changed and all later hashes computed anew, and that versions were cut
// off. Nobody signs a record: without such a root a chain can't show that it is the one that others
// have seen.
//
// A version that this program can't read, because a later program wrote it, is not broken: the
// error is [checkpoint.ErrVersion].
func (l *Ledger) Verify(ctx context.Context, id string, trusted ...Root) (Verdict, error) {
	if err := l.called(ctx, "Verify"); err != nil {
		return Verdict{}, err
	}
	c, err := l.load(ctx, id)
	if err != nil {
		return Verdict{}, err
	}
	return c.verdict(trusted)
}

// verdict verifies what was read, also against trusted roots.
func (c *chain) verdict(trusted []Root) (Verdict, error) {
	v := Verdict{Valid: true, Root: c.root()}
	if c.broken != nil {
		return Verdict{BrokenAt: c.broken.Version, Reason: c.broken.Reason, Root: v.Root}, nil
	}
	for _, t := range trusted {
		switch {
		case t.Size < 1:
			return Verdict{}, &ArgumentError{"Verify", "trusted root", "is of no versions: give one of Root"}
		case !isHash(t.Hash):
			return Verdict{}, &ArgumentError{"Verify", "trusted root", fmt.Sprintf("is %.80q, which is no SHA-256 in hexadecimal", t.Hash)}
		case t.Size > len(c.all):
			return Verdict{
				BrokenAt: len(c.all) + 1, Root: v.Root,
				Reason: fmt.Sprintf("there were %d versions, and are %d", t.Size, len(c.all)),
			}, nil
		case !strings.EqualFold(c.tree.first(t.Size).root(), t.Hash):
			return Verdict{
				Root:   v.Root,
				Reason: fmt.Sprintf("the first %d versions are not those of the trusted root: they were written anew", t.Size),
			}, nil
		}
	}
	return v, nil
}

// Root returns the head of the tree over the versions of a record, to be kept elsewhere.
func (l *Ledger) Root(ctx context.Context, id string) (Root, error) {
	c, err := l.whole(ctx, "Root", id)
	if err != nil {
		return Root{}, err
	}
	return c.root(), nil
}

// whole loads a record that is not broken.
func (l *Ledger) whole(ctx context.Context, call, id string) (*chain, error) {
	if err := l.called(ctx, call); err != nil {
		return nil, err
	}
	c, err := l.load(ctx, id)
	if err == nil && c.broken != nil {
		err = c.broken
	}
	return c, err
}

// Inclusion proves that a version, counted from 1, is under the root of all versions.
func (l *Ledger) Inclusion(ctx context.Context, id string, version int) (*InclusionProof, error) {
	c, err := l.whole(ctx, "Inclusion", id)
	if err != nil {
		return nil, err
	}
	if version < 1 || version > len(c.all) {
		return nil, fmt.Errorf("%w: record %q has the versions 1 to %d, and no %d", ErrNotFound, id, len(c.all), version)
	}
	hashes, err := c.tree.prove(proof.Inclusion(uint64(version-1), uint64(len(c.all))))
	return &InclusionProof{version, len(c.all), hashes}, err
}

// Consistency proves that the first versions, that many, are still the first of all versions.
func (l *Ledger) Consistency(ctx context.Context, id string, first int) (*ConsistencyProof, error) {
	c, err := l.whole(ctx, "Consistency", id)
	if err != nil {
		return nil, err
	}
	if first < 1 || first > len(c.all) {
		return nil, fmt.Errorf("%w: record %q has %d versions, and not %d", ErrNotFound, id, len(c.all), first)
	}
	hashes, err := c.tree.prove(proof.Consistency(uint64(first), uint64(len(c.all))))
	return &ConsistencyProof{first, len(c.all), hashes}, err
}

// needs refuses what no change can do without.
func (l *Ledger) needs(ctx context.Context, call string, by Author) error {
	if err := l.called(ctx, call); err != nil {
		return err
	}
	if !slices.Contains([]dag.Authority{dag.Human, dag.Agent, dag.System}, by.Type) || by.ID == "" {
		return &ArgumentError{call, "author", "needs a type (human, agent or system) and an id"}
	}
	return nil
}
