package checkpoint

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
)

// A Log follows the sealed appends of a run, from the first that is kept, and learns from them
// what is known of the run. It is for stores that take in runs of others, and for who verifies.
// Its zero value knows nothing; [NewLog] makes one.
type Log struct {
	info     Info
	start    Head   // the position before the first append
	last     uint64 // entry of the first append
	trimming *Trimming
	unhashed bool // digests are taken for what they say they are
}

// NewLog returns the log of that run, which has no appends yet.
func NewLog(run string) *Log { return &Log{info: Info{Run: run}} }

// Info is what is known of the run. It is all there is to know once [Log.Whole] returns nil.
func (g *Log) Info() Info { return g.info }

// Add adds the next append. The error is that of [Info.Sealed], and then nothing was added.
func (g *Log) Add(data []byte) error {
	from := g.info
	if from.Head.Seq == 0 {
		e, err := Unseal(data)
		if err != nil {
			return err
		}
		if e.First > 1 { // whether a trimming says so is for Whole to find out
			from.Head = Head{Seq: e.First - 1, Digest: e.Previous}
		}
		g.start, g.last = from.Head, e.Last()
	}
	info, trimming, err := from.sealed(data, !g.unhashed)
	if err != nil {
		return err
	}
	g.info = info
	if trimming != nil {
		g.trimming = trimming
	}
	return nil
}

// added yields the entries of an append that a log has taken: it has read every one.
func added(data []byte) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for e := range opened(data).Entries() {
			if !yield(e) {
				return
			}
		}
	}
}

// checked returns an error if an append that a log has taken holds what Seal trusts its callers
// with: nobody has sealed that.
func checked(data []byte) error {
	for e := range added(data) {
		for _, raw := range []json.RawMessage{e.Delta, e.Outer, e.Data} {
			if len(raw) > 0 && !isJSON(raw) {
				return damage(fmt.Sprintf("entry %d holds what is no JSON", e.Seq))
			}
		}
	}
	return nil
}

// untrusted is the first entry of the run that can't be trusted if what follows can't be added to
// the log. The oldest one that is kept, which the store knows, is missing if the log begins behind
// it.
func (g *Log) untrusted(oldest uint64) uint64 {
	if g.info.Head.Seq == 0 || g.start.Seq >= oldest {
		return oldest
	}
	return g.info.Head.Seq + 1
}

// Whole returns an error unless the log begins where it has to: at its first entry, or where the
// newest trimming says. The error wraps ErrCorrupt.
func (g *Log) Whole() error {
	switch {
	case g.info.Head.Seq == 0:
		return damage("there is no append")
	case g.info.First == 0:
		return damage("the beginning of the log is missing")
	case g.trimming == nil:
		return nil
	case g.info.First <= g.start.Seq || g.info.First > g.last:
		return damage("the log does not begin where it was trimmed")
	case g.start.Seq > 0 && g.trimming.Previous != hex.EncodeToString(g.start.Digest[:]):
		return damage("the log does not follow what was trimmed")
	}
	return nil
}
