package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

var (
	forkstoreBase  = []byte(`{"state":{"books":["a","b"]}}`)
	forkstoreShelf = []byte(`{"fetch":{"call":[{"output":"a book"}]}}`)
)

// forkstoreRuns returns a store with a run "whole" of five appends, a fork of it that has gone on,
// and a run that was trimmed twice and has a pinned checkpoint.
func forkstoreRuns(t *testing.T) *memory.Store {
	t.Helper()
	s := new(memory.Store)
	forkstoreGrow(t, s, "whole", 5)
	opening, err := json.Marshal(checkpoint.Opening{
		Graph: "g", Digest: "d", Labels: map[string]string{"tenant": "abbey"},
		Origin: &checkpoint.Origin{
			Run: "whole", Seq: 3, Base: checkpoint.BaseDigest(forkstoreBase), Shelf: checkpoint.BaseDigest(forkstoreShelf),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Fork(t.Context(), checkpoint.Fork{Base: forkstoreBase, Shelf: forkstoreShelf, Runs: []checkpoint.ForkedRun{
		{Run: "fork", Entries: []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	forkstoreGrow(t, s, "fork", 4)
	forkstoreGrow(t, s, "trimmed", 9)
	pin := []byte("a machine that is\nno line of JSON")
	forkstoreTrim(t, s, "trimmed", 4, []byte(`{"at":3}`), checkpoint.Pin{Seq: 2, Base: checkpoint.BaseDigest(pin)}, pin)
	forkstoreTrim(t, s, "trimmed", 6, []byte(`{"at":5}`), checkpoint.Pin{Seq: 2, Base: checkpoint.BaseDigest(pin)}, nil)
	if err := s.Post(t.Context(), "trimmed", checkpoint.Post{ID: "m", Kind: "answer"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// forkstoreGrow appends to a run that nobody holds, two entries at a time, and takes a snapshot.
func forkstoreGrow(t *testing.T, s checkpoint.Store, run string, appends int) {
	t.Helper()
	l, err := s.Acquire(t.Context(), run, "owner")
	if err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	if info, err := s.Stat(t.Context(), run); err == nil {
		head = info.Head
	}
	for i := range appends {
		entries := []checkpoint.Entry{{Kind: checkpoint.Done, Path: "a", Delta: fmt.Appendf(nil, "%d", i)}, {Kind: checkpoint.Done}}
		if head.Seq == 0 {
			entries[0] = checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d"}`)}
		}
		if head, err = s.Append(t.Context(), l, head, entries); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: head, Data: []byte("state")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func forkstoreTrim(t *testing.T, s checkpoint.Store, run string, first uint64, base []byte, pin checkpoint.Pin, pinned []byte) {
	t.Helper()
	l, err := s.Acquire(t.Context(), run, "owner")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(checkpoint.Trimming{
		First: first, Base: checkpoint.BaseDigest(base), Pins: []checkpoint.Pin{pin},
	})
	if err != nil {
		t.Fatal(err)
	}
	bases := [][]byte{base}
	if pinned != nil {
		bases = append(bases, pinned)
	}
	_, err = s.Trim(t.Context(), l, info.Head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, bases...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// forkstoreDamaged is a store in which something was changed.
type forkstoreDamaged struct {
	*memory.Store
	envelopes func([][]byte) [][]byte
	base      func([]byte) ([]byte, error)
	info      func(*checkpoint.Info)
	snapshot  error
	graph     string
}

func (s forkstoreDamaged) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	if s.envelopes == nil {
		return s.Store.Envelopes(ctx, run)
	}
	var all [][]byte
	for data, err := range s.Store.Envelopes(ctx, run) {
		if err != nil {
			panic(err)
		}
		all = append(all, bytes.Clone(data))
	}
	all = s.envelopes(all)
	return func(yield func([]byte, error) bool) {
		for _, data := range all {
			if !yield(data, nil) {
				return
			}
		}
	}
}

func (s forkstoreDamaged) Base(ctx context.Context, run, digest string) ([]byte, error) {
	base, err := s.Store.Base(ctx, run, digest)
	if s.base != nil && err == nil {
		return s.base(base)
	}
	return base, err
}

func (s forkstoreDamaged) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Store.Stat(ctx, run)
	if s.info != nil && err == nil {
		s.info(&info)
	}
	return info, err
}

func (s forkstoreDamaged) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	if s.snapshot != nil {
		return checkpoint.Snapshot{}, s.snapshot
	}
	return s.Store.Snapshot(ctx, run, upTo)
}

func (s forkstoreDamaged) Graph(ctx context.Context, digest string) ([]byte, error) {
	if s.graph != "" {
		return []byte(s.graph), nil
	}
	return s.Store.Graph(ctx, digest)
}

// forkstoreFindings returns what Verify finds, as part and entry.
func forkstoreFindings(t *testing.T, s checkpoint.Store, run string) (found []string, err error) {
	t.Helper()
	for f, err := range checkpoint.Verify(t.Context(), s, run) {
		if err != nil {
			return found, err
		}
		if f.Run != run || f.Reason == "" || !strings.Contains(f.String(), string(f.Part)) {
			t.Errorf("finding %+v, %q", f, f)
		}
		found = append(found, fmt.Sprintf("%s %d", f.Part, f.Seq))
	}
	return found, nil
}

// Verify finds nothing in runs that are whole, and all that is wrong with others: the damage of one
// append does not hide that of the next.
func TestForkstoreVerify(t *testing.T) {
	s := forkstoreRuns(t)
	for _, run := range []string{"whole", "fork", "trimmed"} {
		for _, s := range []checkpoint.Store{s, struct{ checkpoint.Store }{s}} {
			if found, err := forkstoreFindings(t, s, run); len(found) > 0 || err != nil {
				t.Errorf("Verify(%q) finds %v, %v", run, found, err)
			}
		}
	}
	flip := func(at ...int) func([][]byte) [][]byte {
		return func(all [][]byte) [][]byte {
			for _, i := range at {
				all[i][len(all[i])-3] ^= 1
			}
			return all
		}
	}
	for name, c := range map[string]struct {
		run   string
		store forkstoreDamaged
		want  string
	}{
		"a byte":                    {"whole", forkstoreDamaged{envelopes: flip(1)}, "[log 3]"},
		"a byte of the last append": {"whole", forkstoreDamaged{envelopes: flip(4)}, "[log 9]"},
		"bytes of two appends":      {"whole", forkstoreDamaged{envelopes: flip(1, 3)}, "[log 3 log 7]"},
		"an append that is missing": {"whole", forkstoreDamaged{envelopes: func(a [][]byte) [][]byte { return slices.Delete(a, 1, 2) }}, "[log 3]"},
		"the first one missing":     {"whole", forkstoreDamaged{envelopes: func(a [][]byte) [][]byte { return a[1:] }}, "[log 1]"},
		"and a byte behind it":      {"whole", forkstoreDamaged{envelopes: func(a [][]byte) [][]byte { return flip(3)(a)[1:] }}, "[log 1 log 7]"},
		"the last one missing":      {"whole", forkstoreDamaged{envelopes: func(a [][]byte) [][]byte { return a[:4] }}, "[log 9]"},
		"no append":                 {"whole", forkstoreDamaged{envelopes: func([][]byte) [][]byte { return nil }}, "[log 1]"},
		"a trimmed log cut further": {"trimmed", forkstoreDamaged{envelopes: func(a [][]byte) [][]byte { return a[1:] }}, "[log 6]"},
		"a base": {"fork", forkstoreDamaged{base: func(b []byte) ([]byte, error) {
			if bytes.Equal(b, forkstoreShelf) {
				return b, nil
			}
			return append(b, ' '), nil
		}}, "[base 0]"},
		"bases that are missing":     {"trimmed", forkstoreDamaged{base: func([]byte) ([]byte, error) { return nil, checkpoint.ErrNotFound }}, "[base 0 base 0]"},
		"what can't be read":         {"fork", forkstoreDamaged{base: func([]byte) ([]byte, error) { return nil, checkpoint.Damage("chunk 3") }}, "[base 0 base 0]"},
		"the status":                 {"fork", forkstoreDamaged{info: func(i *checkpoint.Info) { i.Status = checkpoint.StatusFailed }}, "[info 0]"},
		"the oldest entry":           {"whole", forkstoreDamaged{info: func(i *checkpoint.Info) { i.First = 3 }}, "[info 0]"},
		"the turn":                   {"whole", forkstoreDamaged{info: func(i *checkpoint.Info) { i.Turn = 3 }}, "[info 0]"},
		"the time of its creation":   {"whole", forkstoreDamaged{info: func(i *checkpoint.Info) { i.Created = i.Created.Add(time.Millisecond) }}, "[info 0]"},
		"when its status changed":    {"trimmed", forkstoreDamaged{info: func(i *checkpoint.Info) { i.Updated = i.Updated.Add(-time.Millisecond) }}, "[info 0]"},
		"the base that is named":     {"fork", forkstoreDamaged{info: func(i *checkpoint.Info) { i.Base = "" }}, "[info 0]"},
		"a snapshot":                 {"whole", forkstoreDamaged{snapshot: checkpoint.Corrupt("whole", 4, checkpoint.Damage("it"))}, "[snapshot 4]"},
		"a graph of another digest":  {"whole", forkstoreDamaged{graph: "{}", info: func(*checkpoint.Info) {}}, "[]"}, // "d" says nothing
		"the shelf that is named":    {"fork", forkstoreDamaged{info: func(i *checkpoint.Info) { i.Origin.Shelf = "" }}, "[info 0]"},
		"bases, and a byte of a log": {"fork", forkstoreDamaged{envelopes: flip(2), base: func(b []byte) ([]byte, error) { return b[1:], nil }}, "[log 4 base 0 base 0]"},
	} {
		c.store.Store = s
		found, err := forkstoreFindings(t, c.store, c.run)
		if fmt.Sprint(found) != c.want || err != nil {
			t.Errorf("with %s Verify finds %v, %v, want %s", name, found, err, c.want)
		}
	}
	for range checkpoint.Verify(t.Context(), forkstoreDamaged{Store: s, envelopes: flip(1, 3)}, "whole") {
		break // a loop can be left
	}
}

// unreadable is a store that can't read the appends which begin at some entries. Its loop goes on
// behind these, or ends.
type unreadable struct {
	*memory.Store
	first []uint64
	ends  bool
}

func (s unreadable) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for data, err := range s.Store.Envelopes(ctx, run) {
			if e, _ := checkpoint.Unseal(data); slices.Contains(s.first, e.First) {
				data, err = nil, checkpoint.Corrupt(run, e.First, checkpoint.Damage("it is gone"))
			}
			if !yield(data, err) || err != nil && s.ends {
				return
			}
		}
	}
}

// Behind an append that a store can't read Verify goes on as far as the store does. Export does
// not.
func TestVerifyGoesOnBehindWhatCantBeRead(t *testing.T) {
	s := forkstoreRuns(t)
	for _, c := range []struct {
		first          []uint64
		goesOn, itEnds string
	}{
		{[]uint64{1}, "[log 1]", "[log 1]"},
		{[]uint64{9}, "[log 9]", "[log 9]"},
		{[]uint64{3, 5}, "[log 3 log 5]", "[log 3]"},
		{[]uint64{3, 7}, "[log 3 log 7]", "[log 3]"},
		{[]uint64{1, 3, 5, 7, 9}, "[log 1 log 3 log 5 log 7 log 9]", "[log 1]"},
	} {
		for ends, want := range map[bool]string{false: c.goesOn, true: c.itEnds} {
			s := unreadable{s, c.first, ends}
			if found, err := forkstoreFindings(t, s, "whole"); fmt.Sprint(found) != want || err != nil {
				t.Errorf("without the appends at %d, ends: %t, Verify finds %v, %v, want %s", c.first, ends, found, err, want)
			}
			var damage *checkpoint.CorruptError
			if err := checkpoint.Export(t.Context(), s, "whole", io.Discard); !errors.As(err, &damage) || damage.Seq != c.first[0] {
				t.Errorf("without the appends at %d, ends: %t, Export = %v", c.first, ends, err)
			}
		}
	}
	for range checkpoint.Verify(t.Context(), unreadable{s, []uint64{3, 7}, false}, "whole") {
		break // a loop can be left
	}
}

// misnamed has graphs none of which is the one of its digest.
type misnamed struct{ *memory.Store }

func (misnamed) Graph(context.Context, string) ([]byte, error) { return []byte("{}"), nil }

// What is wrong with graphs Verify finds in the order of their digests, however often it is asked.
func TestVerifyFindsGraphsInOrder(t *testing.T) {
	s := misnamed{new(memory.Store)}
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	entries := []checkpoint.Entry{{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g"}`)}}
	for i := range 9 {
		digests = append(digests, "sha256:"+strings.Repeat(fmt.Sprint(i), 64))
		entries = append(entries, checkpoint.Entry{Kind: checkpoint.Migrated, Data: fmt.Appendf(nil, `{"graph":"g","to":%q}`, digests[i])})
	}
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, entries); err != nil {
		t.Fatal(err)
	}
	n := 0
	for f, err := range checkpoint.Verify(t.Context(), s, "run") {
		if err != nil || n == len(digests) {
			t.Fatalf("behind %d findings: %v, %v", n, f, err)
		}
		if !strings.Contains(f.Reason, digests[n]) {
			t.Errorf("finding %d is %v, want that of graph %s", n, f, digests[n])
		}
		n++
	}
	if n != len(digests) {
		t.Errorf("Verify finds %d graphs, want %d", n, len(digests))
	}
}

// What is not about stored data ends the loop with an error.
func TestForkstoreVerifyErrors(t *testing.T) {
	s := forkstoreRuns(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var bad *checkpoint.ArgumentError
	var none context.Context
	for name, c := range map[string]struct {
		loop iter.Seq2[checkpoint.Finding, error]
		is   func(error) bool
	}{
		"no context":       {checkpoint.Verify(none, s, "whole"), func(err error) bool { return errors.As(err, &bad) }},
		"no store":         {checkpoint.Verify(t.Context(), nil, "whole"), func(err error) bool { return errors.As(err, &bad) }},
		"no run":           {checkpoint.Verify(t.Context(), s, "none"), func(err error) bool { return errors.Is(err, checkpoint.ErrNotFound) }},
		"a bad id":         {checkpoint.Verify(t.Context(), s, ""), func(err error) bool { return errors.Is(err, checkpoint.ErrRunID) }},
		"an ended context": {checkpoint.Verify(ctx, s, "whole"), func(err error) bool { return errors.Is(err, context.Canceled) }},
		"an unknown version": {checkpoint.Verify(t.Context(), forkstoreDamaged{Store: s, envelopes: func(a [][]byte) [][]byte {
			a[1][4] = 9
			return a
		}}, "whole"), func(err error) bool { return errors.Is(err, checkpoint.ErrVersion) }},
		"a run that is trimmed meanwhile": {checkpoint.Verify(t.Context(), forkstoreDamaged{Store: s, envelopes: func(a [][]byte) [][]byte {
			forkstoreTrim(t, s, "whole", 5, []byte("{}"), checkpoint.Pin{Seq: 1, Base: checkpoint.BaseDigest([]byte("{}"))}, nil)
			return a[2:]
		}}, "whole"), func(err error) bool { return errors.Is(err, checkpoint.ErrTrimmed) }},
	} {
		n := 0
		for f, err := range c.loop {
			if n++; !c.is(err) {
				t.Errorf("with %s Verify yields %v, %v", name, f, err)
			}
		}
		if n != 1 {
			t.Errorf("with %s Verify yields %d times", name, n)
		}
	}
}

// A run that is deleted while it is verified, and made anew under its id, is no damage: the loop
// ends with ErrNotFound.
func TestVerifyOfARunThatIsMadeAnew(t *testing.T) {
	anew := forkstoreRuns(t)
	shorter := forkstoreDamaged{Store: anew, envelopes: func(a [][]byte) [][]byte {
		if err := anew.Delete(t.Context(), "whole"); err != nil {
			t.Fatal(err)
		}
		forkstoreGrow(t, anew, "whole", 1)
		return a[2:]
	}}
	asked := 0
	later := forkstoreDamaged{
		Store:     forkstoreRuns(t),
		envelopes: func(a [][]byte) [][]byte { return a[2:] },
		info: func(i *checkpoint.Info) {
			if asked++; asked > 1 {
				i.Created = i.Created.Add(time.Second)
			}
		},
	}
	for name, s := range map[string]checkpoint.Store{"shorter": shorter, "created later": later} {
		if found, err := forkstoreFindings(t, s, "whole"); len(found) > 0 || !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("of one that is %s Verify finds %v, %v, want ErrNotFound", name, found, err)
		}
	}
}

// Of the zero Finding, which comes beside an error, the text says that it is none, and of a run
// alone, which comes beside the error of that run, that the error says more.
func TestFindingTexts(t *testing.T) {
	for want, f := range map[string]checkpoint.Finding{
		"no finding":                        {},
		`run "a": log: entry 3: is missing`: {Run: "a", Part: checkpoint.PartLog, Seq: 3, Reason: "is missing"},
		`run "a" can't be read: the error beside this finding says why`: {Run: "a"},
		`run "a": posts: are damaged`:                                   {Run: "a", Part: checkpoint.PartPosts, Reason: "are damaged"},
		"store: is odd":                                                 {Part: checkpoint.PartStore, Reason: "is odd"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
