package storetest

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// endOfTime is an instant that JSON can say where it is told, and not in UTC: there it is in the
// year 10000.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -23*60*60))

// A run that could not go on is not restored: one of a time that JSON can't say, which the next
// Trim, export or answer would have to, or one behind whose last entry there are no numbers left.
func restoreOfWhatCantGoOn(t *trial, s checkpoint.Store) {
	a := archiver(t, s)
	base := small(1)
	trimmed := func(first uint64, created, updated time.Time) checkpoint.Archive {
		entry := checkpoint.Entry{Kind: checkpoint.Trimmed, Data: encode(checkpoint.Trimming{
			First: first, Base: checkpoint.BaseDigest(base), Previous: strings.Repeat("0", 64),
			Known: checkpoint.Known{Graph: "graph", Status: checkpoint.StatusCompleted, Turn: 1, Created: created, Updated: updated},
		})}
		return checkpoint.Archive{Envelopes: lent([][]byte{sealedAt(t, checkpoint.Head{Seq: first - 1}, old, entry)}), Bases: [][]byte{base}}
	}
	begun := func(at time.Time, posts ...checkpoint.Post) checkpoint.Archive {
		first := sealedAt(t, checkpoint.Head{}, old, opened("graph", nil))
		e, err := checkpoint.Unseal(first)
		if err != nil {
			t.Fatal(err)
		}
		return archive(lent([][]byte{first, sealedAt(t, e.Head(), at, done(1))}), posts...)
	}
	for name, from := range map[string]checkpoint.Archive{
		"an append behind the year 9999":          begun(endOfTime),
		"an append before the year 0":             begun(time.UnixMilli(math.MinInt64 / 2)),
		"a run that was made after the year 9999": trimmed(7, endOfTime, old),
		"a run that changed after the year 9999":  trimmed(7, old, endOfTime),
		"a message of the year 10000":             begun(old, checkpoint.Post{ID: "m", Kind: "turn", At: endOfTime}),
		"a message of the last instant there is":  begun(old, checkpoint.Post{ID: "m", Kind: "turn", At: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)}),
		"the last number there is":                trimmed(math.MaxUint64-1, old, old),
		"a number that only such a file has":      trimmed(math.MaxUint64/2, old, old),
	} {
		_, err := a.Restore(t.Context(), owned(t, s, name), from)
		wantErr(t, err, checkpoint.ErrCorrupt, "Restore of %s", name)
		_, err = s.Stat(t.Context(), name)
		wantErr(t, err, checkpoint.ErrNotFound, "Stat after a Restore of %s", name)
	}
	info, err := a.Restore(t.Context(), owned(t, s, "run"), trimmed(7, old, old))
	if err != nil {
		t.Fatal(err)
	}
	trim(t, s, "run", info.Head.Seq+1, small(2))
	wantVerified(t, s)
}

// sealedAt is the envelope of entries that follow a position, of that time.
func sealedAt(t *trial, after checkpoint.Head, at time.Time, entries ...checkpoint.Entry) []byte {
	t.Helper()
	envelope, _, err := checkpoint.Seal(nil, after, at, 1, entries)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(envelope)
}
