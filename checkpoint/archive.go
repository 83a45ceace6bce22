package checkpoint

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/pawlgo/pawl/state"
)

// An Archiver is a Store that hands out the sealed appends of a run, and takes them in.
// With it a run that [Export] and [Import] carry to another store keeps its times and its
// digests.
type Archiver interface {
	// Envelopes yields the sealed appends of the run in order, as the log stands when the loop
	// begins. They are only lent: their memory is valid until the next one is yielded or the loop
	// ends. Whoever takes them checks them. In place of one that is damaged comes the error, and a
	// store may yield those behind it, for [Verify]; else an error ends the loop.
	Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error]

	// Restore makes the run of the lease, which must not exist, out of what another store has of
	// it. All of it happens or nothing: until Restore returns nil there is no such run, and then it
	// is durable; the lease ends with it. The envelopes are valid until the next one is taken, and
	// whoever yields them may call the store meanwhile. ErrExists if the run exists, ErrFenced and
	// ErrCommitUnknown as for Append, ErrCorrupt if the envelopes do not form a log, or one that
	// can't go on, or the bases are not those that it refers to; an error among the envelopes is
	// returned as it is. Where several things are wrong the lease comes first, then that the run
	// exists.
	Restore(ctx context.Context, l Lease, a Archive) (Info, error)
}

// An Archive is all of a run but its id: what [Archiver.Restore] makes it of.
type Archive struct {
	Envelopes iter.Seq2[[]byte, error] // its sealed appends, in order; nil yields none
	Posts     []Post                   // messages that have not been drained
	Bases     [][]byte                 // that it refers to, each once; see [Info.Bases]
}

// Complete returns the error of an archive with which a run can't be restored whose appends
// were added to g, all of them. It is for stores.
func (a Archive) Complete(g *Log) error {
	if err := g.Whole(); err != nil {
		return Corrupt(g.info.Run, max(g.info.First, 1), err)
	}
	if reason := g.info.endless(); reason != "" {
		return Corrupt(g.info.Run, g.info.Head.Seq, damage(reason))
	}
	digests := make([]string, 0, len(a.Bases))
	for _, base := range a.Bases {
		digests = append(digests, BaseDigest(base))
	}
	slices.Sort(digests)
	if !slices.Equal(digests, g.info.Bases()) {
		return Corrupt(g.info.Run, 0, damage("the bases are not those that the log refers to"))
	}
	for _, p := range a.Posts {
		if err := p.Check(); err != nil {
			return err
		}
		if err := p.timely(); err != nil {
			return Corrupt(g.info.Run, 0, err)
		}
	}
	return nil
}

// What a run may come with that is restored leaves room for what follows: for the leases that a
// store gives behind it, on any run, and for its next entries.
const (
	mostEpoch = math.MaxInt64 / 2
	mostSeq   = math.MaxInt64 / 2
)

// endless says why a run that is restored could not go on, "" if it can.
func (i Info) endless() string {
	switch {
	case i.Epoch > mostEpoch:
		return fmt.Sprintf("epoch %d can't be reached", i.Epoch)
	case i.Head.Seq > mostSeq:
		return fmt.Sprintf("entry %d can't be reached", i.Head.Seq)
	}
	return i.untold()
}

// untold says why JSON can't tell of the run, as a trimming has to, "" if it can.
func (i Info) untold() string {
	if !state.Sayable(i.Created) || !state.Sayable(i.Updated) {
		return "the run is of an impossible time"
	}
	return ""
}

// timely returns an error unless JSON can say when p was posted, and whatever is posted behind it.
func (p Post) timely() error {
	if !state.Sayable(p.At) || !state.Sayable(p.At.AddDate(0, 0, 1)) {
		return damage(fmt.Sprintf("post %q is of an impossible time", p.ID))
	}
	return nil
}

// Sealed returns what is known of the run once the envelope in data follows i.Head. The
// error is that of [Unseal], or wraps ErrCorrupt and says why it can't follow.
func (i Info) Sealed(data []byte) (Info, error) {
	i, _, err := i.sealed(data, true)
	return i, err
}

func (i Info) sealed(data []byte, hashed bool) (Info, *Trimming, error) {
	e, err := i.follow(data)
	if err == nil && hashed {
		err = e.hashed()
	}
	if err != nil {
		return Info{}, nil, err
	}
	entries := make([]Entry, 0, min(e.Count, 256)) // the count may be forged
	for entry, err := range e.Entries() {
		if err != nil {
			return Info{}, nil, err
		}
		entries = append(entries, entry)
	}
	trimming, err := i.append(e.At, e.Head(), entries)
	if err != nil {
		return Info{}, nil, damage(err.Error())
	}
	i.Epoch = e.Epoch
	return i, trimming, nil
}

// follow unseals the envelope that has to follow i.Head.
func (i Info) follow(data []byte) (Envelope, error) {
	e, err := Unseal(data)
	switch {
	case err != nil:
		return Envelope{}, err
	case e.First != i.Head.Seq+1:
		return Envelope{}, damage(fmt.Sprintf("entry %d follows entry %d", e.First, i.Head.Seq))
	case e.Previous != i.Head.Digest:
		return Envelope{}, damage(fmt.Sprintf("entry %d does not follow the append before it", e.First))
	case !state.Sayable(e.At):
		return Envelope{}, damage(fmt.Sprintf("entry %d is of an impossible time", e.First))
	case e.Epoch < max(i.Epoch, 1) || e.Epoch > math.MaxInt64:
		return Envelope{}, damage(fmt.Sprintf("epoch %d follows epoch %d", e.Epoch, i.Epoch))
	}
	return e, nil
}
