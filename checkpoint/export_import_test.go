package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

var superUpdate = flag.Bool("update", false, "write the golden files of exports anew")

// superPlain hides that a store is an Archiver.
type superPlain struct{ checkpoint.Store }

// superGraph is the digest and the JSON of a graph, as package dag makes them.
func superGraph() (digest string, graph []byte) {
	sum := sha256.Sum256([]byte(`{"name":"archivist","nodes":[{"name":"search","kind":"step","outcomes":["<&>"]}]}`))
	digest = "sha256:" + hex.EncodeToString(sum[:])
	return digest, []byte(`{"name":"archivist","digest":"` + digest + `","nodes":[{"name":"search","kind":"step","outcomes":["<&>"]}]}`)
}

// superRun makes a run of fixed times, with everything in it that an export holds.
func superRun(t testing.TB, run string) *memory.Store {
	t.Helper()
	digest, graph := superGraph()
	opening := checkpoint.Opening{Graph: "archivist", Digest: digest, Labels: map[string]string{"tenant": "<abbey>", "a": "ü"}, Correlation: "c-1"}
	raw := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	s := new(memory.Store)
	if err := s.PutGraph(t.Context(), digest, graph); err != nil {
		t.Fatal(err)
	}
	var head checkpoint.Head
	var envelopes [][]byte
	for i, entries := range [][]checkpoint.Entry{
		{
			{Kind: checkpoint.Opened, Delta: raw(map[string]int{"n": 1}), Data: raw(opening)},
			{Kind: checkpoint.Entered},
		},
		{{Kind: checkpoint.Done, Path: "search <&>", Step: 1, Delta: raw("quotes \" \\ \u2028 & 🪓")}},
		{{Kind: checkpoint.Superstep, Step: 1, Delta: json.RawMessage("{\n\t\"a\": [1, 2]\r\n}")}, {Kind: checkpoint.Noted, Post: "0"}},
		{{Kind: checkpoint.Interrupted, Path: "ask", ID: "i", Data: raw(checkpoint.Interrupt{Kind: "asked", Key: "k"})}},
		{{Kind: checkpoint.Waiting}},
	} {
		at := time.Date(2026, 11, 21, 9, 30, i, 120e6, time.UTC)
		envelope, next, err := checkpoint.Seal(nil, head, at, uint64(i/2+1), entries)
		if err != nil {
			t.Fatal(err)
		}
		envelopes, head = append(envelopes, envelope), next
	}
	posts := []checkpoint.Post{
		{ID: "1", Kind: "answer", Data: raw(map[string]string{"answer": "yes"}), At: time.UnixMilli(1_790_000_000_000)},
		{ID: "2", Kind: "answer", Data: json.RawMessage("[ 1,\n2]"), At: time.UnixMilli(1_790_000_000_001)},
		{ID: "3", Kind: "cancel", At: time.UnixMilli(1_790_000_000_002)},
	}
	superRestore(t, s, run, posts, envelopes)
	return s
}

func superRestore(t testing.TB, s *memory.Store, run string, posts []checkpoint.Post, envelopes [][]byte) {
	t.Helper()
	l, err := s.Acquire(t.Context(), run, "test")
	if err != nil {
		t.Fatal(err)
	}
	all := func(yield func([]byte, error) bool) {
		for _, e := range envelopes {
			if !yield(e, nil) {
				return
			}
		}
	}
	if _, err := s.Restore(t.Context(), l, checkpoint.Archive{Envelopes: all, Posts: posts}); err != nil {
		t.Fatal(err)
	}
}

func superExport(t testing.TB, s checkpoint.Store, run string) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, run, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func superImport(t testing.TB, s checkpoint.Store, file []byte) checkpoint.Info {
	t.Helper()
	info, err := checkpoint.Import(t.Context(), s, bytes.NewReader(file), checkpoint.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// superLog is the log of a run as text, with times if they are to be the same.
func superLog(t testing.TB, s checkpoint.Store, run string, times bool) string {
	t.Helper()
	var text strings.Builder
	for e, err := range s.Read(t.Context(), run, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !times {
			e.At = time.Time{}
		}
		fmt.Fprintf(&text, "%d %v %+v\n", e.Seq, e.At, e)
	}
	return text.String()
}

func superBadger(t testing.TB) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{MemTableSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// An export is lines of JSON, the same bytes for the same log, and its format is pinned.
func TestExportIsPinned(t *testing.T) {
	file := superExport(t, superRun(t, "inquiry 42"), "inquiry 42")
	for line := range bytes.Lines(file) {
		if !json.Valid(line) {
			t.Errorf("a line is no JSON: %s", line)
		}
	}
	golden := filepath.Join("testdata", "export.jsonl")
	if *superUpdate {
		if err := os.WriteFile(golden, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, want) {
		t.Errorf("the export is\n%s\nwant\n%s", file, want)
	}
}

// A run that is imported has the same entries under the same numbers, and the same messages.
// From an Archiver to an Archiver it has the same times and digests, and exports to the same
// bytes; so does the log of a store that is none, once it was sealed anew.
func TestImportIsExact(t *testing.T) {
	from := superRun(t, "run")
	file := superExport(t, from, "run")
	made := superExport(t, superPlain{from}, "run")
	for _, to := range []struct {
		name  string
		store checkpoint.Store
		exact bool
	}{
		{"memory", new(memory.Store), true},
		{"badger", superBadger(t), true},
		{"a plain store", superPlain{new(memory.Store)}, false},
	} {
		for _, file := range [][]byte{file, made} {
			info := superImport(t, to.store, file)
			stat, err := to.store.Stat(t.Context(), "run")
			if err != nil || stat.Head != info.Head || stat.Status != checkpoint.StatusInterrupted ||
				stat.Labels["tenant"] != "<abbey>" || stat.Graph != "archivist" || stat.Owner != "" {
				t.Errorf("%s: Stat = %+v, %v; Import = %+v", to.name, stat, err, info)
			}
			if got, want := superLog(t, to.store, "run", to.exact), superLog(t, from, "run", to.exact); got != want {
				t.Errorf("%s: the log is\n%s\nwant\n%s", to.name, got, want)
			}
			if to.exact && !bytes.Equal(superExport(t, to.store, "run"), file) && !bytes.Contains(file, []byte(`"entries":7,"sum"`)) {
				t.Errorf("%s: the export of the import is another file", to.name)
			}
			want, err := from.Posts(t.Context(), "run")
			got, err2 := to.store.Posts(t.Context(), "run")
			if err != nil || err2 != nil || !slices.EqualFunc(got, want, func(a, b checkpoint.Post) bool {
				return a.ID == b.ID && a.Says(b) && (!to.exact || a.At.Equal(b.At))
			}) {
				t.Errorf("%s: Posts = %v, want %v (%v, %v)", to.name, got, want, err, err2)
			}
			digest, graph := superGraph()
			if got, err := to.store.Graph(t.Context(), digest); err != nil || !bytes.Equal(got, graph) {
				t.Errorf("%s: Graph = %s, %v", to.name, got, err)
			}
			if err := to.store.Delete(t.Context(), "run"); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, _ := from.Stat(t.Context(), "run")
	to := new(memory.Store)
	if info := superImport(t, to, file); info.Head != first.Head || !info.Created.Equal(first.Created) {
		t.Errorf("Import = %+v, want the head of %+v", info, first)
	}
	if !bytes.Equal(superExport(t, superPlain{to}, "run"), made) {
		t.Error("the same log sealed anew is another file")
	}
}
