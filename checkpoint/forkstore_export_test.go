package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// forkstoreExport returns the export of a run.
func forkstoreExport(t *testing.T, s checkpoint.Store, run string) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, run, &file); err != nil {
		t.Fatalf("Export(%q) = %v", run, err)
	}
	return file.Bytes()
}

// Forks and trimmed runs move to another store with their bases, where they are what they were: the
// same file comes of them, Verify finds nothing, and the first store may be gone.
func TestForkstoreExport(t *testing.T) {
	s := forkstoreRuns(t)
	for _, run := range []string{"fork", "trimmed"} {
		file := forkstoreExport(t, s, run)
		want, err := s.Stat(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		to := new(memory.Store)
		info, err := checkpoint.Import(t.Context(), to, bytes.NewReader(file), checkpoint.ImportOptions{})
		if err != nil {
			t.Fatalf("Import of %q = %v", run, err)
		}
		if info.Epoch, want.Epoch = 0, 0; !reflect.DeepEqual(info, want) {
			t.Errorf("Import of %q = %+v, want %+v", run, info, want)
		}
		if again := forkstoreExport(t, to, run); !bytes.Equal(again, file) {
			t.Errorf("the export of %q is another file", run)
		}
		if found, err := forkstoreFindings(t, to, run); len(found) > 0 || err != nil {
			t.Errorf("Verify(%q) finds %v, %v", run, found, err)
		}
		forkstoreGrow(t, to, run, 1)
		if err := to.Delete(t.Context(), run); err != nil {
			t.Error(err)
		}
		if _, err := checkpoint.Import(t.Context(), to, bytes.NewReader(file), checkpoint.ImportOptions{}); err != nil {
			t.Errorf("Import of %q again = %v", run, err)
		}
	}
}

// A store that is no Archiver takes a fork, in one append, and refuses what was trimmed, both ways.
func TestForkstoreExportWithoutArchiver(t *testing.T) {
	s := forkstoreRuns(t)
	to := new(memory.Store)
	plain := struct{ checkpoint.Store }{to}
	info, err := checkpoint.Import(t.Context(), plain, bytes.NewReader(forkstoreExport(t, s, "fork")), checkpoint.ImportOptions{})
	if err != nil || info.Head.Seq != 9 || info.Base != checkpoint.BaseDigest(forkstoreBase) || info.Origin == nil {
		t.Errorf("Import of a fork = %+v, %v", info, err)
	}
	if base, err := to.Base(t.Context(), "fork", info.Base); err != nil || !bytes.Equal(base, forkstoreBase) {
		t.Errorf("Base = %s, %v", base, err)
	}
	if shelf, err := to.Base(t.Context(), "fork", info.Origin.Shelf); err != nil || !bytes.Equal(shelf, forkstoreShelf) {
		t.Errorf("the shelf = %s, %v", shelf, err)
	}
	again := forkstoreExport(t, plain, "fork")
	if _, err := checkpoint.Import(t.Context(), new(memory.Store), bytes.NewReader(again), checkpoint.ImportOptions{}); err != nil {
		t.Errorf("Import of what a plain store has exported = %v", err)
	}
	_, err = checkpoint.Import(t.Context(), plain, bytes.NewReader(forkstoreExport(t, s, "trimmed")), checkpoint.ImportOptions{})
	if !errors.Is(err, checkpoint.ErrUnsupported) {
		t.Errorf("Import of what was trimmed = %v", err)
	}
	if _, err := to.Stat(t.Context(), "trimmed"); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Stat of what was refused = %v", err)
	}
	err = checkpoint.Export(t.Context(), struct{ checkpoint.Store }{s}, "trimmed", new(bytes.Buffer))
	if !errors.Is(err, checkpoint.ErrUnsupported) {
		t.Errorf("Export of what was trimmed = %v", err)
	}
}

// A run that has gone back behind a change of its graph, and was trimmed to there, takes along the
// graph that it goes on with, which that entry alone names. Verify looks at it.
func TestExportHoldsTheGraphOfARewind(t *testing.T) {
	digest, graph := superGraph()
	s := new(memory.Store)
	for digest, graph := range map[string][]byte{digest: graph, "grown": []byte("{}")} {
		if err := s.PutGraph(t.Context(), digest, graph); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	for _, e := range []checkpoint.Entry{
		{Kind: checkpoint.Opened, Data: fmt.Appendf(nil, `{"graph":"archivist","digest":%q}`, digest)},
		{Kind: checkpoint.Migrated, Data: fmt.Appendf(nil, `{"graph":"archivist","from":%q,"to":"grown"}`, digest)},
		{Kind: checkpoint.Rewound, Data: fmt.Appendf(nil, `{"to":1,"turn":1,"graph":"archivist","digest":%q}`, digest)},
	} {
		if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	base := []byte(`{"graph":"grown"}`)
	trimming := fmt.Appendf(nil, `{"first":3,"base":%q}`, checkpoint.BaseDigest(base))
	if _, err := s.Trim(t.Context(), l, head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: trimming}, base); err != nil {
		t.Fatal(err)
	}
	to := new(memory.Store)
	superImport(t, to, superExport(t, s, "run"))
	for digest, want := range map[string]string{digest: string(graph), "grown": "{}"} {
		if got, err := to.Graph(t.Context(), digest); err != nil || string(got) != want {
			t.Errorf("graph %s of the import is %s, %v, want %s", digest, got, err, want)
		}
	}
	for name, s := range map[string]checkpoint.Store{"an Archiver": misnamed{s}, "a plain store": struct{ checkpoint.Store }{misnamed{s}}} {
		if found, err := forkstoreFindings(t, s, "run"); fmt.Sprint(found) != "[graph 0]" || err != nil {
			t.Errorf("of %s with another graph Verify finds %v, %v, want that graph", name, found, err)
		}
	}
}

// An export with bases of which a byte is changed, or a line left out, doubled or moved, is
// refused.
func TestForkstoreExportRefusesChanges(t *testing.T) {
	file := forkstoreExport(t, forkstoreRuns(t), "trimmed")
	refused := func(name string, file []byte) {
		t.Helper()
		to := new(memory.Store)
		_, err := checkpoint.Import(t.Context(), to, bytes.NewReader(file), checkpoint.ImportOptions{})
		var known *checkpoint.ImportError
		if !errors.As(err, &known) {
			t.Errorf("with %s Import = %v", name, err)
		}
		if page, err := to.List(t.Context(), checkpoint.Filter{}); len(page) > 0 || err != nil {
			t.Errorf("with %s the store has %v, %v", name, page, err)
		}
	}
	for at := 0; at < len(file); at += 3 {
		changed := bytes.Clone(file)
		changed[at] ^= 1
		refused(fmt.Sprintf("byte %d changed", at), changed)
	}
	lines := strings.SplitAfter(string(file), "\n")
	for i := range lines[:len(lines)-1] {
		before, rest := strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
		refused(fmt.Sprintf("line %d left out", i+1), []byte(before+rest))
		refused(fmt.Sprintf("line %d doubled", i+1), []byte(before+lines[i]+lines[i]+rest))
		if i > 0 {
			refused(fmt.Sprintf("line %d first", i+1), []byte(lines[i]+before+rest))
		}
	}
}
