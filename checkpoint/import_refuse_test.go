package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// superRefused imports what is no export, and checks that it is refused at a line, that the
// error is found, and that the store has no run.
func superRefused(t *testing.T, s checkpoint.Store, file []byte, line int, want error, what string) {
	t.Helper()
	_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
	var e *checkpoint.ImportError
	if !errors.As(err, &e) || !errors.Is(err, want) || line > 0 && e.Line != line {
		t.Errorf("%s: Import = %v, want an ImportError at line %d with %v", what, err, line, want)
		return
	}
	if page, err := s.List(t.Context(), checkpoint.Filter{}); err != nil || len(page) > 0 {
		t.Errorf("%s: List = %v, %v", what, page, err)
	}
}

// Whatever is cut off, changed, left out, doubled, moved or taken from another export is
// refused, with the number of the line in which it begins.
func TestImportRefusesWhatWasChanged(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	lines := slices.Collect(bytes.Lines(file))
	foreign := slices.Collect(bytes.Lines(superExport(t, superRun(t, "other"), "other")))
	s := new(memory.Store)
	join := func(parts ...[][]byte) []byte { return bytes.Join(slices.Concat(parts...), nil) }
	for i, line := range lines {
		n := i + 1
		if i < len(lines)-1 {
			superRefused(t, s, join(lines[:i], lines[i+1:]), n, checkpoint.ErrCorrupt, fmt.Sprintf("without line %d", n))
			superRefused(t, s, join(lines[:i], lines[i+1:i+2], lines[i:i+1], lines[i+2:]), n,
				checkpoint.ErrCorrupt, fmt.Sprintf("with lines %d and %d swapped", n, n+1))
		}
		superRefused(t, s, join(lines[:i]), n, checkpoint.ErrCorrupt, fmt.Sprintf("cut before line %d", n))
		superRefused(t, s, join(lines[:n], lines[i:]), n+1, checkpoint.ErrCorrupt, fmt.Sprintf("with line %d twice", n))
		if i > 0 {
			superRefused(t, s, join(lines[:i], foreign[i:i+1], lines[n:]), n, checkpoint.ErrCorrupt, fmt.Sprintf("with line %d of another", n))
			superRefused(t, s, join(lines[:i], foreign[i:]), n, checkpoint.ErrCorrupt, fmt.Sprintf("with another from line %d on", n))
		}
		at := len(join(lines[:i]))
		for k := range line {
			if k > 0 {
				superRefused(t, s, file[:at+k], n, checkpoint.ErrCorrupt, fmt.Sprintf("cut at byte %d of line %d", k, n))
			}
			changed := bytes.Clone(file)
			changed[at+k] ^= 1
			_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(changed), checkpoint.ImportOptions{})
			var e *checkpoint.ImportError
			if !errors.As(err, &e) || e.Line != n {
				t.Errorf("byte %d of line %d changed: Import = %v", k, n, err)
			}
		}
	}
	superRefused(t, s, append(bytes.Clone(file), "more"...), len(lines)+1, checkpoint.ErrCorrupt, "with more behind it")
	superRefused(t, s, nil, 1, checkpoint.ErrCorrupt, "nothing")
	superRefused(t, s, []byte("{}\n"), 1, checkpoint.ErrCorrupt, "an object")
	superRefused(t, s, []byte(`{"pawl":"run","format":3,"of":"things to come","sum":"x"}`+"\n"), 1, checkpoint.ErrVersion, "a format to come")
	superImport(t, s, file)
}

// Who computes the sums anew still can't change the log, put a graph under the digest of
// another one, or make the header say what the log does not.
func TestImportRefusesWhatWasForged(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	digest, graph := superGraph()
	_, nodes, _ := strings.Cut(strings.TrimSuffix(string(graph), "}"), `"nodes":`)
	s := new(memory.Store)
	for _, c := range []struct {
		what, old, new string
		line           int
	}{
		{"a changed delta", `"n":1`, `"n":2`, 3},
		{"a changed time", `09:30:01.120Z`, `09:30:01.121Z`, 4},
		{"a changed epoch", `"epoch":2`, `"epoch":3`, 5},
		{"an epoch that falls", `"epoch":3`, `"epoch":1`, 7},
		{"an epoch that nothing can follow", `"epoch":3`, `"epoch":18446744073709551615`, 7},
		{"a changed graph", `"kind":"step"`, `"kind":"loop"`, 2},
		{"a graph with its digest elsewhere", `,"digest":"` + digest + `","nodes":` + nodes + `}`, `,"nodes":` + nodes + `,"digest":"` + digest + `"}`, 2},
		{"bytes behind what it says", `,"sum"`, `}]more,"sum"`, 1},
		{"an unknown member", `"epoch":1`, `"epoch":1,"more":1`, 3},
		{"another status", `"status":"interrupted"`, `"status":"completed"`, 1},
		{"another label", `"tenant":"<abbey>"`, `"tenant":"other"`, 1},
		{"another number of entries", `"entries":7,"head"`, `"entries":8,"head"`, 1},
		{"a bad run id", `"run":"run"`, `"run":""`, 1},
		{"messages in another order", `"post":"2"`, `"post":"0"`, 9},
		{"a message that stands there twice", `"post":"2"`, `"post":"1"`, 9},
		{"a message without an id", `"post":"1"`, `"post":""`, 8},
		{"a message that is no JSON", `WyAxLAoyXQ==`, `WyAxLA==`, 9},
	} {
		if !bytes.Contains(file, []byte(c.old)) {
			t.Fatalf("%s: %s is not in the file", c.what, c.old)
		}
		superRefused(t, s, superResum(bytes.Replace(file, []byte(c.old), []byte(c.new), 1)), c.line, checkpoint.ErrCorrupt, c.what)
	}
	lines := slices.Collect(bytes.Lines(file))
	twice := bytes.Join(slices.Insert(slices.Clone(lines), 2, lines[1]), nil)
	twice = bytes.Replace(twice, []byte(`"graphs":1`), []byte(`"graphs":2`), 1)
	superRefused(t, s, superResum(twice), 3, checkpoint.ErrCorrupt, "a graph that stands there twice")
	if got := superResum(file); !bytes.Equal(got, file) {
		t.Fatal("the sums of the test are not those of the format")
	}
}

// superFails is a Store of which every change is tried, and the one of that number fails.
type superFails struct {
	superPlain
	left int
}

var errSuperFails = errors.New("the store fails")

func (s *superFails) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	if s.left--; s.left < 0 {
		return checkpoint.Head{}, errSuperFails
	}
	return s.superPlain.Append(ctx, l, after, entries)
}

func (s *superFails) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if s.left--; s.left < 0 {
		return errSuperFails
	}
	return s.superPlain.Post(ctx, run, p)
}

// An import that fails in the middle leaves no run, in a store that is no Archiver either.
func TestImportThatFailsLeavesNothing(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	for n := 0; ; n++ {
		s := &superFails{superPlain{new(memory.Store)}, n}
		_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
		if err == nil {
			if n != 4 { // an append and three messages
				t.Errorf("the import has made %d changes", n)
			}
			return
		}
		if _, serr := s.Stat(t.Context(), "run"); !errors.Is(err, errSuperFails) || !errors.Is(serr, checkpoint.ErrNotFound) {
			t.Errorf("change %d fails: Import = %v, Stat = %v", n, err, serr)
		}
		if _, err := s.Acquire(t.Context(), "run", "another"); err != nil {
			t.Errorf("change %d fails: the lease is not given back: %v", n, err)
		}
	}
}

// A blind store is one of which the Stat of that number fails.
type blind struct {
	superPlain
	left int
}

func (s *blind) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	if s.left--; s.left == -1 {
		return checkpoint.Info{}, errSuperFails
	}
	return s.superPlain.Stat(ctx, run)
}

// So does one that can't look at what it has made: it said that it had failed, and the run was
// there.
func TestImportThatCannotLookLeavesNothing(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	for n := 0; ; n++ {
		s := &blind{superPlain{new(memory.Store)}, n}
		info, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
		if s.left >= 0 {
			if n < 3 || err != nil || info.Owner != "" || info.Head.Seq == 0 {
				t.Errorf("behind %d looks: %+v, %v", n, info, err)
			}
			return
		}
		if _, serr := s.superPlain.Stat(t.Context(), "run"); !errors.Is(err, errSuperFails) || !errors.Is(serr, checkpoint.ErrNotFound) {
			t.Errorf("look %d fails: Import = %v, Stat = %v", n, err, serr)
		}
	}
}

// A lapsing store is one in which the lease of an importer ends before its first append, and
// somebody else makes a run of that name.
type lapsing struct {
	superPlain
	others checkpoint.Head
}

func (s *lapsing) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	err := s.Release(ctx, l)
	other, aerr := s.Acquire(ctx, l.Run, "somebody")
	if err = errors.Join(err, aerr); err == nil {
		s.others, err = s.superPlain.Append(ctx, other, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Noted}})
	}
	if err = errors.Join(err, s.Release(ctx, other)); err != nil {
		return checkpoint.Head{}, err
	}
	return s.superPlain.Append(ctx, l, after, entries)
}

// An import that has lost its lease leaves the run that somebody else has made meanwhile as it is.
func TestImportThatIsFencedDeletesNothing(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	s := &lapsing{superPlain: superPlain{new(memory.Store)}}
	_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
	info, serr := s.Stat(t.Context(), "run")
	if !errors.Is(err, checkpoint.ErrFenced) || serr != nil || info.Head != s.others {
		t.Errorf("Import = %v; the run of the other is at %+v, %v, want it at %+v", err, info.Head, serr, s.others)
	}
}

// A goneOn store is one in which somebody goes on with a run that is imported, as soon as nobody
// holds it, and no message can be posted then.
type goneOn struct {
	superPlain
	others checkpoint.Head
}

// goOn appends an entry, as who has the lease.
func (s *goneOn) goOn(ctx context.Context, run string) error {
	l, err := s.Acquire(ctx, run, "somebody")
	if err != nil {
		return err
	}
	info, err := s.Stat(ctx, run)
	if err == nil {
		s.others, err = s.Append(ctx, l, info.Head, []checkpoint.Entry{{Kind: checkpoint.Noted}})
	}
	return errors.Join(err, s.superPlain.Release(ctx, l))
}

func (s *goneOn) Post(ctx context.Context, run string, _ checkpoint.Post) error {
	if err := s.goOn(ctx, run); err != nil && !errors.Is(err, checkpoint.ErrBusy) {
		return err
	}
	return errSuperFails
}

func (s *goneOn) Release(ctx context.Context, l checkpoint.Lease) error {
	return errors.Join(s.superPlain.Release(ctx, l), s.goOn(ctx, l.Run))
}

type refusesPosts struct{ superPlain }

func (refusesPosts) Post(context.Context, string, checkpoint.Post) error { return errSuperFails }

// An import that fails, in a store that is no Archiver, leaves the run to whoever has gone on with
// it meanwhile.
func TestImportThatFailsLeavesWhatOthersHaveGoneOnWith(t *testing.T) {
	forks := forkstoreRuns(t)
	if err := forks.Post(t.Context(), "fork", checkpoint.Post{ID: "post", Kind: "turn"}); err != nil {
		t.Fatal(err)
	}
	for run, file := range map[string][]byte{"run": superExport(t, superRun(t, "run"), "run"), "fork": forkstoreExport(t, forks, "fork")} {
		s := &goneOn{superPlain: superPlain{new(memory.Store)}}
		_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
		info, serr := s.Stat(t.Context(), run)
		if !errors.Is(err, errSuperFails) || serr != nil || info.Head != s.others {
			t.Errorf("Import of %q = %v; who has gone on with it finds it at %+v, %v, and has left it at %+v", run, err, info.Head, serr, s.others)
		}
		alone := refusesPosts{superPlain{new(memory.Store)}}
		_, err = checkpoint.Import(t.Context(), alone, bytes.NewReader(file), checkpoint.ImportOptions{})
		if _, serr = alone.Stat(t.Context(), run); !errors.Is(err, errSuperFails) || !errors.Is(serr, checkpoint.ErrNotFound) {
			t.Errorf("Import of %q = %v, and then Stat = %v: nobody has gone on with it", run, err, serr)
		}
	}
}

// A run id that exists is ErrExists, one that somebody holds is ErrBusy; both stay as they are.
func TestImportRefusesRunsThatExist(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	for name, s := range map[string]checkpoint.Store{"archiver": new(memory.Store), "plain": superPlain{new(memory.Store)}} {
		l, err := s.Acquire(t.Context(), "run", "somebody")
		if err != nil {
			t.Fatal(err)
		}
		_, err = checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
		if !errors.Is(err, checkpoint.ErrBusy) {
			t.Errorf("%s: Import beside a lease = %v", name, err)
		}
		head, err := s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Noted}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
		if !errors.Is(err, checkpoint.ErrExists) {
			t.Errorf("%s: Import of a run that exists = %v", name, err)
		}
		if info, err := s.Stat(t.Context(), "run"); err != nil || info.Head != head || info.Owner != "somebody" {
			t.Errorf("%s: Stat = %+v, %v", name, info, err)
		}
	}
}

// A line that is longer than the limit is ErrTooLarge; a limit can't be negative.
func TestImportLimitsLines(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	longest := 0
	for line := range bytes.Lines(file) {
		longest = max(longest, len(line))
	}
	for limit, want := range map[int]error{longest - 1: checkpoint.ErrTooLarge, 1: checkpoint.ErrTooLarge, longest: nil} {
		_, err := checkpoint.Import(t.Context(), new(memory.Store), bytes.NewReader(file), checkpoint.ImportOptions{LineBytes: limit})
		if !errors.Is(err, want) {
			t.Errorf("LineBytes: %d: Import = %v, want %v", limit, err, want)
		}
	}
	if _, err := checkpoint.Import(t.Context(), new(memory.Store), bytes.NewReader(file), checkpoint.ImportOptions{LineBytes: -1}); err == nil {
		t.Error("LineBytes: -1: Import = nil")
	}
}

// A long is a file of one line of so many bytes.
type long struct{ size, at int64 }

func (l *long) Read(b []byte) (int, error) {
	if l.at == l.size {
		return 0, io.EOF
	}
	n := copy(b, bytes.Repeat([]byte("x"), int(min(int64(len(b)), l.size-l.at))))
	l.at += int64(n)
	return n, nil
}

func (l *long) Seek(offset int64, from int) (int64, error) {
	if from == io.SeekStart {
		l.at = offset
	}
	return l.at, nil
}

// Without a limit of its own Import takes lines of 128 MiB, and no longer ones.
func TestImportLimitsLinesByDefault(t *testing.T) {
	for size, want := range map[int64]error{128 << 20: checkpoint.ErrCorrupt, 128<<20 + 1: checkpoint.ErrTooLarge} {
		_, err := checkpoint.Import(t.Context(), new(memory.Store), &long{size: size}, checkpoint.ImportOptions{})
		if !errors.Is(err, want) {
			t.Errorf("Import of a line of %d bytes that says nothing = %v, want %v", size, err, want)
		}
	}
}

// The entries of an append stand in its line in one form: a line that has some in either is
// refused, though they are those of its digest.
func TestImportRefusesEntriesInTwoForms(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	lines := slices.Collect(bytes.Lines(file))
	var first struct{ Entries []json.RawMessage }
	if err := json.Unmarshal(lines[2], &first); err != nil || len(first.Entries) != 2 {
		t.Fatalf("line 3 is %s, %v, want one with two entries", lines[2], err)
	}
	old := slices.Concat([]byte(`"entries":[`), first.Entries[0], []byte(","), first.Entries[1], []byte("]"))
	text := base64.StdEncoding.EncodeToString(first.Entries[0])
	both := slices.Concat([]byte(`"texts":["`+text+`"],"entries":[`), first.Entries[1], []byte("]"))
	if !bytes.Contains(file, old) {
		t.Fatalf("%s is not in the file", old)
	}
	superRefused(t, new(memory.Store), superResum(bytes.Replace(file, old, both, 1)), 3, checkpoint.ErrCorrupt, "entries in two forms")
}

// A graphless is a store that takes no graph.
type graphless struct {
	*memory.Store
	err error
}

func (s graphless) PutGraph(context.Context, string, []byte) error { return s.err }

// What the store has against a graph is the store's error, and says nothing against the file.
func TestImportIntoAStoreThatTakesNoGraph(t *testing.T) {
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), superRun(t, "run"), "run", &file); err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{checkpoint.ErrTooLarge, checkpoint.ErrVersion, &checkpoint.CorruptError{Run: "another", Reason: "it is damaged"}} {
		s := graphless{new(memory.Store), fmt.Errorf("the store: %w", cause)}
		_, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file.Bytes()), checkpoint.ImportOptions{})
		if err != s.err { // as it is
			t.Errorf("Import = %v, want %v", err, s.err)
		}
	}
}
