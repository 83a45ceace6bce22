package badgerstore_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Stores of a format that was released are never made again: what can't be read any more breaks
// the stores that are out there.
var makeGolden = flag.Bool("golden", false, "make the stores of testdata whose format has no release yet")

const goldenDir = "testdata/v1"

// Stores and exports of format 1 are read, for ever, and go on: plain, compressed, in pieces and
// encrypted.
func TestGoldenV1(t *testing.T) {
	t.Parallel()
	golden := map[string]badgerstore.Options{"plain": small, "sealed": sealedBy(t, keyOf(t, "golden", 'g'))}
	if *makeGolden {
		for name, o := range golden {
			makeGoldenStore(t, name, o)
		}
	}
	for name, o := range golden {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			unpackTo(t, dir, filepath.Join(goldenDir, name+".tar.gz"))
			s := openWith(t, dir, o)
			for _, run := range goldenRuns {
				want, err := os.ReadFile(filepath.Join(goldenDir, name+"-"+run+".jsonl"))
				if err != nil {
					t.Fatal(err)
				}
				var got bytes.Buffer
				if err := checkpoint.Export(t.Context(), s, run, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
					t.Errorf("the export of %s is another one: %v", run, err)
				}
				into := openWith(t, t.TempDir(), small)
				info, err := checkpoint.Import(t.Context(), into, bytes.NewReader(want), checkpoint.ImportOptions{})
				if err != nil {
					t.Fatalf("Import of %s: %v", run, err)
				}
				if stored, err := s.Stat(t.Context(), run); err != nil || stored.Head != info.Head {
					t.Errorf("%s: the head is %v, of the import %v, %v", run, stored.Head, info.Head, err)
				}
			}
			snap, err := s.Snapshot(t.Context(), "run", 0)
			if err != nil || string(snap.Data) != goldenText {
				t.Errorf("Snapshot = %.40q, %v", snap.Data, err)
			}
			if graph, err := s.Graph(t.Context(), "digest"); err != nil || string(graph) != `{"nodes":[]}` {
				t.Errorf("Graph = %s, %v", graph, err)
			}
			if err := forkstoreGrow(t.Context(), s, "run", 2); err != nil {
				t.Errorf("the run does not go on: %v", err)
			}
			for f, err := range s.Verify(t.Context(), nil) {
				t.Errorf("Verify: %+v, %v", f, err)
			}
		})
	}
}

var (
	goldenRuns = []string{"run", "fork", "trimmed"}
	goldenText = strings.Repeat("the rose of old remains only in its name; ", 100)
)

// makeGoldenStore makes a store that holds a little of everything, and the exports of its runs.
func makeGoldenStore(t *testing.T, name string, o badgerstore.Options) {
	t.Helper()
	dir, ctx := filepath.Join(t.TempDir(), name), t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := badgerstore.Open(ctx, dir, o)
	check(err)
	check(s.PutGraph(ctx, "digest", []byte(`{"nodes":[]}`)))
	l, err := s.Acquire(ctx, "run", "owner")
	check(err)
	head, err := s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{{
		Kind: checkpoint.Opened, Data: []byte(`{"graph":"golden","digest":"digest","labels":{"a":"ü"}}`),
	}})
	check(err)
	for i, text := range []string{"short", goldenText} {
		head, err = s.Append(ctx, l, head, []checkpoint.Entry{
			{Kind: checkpoint.Done, Path: "a/1/b", Step: i + 1, Delta: fmt.Appendf(nil, "%q", text)},
			{Kind: checkpoint.Noted, Data: fmt.Appendf(nil, "%q", text)},
		})
		check(err)
		check(s.Post(ctx, "run", checkpoint.Post{ID: fmt.Sprint("post ", i), Kind: "answer", Data: fmt.Appendf(nil, "%q", text)}))
	}
	check(s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head, Data: []byte(goldenText)}))
	check(s.Release(ctx, l))
	large := fmt.Appendf(nil, "%q", noise(80<<10)) // in pieces
	check(s.Fork(ctx, forkstoreShelved(large, []byte(`"shelf"`), 2000, "fork")))
	check(forkstoreGrow(ctx, s, "trimmed", 4))
	check(forkstoreTrim(ctx, s, "trimmed", 4, []byte(`"base"`)))
	check(os.MkdirAll(goldenDir, 0o755))
	for _, run := range goldenRuns {
		var file bytes.Buffer
		check(checkpoint.Export(ctx, s, run, &file))
		check(os.WriteFile(filepath.Join(goldenDir, name+"-"+run+".jsonl"), file.Bytes(), 0o644))
	}
	check(s.Close())
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	check(w.AddFS(os.DirFS(dir)))
	check(errors.Join(w.Close(), z.Close()))
	check(os.WriteFile(filepath.Join(goldenDir, name+".tar.gz"), packed.Bytes(), 0o644))
}

// unpackTo makes a directory of an archive.
func unpackTo(t *testing.T, dir, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			continue
		}
		text, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
