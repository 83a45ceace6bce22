package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// An unheardOf is a store that has one run, whatever its log says.
type unheardOf struct {
	*memory.Store
	info           checkpoint.Info
	envelope, base []byte
}

func (u *unheardOf) Stat(context.Context, string) (checkpoint.Info, error)    { return u.info, nil }
func (u *unheardOf) Posts(context.Context, string) ([]checkpoint.Post, error) { return nil, nil }
func (u *unheardOf) Base(context.Context, string, string) ([]byte, error)     { return u.base, nil }
func (u *unheardOf) Envelopes(context.Context, string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield(u.envelope, nil) }
}

// lateInUTC is an instant of the year 9999 where it is told, and of the year 10000 in UTC.
var lateInUTC = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -23*60*60))

// trimmedAt is a store with the run whose log was trimmed to that entry and that was made at that
// time.
func trimmedAt(t *testing.T, first uint64, created time.Time) *unheardOf {
	t.Helper()
	u := &unheardOf{Store: new(memory.Store), base: []byte("{}")}
	data, err := json.Marshal(checkpoint.Trimming{
		First: first, Base: checkpoint.BaseDigest(u.base), Previous: strings.Repeat("0", 64),
		Known: checkpoint.Known{Graph: "graph", Digest: "digest", Status: checkpoint.StatusCompleted, Turn: 1, Created: created},
	})
	if err != nil {
		t.Fatal(err)
	}
	u.envelope, _, err = checkpoint.Seal(nil, checkpoint.Head{Seq: first - 1}, time.Now(), 1,
		[]checkpoint.Entry{{Kind: checkpoint.Trimmed, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	log := checkpoint.NewLog("run")
	if err := log.Add(u.envelope); err != nil {
		t.Fatal(err)
	}
	u.info = log.Info()
	return u
}

// A file of a run that could not go on is refused: one of a time that no entry could say, by which
// the next Trim ended the process, or one that has used up the numbers of entries, behind which
// what was appended was lost.
func TestImportRefusesWhatCantGoOn(t *testing.T) {
	for what, from := range map[string]*unheardOf{
		"a run of the year 10000":  trimmedAt(t, 7, lateInUTC),
		"the last number there is": trimmedAt(t, math.MaxUint64-1, time.Now()),
	} {
		superRefused(t, new(memory.Store), superExport(t, from, "run"), 0, checkpoint.ErrCorrupt, what)
	}
	superImport(t, new(memory.Store), superExport(t, trimmedAt(t, 7, time.Now()), "run"))
}

// A run of an impossible time that a store has already is not trimmed, and the error says why.
func TestTrimmingOfAnImpossibleTime(t *testing.T) {
	from := trimmedAt(t, 7, lateInUTC)
	data, err := json.Marshal(checkpoint.Trimming{First: 8, Base: from.info.Base})
	if err != nil {
		t.Fatal(err)
	}
	_, err = from.info.Trimming(checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, nil)
	if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "time") {
		t.Errorf("Trimming = %v, want ErrCorrupt", err)
	}
}

// What no number is left for is not sealed: no log could hold it.
func TestSealAtTheEndOfNumbers(t *testing.T) {
	entries := make([]checkpoint.Entry, 3)
	for i := range entries {
		entries[i].Kind = checkpoint.Noted
	}
	for after, fits := range map[uint64]bool{math.MaxUint64 - 4: true, math.MaxUint64 - 3: false, math.MaxUint64: false} {
		prefix := []byte("kept")
		data, head, err := checkpoint.Seal(prefix, checkpoint.Head{Seq: after}, time.Now(), 1, entries)
		if !fits {
			if !errors.Is(err, checkpoint.ErrTooLarge) || !bytes.Equal(data, prefix) || head.Seq != 0 {
				t.Errorf("Seal behind entry %d = %d bytes, head at %d, %v", after, len(data), head.Seq, err)
			}
			continue
		}
		if e, uerr := checkpoint.Unseal(data[len(prefix):]); err != nil || uerr != nil || e.Head() != head {
			t.Errorf("Seal behind entry %d = head at %d, %v; Unseal = %v", after, head.Seq, err, uerr)
		}
	}
}

// A line of negative length is refused before anything is read, as what can't be an argument.
func TestImportOfNegativeLines(t *testing.T) {
	read := strings.NewReader("a line")
	_, err := checkpoint.Import(t.Context(), new(memory.Store), read, checkpoint.ImportOptions{LineBytes: -1})
	var refused *checkpoint.ArgumentError
	if !errors.As(err, &refused) || refused.Call != "Import" || refused.Argument != "option LineBytes" {
		t.Errorf("Import = %v, want an ArgumentError of the option LineBytes", err)
	}
	if read.Len() != len("a line") {
		t.Error("the reader was read")
	}
}

// begunAt seals the first append of a log: of these kinds and data, in order.
func begunAt(t *testing.T, entries ...checkpoint.Entry) []byte {
	t.Helper()
	data, _, err := checkpoint.Seal(nil, checkpoint.Head{}, time.Now(), 1, entries)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// An archive whose log was trimmed and lacks nothing, or has a pin of what it does not lack, is
// refused: a file of one ended the process that imported it, or no store could tell the pins of the
// run when it was opened again.
func TestTrimmingThatDropsNothing(t *testing.T) {
	base := []byte("{}")
	digest := checkpoint.BaseDigest(base)
	opening := checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d"}`)}
	trimming := checkpoint.Trimming{Known: checkpoint.Known{
		Graph: "g", Digest: "d", Status: checkpoint.StatusPending, Turn: 1, Created: time.Now(), Updated: time.Now(),
	}}
	for name, c := range map[string]struct {
		first uint64
		base  string
		pins  []checkpoint.Pin
	}{
		"with a base":                   {1, digest, nil},
		"of entry 0":                    {0, digest, nil},
		"with a pin":                    {1, "", []checkpoint.Pin{{Seq: 1, Base: digest}}},
		"of less than a pin":            {2, digest, []checkpoint.Pin{{Seq: 2, Base: digest}}},
		"of entry 2 and a pin of none":  {2, digest, []checkpoint.Pin{{Base: digest}}},
		"of entry 2 and a pin too many": {2, digest, []checkpoint.Pin{{Seq: 1, Base: digest}, {Seq: 7, Base: digest}}},
	} {
		trimming.First, trimming.Base, trimming.Pins = c.first, c.base, c.pins
		data, err := json.Marshal(trimming)
		if err != nil {
			t.Fatal(err)
		}
		envelope := begunAt(t, opening, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data})
		for of, s := range map[string]checkpoint.Archiver{"memory": new(memory.Store), "badger": superBadger(t)} {
			l, err := s.(checkpoint.Store).Acquire(t.Context(), "run", "test")
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Restore(t.Context(), l, checkpoint.Archive{
				Envelopes: func(yield func([]byte, error) bool) { yield(envelope, nil) }, Bases: [][]byte{base},
			})
			if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "no trimming") {
				t.Errorf("%s: Restore of a trimming %s = %v, want ErrCorrupt", of, name, err)
			}
		}
	}
}

// A file of a run that begins at a base and was opened again, without an origin, is refused where
// it would be made by a Fork.
func TestImportOfABaseWithoutOrigin(t *testing.T) {
	base := []byte("{}")
	opening := func(data string) checkpoint.Entry {
		return checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(data)}
	}
	envelope := begunAt(t, opening(`{"graph":"g","digest":"d","origin":{"run":"r","seq":3,"base":"`+checkpoint.BaseDigest(base)+`"}}`),
		opening(`{"graph":"g","digest":"d"}`))
	from := new(memory.Store)
	l, err := from.Acquire(t.Context(), "run", "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = from.Restore(t.Context(), l, checkpoint.Archive{
		Envelopes: func(yield func([]byte, error) bool) { yield(envelope, nil) }, Bases: [][]byte{base},
	})
	if err != nil {
		t.Fatal(err)
	}
	to := new(memory.Store)
	_, err = checkpoint.Import(t.Context(), superPlain{to}, bytes.NewReader(superExport(t, from, "run")), checkpoint.ImportOptions{})
	if _, none := to.Stat(t.Context(), "run"); !errors.Is(err, checkpoint.ErrCorrupt) || !errors.Is(none, checkpoint.ErrNotFound) {
		t.Errorf("Import = %v, Stat = %v, want ErrCorrupt and no run", err, none)
	}
}

// A store that hangs when the lease is given back, or when a part of a run is deleted, holds nobody
// who imports for ever.
func TestImportIntoAStoreThatHangsBehindIt(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	for name, c := range map[string]struct {
		plain  bool
		method string // at which the store hangs from then on
		want   error
	}{
		"an archiver":        {false, "Release", nil},
		"a plain store":      {true, "Release", nil},
		"a part of the run":  {true, "Append", checkpoint.ErrCommitUnknown},
		"none of an archive": {false, "Restore", checkpoint.ErrCommitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faulty, hangs := new(memory.Faulty), false
				faulty.FailRead = func(ctx context.Context, method, _ string) error {
					if hangs = hangs || method == c.method; hangs && method == "Release" {
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return nil
				}
				faulty.Fail = func(_ context.Context, w memory.Write) memory.Fault {
					if hangs = hangs || w.Method == c.method; hangs {
						return memory.Hang
					}
					return memory.None
				}
				var store checkpoint.Store = faulty
				if c.plain {
					store = superPlain{faulty}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := checkpoint.Import(ctx, store, bytes.NewReader(file), checkpoint.ImportOptions{})
				if !errors.Is(err, c.want) {
					t.Errorf("Import = %v, want %v", err, c.want)
				}
				if !hangs {
					t.Error("the store was not asked to")
				}
			})
		})
	}
}

// A contested store has somebody else make a run where an import is about to.
type contested struct {
	checkpoint.Store
	made bool
}

func (c *contested) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if !c.made {
		c.made = true
		if _, err := c.Store.Append(ctx, l, after, entries[:1]); err != nil {
			return after, err
		}
	}
	return c.Store.Append(ctx, l, after, entries)
}

// An import that fails since somebody else has made the run meanwhile leaves that as it is.
func TestImportLeavesTheRunOfSomebodyElse(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	s := &contested{Store: new(memory.Store)}
	_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
	if !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("Import = %v, want ErrConflict", err)
	}
	if info, err := s.Stat(t.Context(), "run"); err != nil || info.Head.Seq != 1 || info.Owner != "" {
		t.Errorf("the other run is %+v, %v", info, err)
	}
}
