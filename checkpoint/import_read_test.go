package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// superShifty reads as one file the first time and as another one after a Seek.
type superShifty struct {
	*bytes.Reader
	then []byte
}

func (r *superShifty) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		r.Reader = bytes.NewReader(r.then)
	}
	return r.Reader.Seek(offset, whence)
}

// A reader is read from where it stands; one that can't seek is read as well; one that fails
// is its own error; and a file that is exchanged while it is read is refused.
func TestImportReadsTwice(t *testing.T) {
	file := superExport(t, superRun(t, "run"), "run")
	s := new(memory.Store)
	behind := bytes.NewReader(append([]byte("something else\n"), file...))
	if _, err := behind.Seek(15, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	written := make(chan error, 1)
	go func() {
		_, err := w.Write(file)
		written <- errors.Join(err, w.Close())
	}()
	for name, r := range map[string]io.Reader{"at an offset": behind, "no seeker": io.MultiReader(bytes.NewReader(file)), "a pipe": pipe} {
		if _, err := checkpoint.Import(t.Context(), s, r, checkpoint.ImportOptions{}); err != nil {
			t.Errorf("%s: Import = %v", name, err)
		}
		if err := s.Delete(t.Context(), "run"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	broken := io.MultiReader(bytes.NewReader(file[:100]), errReader{})
	if _, err := checkpoint.Import(t.Context(), s, broken, checkpoint.ImportOptions{}); !errors.Is(err, errBroken) {
		t.Errorf("Import of a broken reader = %v", err)
	}
	other := superRun(t, "run")
	l, _ := other.Acquire(t.Context(), "run", "test")
	info, _ := other.Stat(t.Context(), "run")
	if _, err := other.Append(t.Context(), l, info.Head, []checkpoint.Entry{{Kind: checkpoint.Noted}}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]checkpoint.Store{"archiver": new(memory.Store), "plain": superPlain{new(memory.Store)}} {
		r := &superShifty{bytes.NewReader(file), superExport(t, other, "run")}
		var e *checkpoint.ImportError
		if _, err := checkpoint.Import(t.Context(), s, r, checkpoint.ImportOptions{}); !errors.As(err, &e) {
			t.Errorf("%s: Import of a file that is exchanged = %v", name, err)
		}
		if page, err := s.List(t.Context(), checkpoint.Filter{}); err != nil || len(page) > 0 {
			t.Errorf("%s: List = %v, %v", name, page, err)
		}
	}
}

var errBroken = errors.New("broken")

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }

// An endless reader can't seek, and ends the context of who reads it by its first byte.
type endlessReader struct {
	end   context.CancelFunc
	reads int
}

func (r *endlessReader) Read(p []byte) (int, error) {
	r.end()
	if r.reads++; r.reads > 1 {
		return 0, errBroken
	}
	return copy(p, "{"), nil
}

// When ctx ends a reader that can't seek is read no further, as one that can, and with one that has
// ended nothing is read.
func TestImportReadsUntilTheContextEnds(t *testing.T) {
	for name, ended := range map[string]bool{"while it is read": false, "before": true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, want := &endlessReader{end: cancel}, 1
		if ended {
			cancel()
			want = 0
		}
		_, err := checkpoint.Import(ctx, new(memory.Store), r, checkpoint.ImportOptions{})
		if !errors.Is(err, context.Canceled) || r.reads != want {
			t.Errorf("with a context that ends %s: Import = %v behind %d reads, want %d", name, err, r.reads, want)
		}
	}
}

// A fork's file that is exchanged while it is read is refused as well, by a store that takes it in
// one append.
func TestImportReadsAForkTwice(t *testing.T) {
	s := forkstoreRuns(t)
	file := forkstoreExport(t, s, "fork")
	forkstoreGrow(t, s, "fork", 1)
	to := new(memory.Store)
	r := &superShifty{bytes.NewReader(file), forkstoreExport(t, s, "fork")}
	var e *checkpoint.ImportError
	if _, err := checkpoint.Import(t.Context(), superPlain{to}, r, checkpoint.ImportOptions{}); !errors.As(err, &e) {
		t.Errorf("Import of a file that is exchanged = %v", err)
	}
	if page, err := to.List(t.Context(), checkpoint.Filter{}); err != nil || len(page) > 0 {
		t.Errorf("List = %v, %v", page, err)
	}
}

// What was posted first is first where it is imported, in a store that is no Archiver too, and
// whatever the ids are.
func TestImportKeepsTheOrderOfPosting(t *testing.T) {
	envelope, _, err := checkpoint.Seal(nil, checkpoint.Head{}, time.Now(), 1, []checkpoint.Entry{{Kind: checkpoint.Opened}})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Hour)
	from := new(memory.Store)
	superRestore(t, from, "run", []checkpoint.Post{
		{ID: "a", Kind: "turn", At: at.Add(2)}, {ID: "b", Kind: "turn", At: at}, {ID: "c", Kind: "turn", At: at.Add(1)},
	}, [][]byte{envelope})
	for name, to := range map[string]checkpoint.Store{"archiver": new(memory.Store), "plain": superPlain{new(memory.Store)}} {
		superImport(t, to, superExport(t, from, "run"))
		if err := to.Post(t.Context(), "run", checkpoint.Post{ID: "0", Kind: "turn"}); err != nil {
			t.Fatal(err)
		}
		posts, err := to.Posts(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(posts, func(a, b checkpoint.Post) int { return a.At.Compare(b.At) })
		order := ""
		for _, p := range posts {
			order += p.ID
		}
		if order != "bca0" {
			t.Errorf("%s: the messages are in the order %s, want bca0", name, order)
		}
	}
}
