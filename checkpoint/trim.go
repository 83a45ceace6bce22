package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A TrimmedError says that a log does not begin where it was asked for, because it was trimmed.
// errors.Is finds [ErrTrimmed].
type TrimmedError struct {
	Run   string
	First uint64 // the oldest entry that is there
}

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("checkpoint: run %q was trimmed: its log begins at entry %d: read from there", e.Run, e.First)
}

func (e *TrimmedError) Unwrap() error { return ErrTrimmed }

// Trimming reads what [Store.Trim] was given, for a run of which i is known. It returns an error
// unless the entry trims something that is there, and every base it names is among those that were
// given, none of them empty, or that the run has; ErrCorrupt if no entry can say what is known of
// the run. It is for stores.
func (i Info) Trimming(entry Entry, bases [][]byte) (Trimming, error) {
	var t Trimming
	refuse := func(argument, reason string, args ...any) (Trimming, error) {
		return Trimming{}, &ArgumentError{"Trim", argument, fmt.Sprintf(reason, args...)}
	}
	if entry.Kind != Trimmed {
		return refuse("entry", "is of kind %s: give one of kind %s", entry.Kind, Trimmed)
	}
	if err := json.Unmarshal(entry.Data, &t); err != nil {
		return refuse("entry", "has data that is no trimming: %v", err)
	}
	if t.First <= max(i.First, 1) || t.First > i.Head.Seq+1 {
		return refuse("first entry", "is %d: name one from %d to %d, or trim nothing",
			t.First, max(i.First, 1)+1, i.Head.Seq+1)
	}
	if reason := i.untold(); reason != "" { // one that was restored before that was looked at
		return Trimming{}, Corrupt(i.Run, 0, damage(reason))
	}
	known := i.Bases()
	for _, base := range bases {
		if len(base) == 0 {
			return refuse("base", "is empty: give the machine that the entry names")
		}
		known = append(known, BaseDigest(base))
	}
	if what := t.fault(); what != "" {
		return refuse("entry", "is no trimming: %s", what)
	}
	named := []string{t.Base}
	for _, p := range t.Pins {
		named = append(named, p.Base)
	}
	for _, digest := range named {
		if !slices.Contains(known, digest) {
			return refuse("entry", "names the base %.80q, which is neither given nor the run's", digest)
		}
	}
	for _, base := range bases {
		if digest := BaseDigest(base); !slices.Contains(named, digest) {
			return refuse("base", "of digest %s is not named by the entry", digest)
		}
	}
	return t, nil
}

// fault says why t can't be what trims a run, "" if it can: it has to drop something, and to pin
// nothing but that.
func (t *Trimming) fault() string {
	if t.First < 2 {
		return fmt.Sprintf("nothing lies before entry %d", t.First)
	}
	for _, p := range t.Pins {
		if p.Seq == 0 || p.Seq >= t.First {
			return fmt.Sprintf("it has a pin of entry %d: only what lies before entry %d needs one", p.Seq, t.First)
		}
	}
	return ""
}

// Entry returns the entry to append that trims the run of which i is known, for which
// [Info.Trimming] has returned t. previous is the digest of the append before the one that holds
// t.First. It is for stores.
func (t Trimming) Entry(i Info, entry Entry, previous Digest) Entry {
	t.Previous = hex.EncodeToString(previous[:])
	t.Known = Known{
		Graph: i.Graph, Digest: i.Digest, Labels: i.Labels, Correlation: i.Correlation,
		Origin: i.Origin, Status: i.Status, Turn: i.Turn, Created: i.Created, Updated: i.Updated,
	}
	data, err := json.Marshal(t)
	if err != nil {
		panic("checkpoint: a trimming is made of strings, numbers and times: " + err.Error())
	}
	entry.Data = data
	return entry
}

// trimmed is what is known of the run behind a [Trimmed] entry.
func (i Info) trimmed(t *Trimming) Info {
	k := &t.Known
	i.First, i.Base, i.Pins = t.First, t.Base, t.Pins
	i.Graph, i.Digest, i.Labels, i.Correlation = k.Graph, k.Digest, k.Labels, k.Correlation
	i.Origin, i.Turn = k.Origin, k.Turn
	i.Status, i.Created, i.Updated = k.Status, k.Created.UTC(), k.Updated.UTC()
	return i
}

// A Known is what a store knew of a run when it was trimmed, which the entries told that are
// gone.
type Known struct {
	Graph       string            `json:"graph"`
	Digest      string            `json:"digest"`
	Labels      map[string]string `json:"labels,omitempty"`
	Correlation string            `json:"correlation,omitempty"`
	Origin      *Origin           `json:"origin,omitempty"`
	Status      Status            `json:"status"`
	Turn        int               `json:"turn"`
	Created     time.Time         `json:"created"`
	Updated     time.Time         `json:"updated"`
}
