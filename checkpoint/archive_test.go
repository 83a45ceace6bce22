package checkpoint_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

var opens = []checkpoint.Entry{{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d"}`)}, {Kind: checkpoint.Entered}}

// seal is checkpoint.Seal of what can be sealed.
func seal(t *testing.T, after checkpoint.Head, epoch uint64, entries ...checkpoint.Entry) ([]byte, checkpoint.Head) {
	t.Helper()
	data, head, err := checkpoint.Seal(nil, after, time.UnixMilli(1_700_000_000_000), epoch, entries)
	if err != nil {
		t.Fatal(err)
	}
	return data, head
}

// An append is added to a log where it follows what is there: with the next number, and under a
// lease that is not older.
func TestLogTakesNoAppendOutOfItsPlace(t *testing.T) {
	g := checkpoint.NewLog("run")
	first, head := seal(t, checkpoint.Head{}, 5, opens...)
	if err := g.Add(first); err != nil {
		t.Fatal(err)
	}
	before := g.Info()
	done := checkpoint.Entry{Kind: checkpoint.Done, Path: "a"}
	for name, c := range map[string]struct {
		after checkpoint.Head
		epoch uint64
	}{
		"over the last one":    {checkpoint.Head{Seq: head.Seq - 1, Digest: head.Digest}, 5},
		"with a gap":           {checkpoint.Head{Seq: head.Seq + 1, Digest: head.Digest}, 5},
		"behind another one":   {checkpoint.Head{Seq: head.Seq}, 5},
		"under an older lease": {head, 4},
	} {
		data, _ := seal(t, c.after, c.epoch, done)
		if err := g.Add(data); !errors.Is(err, checkpoint.ErrCorrupt) || g.Info().Head != before.Head {
			t.Errorf("%s: Add = %v, and the log ends at %d", name, err, g.Info().Head.Seq)
		}
	}
	next, _ := seal(t, head, 5, done)
	if err := g.Add(next); err != nil {
		t.Errorf("in its place: %v", err)
	}
}

// A run is restored with the bases that its log names and no others, and with messages that can be
// there, with time for those that come.
func TestArchiveIsComplete(t *testing.T) {
	g := checkpoint.NewLog("run")
	first, _ := seal(t, checkpoint.Head{}, 1, opens...)
	if err := g.Add(first); err != nil {
		t.Fatal(err)
	}
	post := checkpoint.Post{ID: "p", Kind: "k", At: time.UnixMilli(1)}
	if err := (checkpoint.Archive{Posts: []checkpoint.Post{post}}).Complete(g); err != nil {
		t.Errorf("Complete = %v", err)
	}
	late, odd := post, post
	late.At = time.Date(9999, 12, 31, 12, 0, 0, 0, time.UTC)
	odd.Data = json.RawMessage("{")
	for name, a := range map[string]checkpoint.Archive{
		"a base of nobody":          {Bases: [][]byte{[]byte("machine")}},
		"a message that is no JSON": {Posts: []checkpoint.Post{odd}},
		"a message of the last day": {Posts: []checkpoint.Post{late}},
	} {
		if err := a.Complete(g); err == nil {
			t.Errorf("%s: Complete = nil", name)
		}
	}
}

// A log that was trimmed follows the append that its trimming names.
func TestLogFollowsWhatWasTrimmed(t *testing.T) {
	s := new(memory.Store)
	forkstoreGrow(t, s, "run", 4)
	forkstoreTrim(t, s, "run", 5, []byte("machine"), checkpoint.Pin{Seq: 2, Base: checkpoint.BaseDigest([]byte("pinned"))}, []byte("pinned"))
	for _, forged := range []bool{false, true} {
		g := checkpoint.NewLog("run")
		var head checkpoint.Head
		for data, err := range s.Envelopes(t.Context(), "run") {
			if err != nil {
				t.Fatal(err)
			}
			e, err := checkpoint.Unseal(data)
			if err != nil {
				t.Fatal(err)
			}
			if forged {
				if head.Seq == 0 {
					head = checkpoint.Head{Seq: e.First - 1, Digest: checkpoint.Digest{1}}
				}
				entries, err := entriesOf(e)
				if err != nil {
					t.Fatal(err)
				}
				if data, head, err = checkpoint.Seal(nil, head, e.At, e.Epoch, entries); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.Add(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Whole(); errors.Is(err, checkpoint.ErrCorrupt) != forged {
			t.Errorf("sealed anew behind another append: %t: Whole = %v", forged, err)
		}
	}
}

// A told store says something else of a run than its log, and grows while it is looked at.
type told struct {
	*memory.Store
	tells func(*checkpoint.Info)
	grows func()
}

func (s *told) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	info, err := s.Store.Stat(ctx, run)
	if err == nil && s.tells != nil {
		s.tells(&info)
	}
	return info, err
}

func (s *told) Envelopes(ctx context.Context, run string) iter.Seq2[[]byte, error] {
	if s.grows != nil {
		s.grows()
	}
	return s.Store.Envelopes(ctx, run)
}

// Verify finds a pin that a store has of another entry than its log; and takes for no damage what
// is appended while it looks.
func TestVerifyOfWhatAStoreTells(t *testing.T) {
	s := new(memory.Store)
	forkstoreGrow(t, s, "run", 4)
	forkstoreTrim(t, s, "run", 5, []byte("machine"), checkpoint.Pin{Seq: 2, Base: checkpoint.BaseDigest([]byte("pinned"))}, []byte("pinned"))
	other := func(i *checkpoint.Info) { i.Pins = slices.Clone(i.Pins); i.Pins[0].Seq = 4 }
	if found, err := forkstoreFindings(t, &told{Store: s, tells: other}, "run"); err != nil || !slices.Equal(found, []string{"info 0"}) {
		t.Errorf("with another pin Verify finds %q, %v", found, err)
	}
	if found, err := forkstoreFindings(t, &told{Store: s, grows: func() { forkstoreGrow(t, s, "run", 1) }}, "run"); err != nil || len(found) > 0 {
		t.Errorf("while it grows Verify finds %q, %v", found, err)
	}
}

// resealed makes the digest and the checksum of an envelope fit.
func resealed(data []byte) []byte {
	trailer, end := len(data)-36, len(data)-4
	sum := sha256.Sum256(data[:trailer])
	copy(data[trailer:], sum[:])
	binary.BigEndian.PutUint32(data[end:], crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

// An envelope of a codec or with flags that are not known is of a version that is not.
func TestUnknownCodecAndFlags(t *testing.T) {
	for at := 5; at <= 7; at++ {
		data, _ := seal(t, checkpoint.Head{}, 1, opens...)
		data[at] ^= 2
		if _, err := checkpoint.Unseal(resealed(data)); !errors.Is(err, checkpoint.ErrVersion) {
			t.Errorf("byte %d: Unseal = %v, want ErrVersion", at, err)
		}
	}
}

// An envelope holds as many entries as it counts: one more is damage, and so is one less.
func TestEnvelopeHoldsWhatItCounts(t *testing.T) {
	payload := []byte(`{"kind":"done","path":"a"}` + "\n" + `{"kind":"done","path":"b"}` + "\n")
	for count, want := range map[int]error{1: checkpoint.ErrCorrupt, 2: nil, 3: checkpoint.ErrCorrupt} {
		e, err := checkpoint.Unseal(checkpoint.Forge(payload, count))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entriesOf(e); !errors.Is(err, want) {
			t.Errorf("of %d: %v, want %v", count, err, want)
		}
	}
}

// A fork does not begin trimmed.
func TestForkThatIsTrimmed(t *testing.T) {
	base := []byte("machine")
	opening, err := json.Marshal(checkpoint.Opening{Graph: "g", Digest: "d", Origin: &checkpoint.Origin{Run: "run", Seq: 3, Base: checkpoint.BaseDigest(base)}})
	if err != nil {
		t.Fatal(err)
	}
	entries := []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}}
	f := checkpoint.Fork{Base: base, Runs: []checkpoint.ForkedRun{{Run: "fork", Entries: entries}}}
	if _, err := f.Check(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []checkpoint.Kind{checkpoint.Opened, checkpoint.Trimmed} {
		f.Runs[0].Entries = append(slices.Clone(entries), checkpoint.Entry{Kind: kind, Data: json.RawMessage(`{"first":2}`)})
		var bad *checkpoint.ArgumentError
		if _, err := f.Check(); !errors.As(err, &bad) {
			t.Errorf("with a further %s entry: Check = %v", kind, err)
		}
	}
}

// A base that a run names for several things is named once.
func TestBasesAreNamedOnce(t *testing.T) {
	info := checkpoint.Info{First: 1, Base: "b", Origin: &checkpoint.Origin{Base: "b", Shelf: "a"}, Pins: []checkpoint.Pin{{Seq: 1, Base: "b"}, {Seq: 2, Base: "a"}}}
	if got := info.Bases(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Bases = %q", got)
	}
}

// A run that was trimmed is not trimmed once more at the entry that it begins with.
func TestTrimmingAtTheBeginning(t *testing.T) {
	base := []byte("machine")
	info := checkpoint.Info{Run: "run", First: 5, Head: checkpoint.Head{Seq: 9}, Created: time.UnixMilli(1), Updated: time.UnixMilli(1)}
	for first, ok := range map[uint64]bool{4: false, 5: false, 6: true, 10: true, 11: false} {
		data, err := json.Marshal(checkpoint.Trimming{First: first, Base: checkpoint.BaseDigest(base)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := info.Trimming(checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, [][]byte{base}); (err == nil) != ok {
			t.Errorf("at entry %d: Trimming = %v", first, err)
		}
	}
}

// What counts as an answer of this version has a value where somebody gave one, and none else.
func TestAnswersThatAreKnown(t *testing.T) {
	for how, value := range map[string]bool{
		checkpoint.AnswerGiven: true, checkpoint.AnswerDefault: true, checkpoint.AnswerSkipped: false, checkpoint.AnswerExpired: false,
	} {
		with, without := checkpoint.Answer{How: how, Value: json.RawMessage("1")}, checkpoint.Answer{How: how}
		if with.Known() != value || without.Known() == value {
			t.Errorf("%s: known with a value: %t, without: %t", how, with.Known(), without.Known())
		}
	}
	if (&checkpoint.Answer{How: "guessed", Value: json.RawMessage("1")}).Known() {
		t.Error("another way to answer is known")
	}
}

// A message comes back byte for byte, with the blanks around it.
func TestImportKeepsBlanks(t *testing.T) {
	s := superRun(t, "run")
	want := checkpoint.Post{ID: "z", Kind: "k", Data: json.RawMessage(` {"a": 1} `)}
	if err := s.Post(t.Context(), "run", want); err != nil {
		t.Fatal(err)
	}
	to := new(memory.Store)
	superImport(t, to, superExport(t, s, "run"))
	posts, err := to.Posts(t.Context(), "run")
	if err != nil || len(posts) == 0 || !posts[len(posts)-1].Says(want) {
		t.Errorf("the messages are %q, %v", posts, err)
	}
}

// An import of what can be read once leaves no file behind, whether it is taken or not.
func TestImportLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	file := superExport(t, superRun(t, "run"), "run")
	for _, file := range [][]byte{file, file[:len(file)-2]} {
		_, err := checkpoint.Import(t.Context(), new(memory.Store), struct{ io.Reader }{bytes.NewReader(file)}, checkpoint.ImportOptions{})
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("behind %v there are %q", err, left)
		}
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
}

// A robbed store fails an append behind which somebody else has taken the run and gone on with it.
type robbed struct{ checkpoint.Store }

func (r *robbed) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	head, err := r.Store.Append(ctx, l, after, entries)
	if err == nil {
		err = r.Store.Release(ctx, l)
	}
	if err == nil {
		l, err = r.Store.Acquire(ctx, l.Run, "another")
	}
	if err == nil {
		_, err = r.Store.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Noted}})
	}
	if err == nil {
		err = r.Store.Release(ctx, l)
	}
	return head, errors.Join(err, errUnreachable)
}

// An import that fails deletes nothing that somebody else has gone on with meanwhile.
func TestImportLeavesWhatSomebodyElseGoesOnWith(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	s := new(memory.Store)
	if _, err := checkpoint.Import(t.Context(), &robbed{struct{ checkpoint.Store }{s}}, bytes.NewReader(file), checkpoint.ImportOptions{}); !errors.Is(err, errUnreachable) {
		t.Fatal(err)
	}
	if info, err := s.Stat(t.Context(), "run"); err != nil || info.Owner != "" {
		t.Errorf("the run is %+v, %v", info, err)
	}
}

// The first to say of a run that it can't be read says it of that run alone.
func TestCorruptOfAnotherRun(t *testing.T) {
	first := checkpoint.Corrupt("run", 3, checkpoint.ErrKey)
	if got := checkpoint.Corrupt("run", 4, first); got != first {
		t.Errorf("of the same run: %v", got)
	}
	if got := checkpoint.Corrupt("other", 4, first); !strings.Contains(got.Error(), `run "other", entry 4`) || !errors.Is(got, checkpoint.ErrKey) {
		t.Errorf("of another run: %v", got)
	}
}
