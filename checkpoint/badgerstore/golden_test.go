package badgerstore_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Stores of a format that was released are never made again: what can't be read any more breaks
// the stores that are out there.
var makeGolden = flag.Bool("golden", false, "make the stores that are not yet in testdata")

// Where stores and exports are whose envelopes are of one version. What they go on with is of the
// newest.
const (
	goldenV1 = "testdata/v1"
	goldenV2 = "testdata/v2"
	goldenV3 = "testdata/v3" // envelopes as in goldenV2, in stores of format 2: those before are of format 1
	goldenV4 = "testdata/v4" // the same in stores of format 3
)

// Stores and exports of every format are read, for ever, and go on: plain, compressed, in pieces
// and encrypted.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, from := range []string{goldenV1, goldenV2, goldenV3, goldenV4} {
		for name, o := range goldenOptions(t) {
			t.Run(filepath.Base(from)+" "+name, func(t *testing.T) {
				name := filepath.Join(from, name)
				s := openGolden(t, name+".tar.gz", o, func(dir string) { makeGoldenStore(t, dir, name, o) })
				for _, run := range goldenRuns {
					exportsAs(t, s, run, name+"-"+run+".jsonl")
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
				var file bytes.Buffer // of both versions, where it was of the first
				if err := checkpoint.Export(t.Context(), s, "run", &file); err != nil {
					t.Fatal(err)
				}
				imports(t, s, "run", file.Bytes())
			})
		}
	}
}

// exportsAs fails unless the run is exported as that file, and the file is imported as the run.
func exportsAs(t *testing.T, s *badgerstore.Store, run, file string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, run, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the export of %s is another one: %v", run, err)
	}
	imports(t, s, run, want)
}

// imports fails unless the file is imported as the run.
func imports(t *testing.T, s *badgerstore.Store, run string, file []byte) {
	t.Helper()
	into := openWith(t, t.TempDir(), small)
	info, err := checkpoint.Import(t.Context(), into, bytes.NewReader(file), checkpoint.ImportOptions{})
	if err != nil {
		t.Fatalf("Import of %s: %v", run, err)
	}
	if stored, err := s.Stat(t.Context(), run); err != nil || stored.Head != info.Head {
		t.Errorf("%s: the head is %v, of the import %v, %v", run, stored.Head, info.Head, err)
	}
}

// Appends and snapshots in pieces are read, for ever, too, plain and encrypted: what is compressed
// and still too large for one key. Pieces were larger in version 1; how they are encrypted is the
// same.
func TestGoldenPieces(t *testing.T) {
	t.Parallel()
	for name, o := range goldenOptions(t) {
		for _, from := range []string{goldenV1, goldenV2, goldenV3, goldenV4} {
			if from != goldenV1 && name == "sealed" {
				continue
			}
			t.Run(filepath.Base(from)+" "+name+" append", func(t *testing.T) {
				readGoldenPieces(t, filepath.Join(from, name+"-append"), "cl", o, goldenPieces(), goldenText)
			})
			t.Run(filepath.Base(from)+" "+name+" snapshot", func(t *testing.T) {
				readGoldenPieces(t, filepath.Join(from, name+"-snapshot"), "cs", o, goldenText, goldenPieces())
			})
		}
	}
}

// readGoldenPieces reads the store of that name, which has pieces of one kind alone.
func readGoldenPieces(t *testing.T, name, kind string, o badgerstore.Options, delta, snapshot string) {
	t.Helper()
	s := openGolden(t, name+".tar.zst", o, func(dir string) { makeGoldenPieces(t, dir, o, delta, snapshot) })
	pieces := make(map[string]int)
	for key := range valuesOf(t, s) {
		if key[0] == 'c' {
			pieces[key[:2]]++
		}
	}
	if len(pieces) != 1 || pieces[kind] < 2 {
		t.Fatalf("there are pieces %v, want some of kind %s", pieces, kind)
	}
	var deltas []string
	for e, err := range s.Read(t.Context(), "run", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		deltas = append(deltas, string(e.Delta))
	}
	if want := []string{"", fmt.Sprintf("%q", delta), ""}; !slices.Equal(deltas, want) {
		t.Errorf("the log is another one, of %d entries", len(deltas))
	}
	if snap, err := s.Snapshot(t.Context(), "run", 0); err != nil || string(snap.Data) != snapshot {
		t.Errorf("Snapshot = %.40q, %v", snap.Data, err)
	}
	if err := forkstoreGrow(t.Context(), s, "run", 2); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
	for f, err := range s.Verify(t.Context(), nil) {
		t.Errorf("Verify: %+v, %v", f, err)
	}
}

func goldenOptions(t *testing.T) map[string]badgerstore.Options {
	return map[string]badgerstore.Options{"plain": small, "sealed": sealedBy(t, keyOf(t, "golden", 'g'))}
}

// openGolden opens a copy of the store in that file, which is made first if it is not there and is
// to be.
func openGolden(t *testing.T, path string, o badgerstore.Options, fill func(dir string)) *badgerstore.Store {
	t.Helper()
	if _, err := os.Stat(path); *makeGolden && errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Join(t.TempDir(), "made")
		fill(dir)
		packTo(t, path, dir)
	}
	dir := filepath.Join(t.TempDir(), "store")
	unpackTo(t, dir, path)
	return openWith(t, dir, o)
}

var (
	goldenRuns = []string{"run", "fork", "trimmed"}
	goldenText = strings.Repeat("the rose of old remains only in its name; ", 100)
)

// makeGoldenStore makes a store that holds a little of everything, and the exports of its runs.
func makeGoldenStore(t *testing.T, dir, name string, o badgerstore.Options) {
	t.Helper()
	ctx := t.Context()
	check := fatal(t)
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
	check(os.MkdirAll(filepath.Dir(name), 0o755))
	for _, run := range goldenRuns {
		var file bytes.Buffer
		check(checkpoint.Export(ctx, s, run, &file))
		check(os.WriteFile(name+"-"+run+".jsonl", file.Bytes(), 0o644))
	}
	check(s.Close())
}

// goldenPieces is text that zstd makes small, but not small enough for one key: what is the same
// again after a piece of 1 MiB it does not see, while whoever packs the store does.
func goldenPieces() string {
	const piece = 1 << 20
	text := noise(52_600) + strings.Repeat(goldenText, piece/len(goldenText))
	return strings.Repeat(text[:piece], 12)
}

// fatal returns a function that ends the test with any error.
func fatal(t *testing.T) func(error) {
	return func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// makeGoldenPieces makes a store whose run has this delta and this snapshot.
func makeGoldenPieces(t *testing.T, dir string, o badgerstore.Options, delta, snapshot string) {
	t.Helper()
	ctx := t.Context()
	check := fatal(t)
	s, err := badgerstore.Open(ctx, dir, o)
	check(err)
	l, err := s.Acquire(ctx, "run", "owner")
	check(err)
	var head checkpoint.Head
	for _, e := range []checkpoint.Entry{
		{Kind: checkpoint.Opened},
		{Kind: checkpoint.Done, Path: "a", Step: 1, Delta: fmt.Appendf(nil, "%q", delta)},
		{Kind: checkpoint.Noted, ID: "behind it"},
	} {
		head, err = s.Append(ctx, l, head, []checkpoint.Entry{e})
		check(err)
	}
	check(s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head, Data: []byte(snapshot)}))
	check(s.Release(ctx, l))
	check(s.Close())
}

// packTo makes an archive of a directory.
func packTo(t *testing.T, path, dir string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var z io.WriteCloser = gzip.NewWriter(f)
	if strings.HasSuffix(path, ".zst") {
		if z, err = zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedBestCompression)); err != nil {
			t.Fatal(err)
		}
	}
	w := tar.NewWriter(z)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// unpackTo makes a directory of an archive.
func unpackTo(t *testing.T, dir, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var z io.Reader
	if strings.HasSuffix(path, ".zst") {
		z, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	} else {
		z, err = gzip.NewReader(f)
	}
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
