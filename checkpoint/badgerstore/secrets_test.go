package badgerstore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

func keyOf(t testing.TB, id string, fill byte) checkpoint.Key {
	t.Helper()
	k, err := checkpoint.NewKey(id, bytes.Repeat([]byte{fill}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// sealedBy are the options of a small store with that cipher.
func sealedBy(t testing.TB, write checkpoint.Key, read ...checkpoint.Key) badgerstore.Options {
	t.Helper()
	keys, err := checkpoint.NewKeyring(write, read...)
	if err != nil {
		t.Fatal(err)
	}
	o := small
	o.Cipher = keys
	return o
}

// openWith opens a store that the test closes if nobody has.
func openWith(t *testing.T, dir string, o badgerstore.Options) *badgerstore.Store {
	t.Helper()
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, o)
	opened(t, s, err)
	return s
}

// secretWord is in all that confide writes, many times in what is large. Compression alone hides
// it, also between noise: so of each kind there is something small, which is not compressed.
const secretWord = "the Finis Africae is opened by the first and the seventh of four"

func secretText(n int) string {
	text := secretWord
	for len(text) < n {
		text += noise(1000+len(text)%77) + secretWord
	}
	return text
}

// confide writes secrets into a store in all ways there are: small, compressed, and in chunks.
func confide(t *testing.T, s *badgerstore.Store, run string) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	said := func(n int) json.RawMessage { return fmt.Appendf(nil, "%q", secretText(n)) }
	l, err := s.Acquire(ctx, run, "owner")
	check(err)
	head, err := s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{{
		Kind: checkpoint.Opened, Delta: said(0), Data: []byte(`{"graph":"g","digest":"digest","labels":{"label":"clear"}}`),
	}})
	check(err)
	for i, n := range []int{0, 5000, 900 << 10} {
		head, err = s.Append(ctx, l, head, []checkpoint.Entry{{Kind: checkpoint.Done, Path: "a", Step: i + 1, Delta: said(n)}})
		check(err)
		check(s.Post(ctx, run, checkpoint.Post{ID: fmt.Sprint("post", i), Kind: "answer", Data: said(n)}))
		check(s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head, Data: said(n)}))
	}
	check(s.PutGraph(ctx, "digest", []byte(`{"nodes":["the graph is the program's"]}`)))
	check(s.Release(ctx, l))
	check(s.Fork(ctx, confided(t, said(100), said(900<<10), run+" fork")))
	check(s.Fork(ctx, confided(t, said(3000), nil, run+" other fork", run+" third fork")))
	check(forkstoreTrim(ctx, s, run+" fork", 2, said(4000)))
	small := forkstoreShelved(said(0), fmt.Appendf(nil, "[%s]", said(0)), 10, run+" small fork")
	small.Runs[0].Entries[1].Delta = said(0)
	check(s.Fork(ctx, small))
	var file bytes.Buffer
	check(checkpoint.Export(ctx, s, run+" other fork", &file))
	check(s.Delete(ctx, run+" other fork"))
	_, err = checkpoint.Import(ctx, s, &file, checkpoint.ImportOptions{})
	check(err)
}

// confided is a fork whose first appends hold secrets.
func confided(t *testing.T, base, shelf []byte, runs ...string) checkpoint.Fork {
	t.Helper()
	f := forkstoreShelved(base, shelf, 10, runs...)
	for i := range f.Runs {
		f.Runs[i].Entries[1].Delta = fmt.Appendf(nil, "%q", secretText(200<<10))
	}
	return f
}

// exports are the runs of a store as files.
func exports(t *testing.T, s *badgerstore.Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	runs, err := s.List(t.Context(), checkpoint.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range runs {
		var file bytes.Buffer
		if err := checkpoint.Export(t.Context(), s, info.Run, &file); err != nil {
			t.Fatal(err)
		}
		all[info.Run] = file.String()
		snap, err := s.Snapshot(t.Context(), info.Run, 0)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			t.Fatal(err)
		}
		all[info.Run] += string(snap.Data)
	}
	return all
}

// holds reports in which file of a directory a text stands, "" if in none.
func holds(t *testing.T, dir, text string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Of what runs say nothing stands in the files of a store that has a cipher: in no append,
// snapshot, message or base, small or large, forked, trimmed or imported. What the listing
// tells does. The store reads it all, after a restart too.
func TestSecretsAreNotInTheFiles(t *testing.T) {
	t.Parallel()
	for _, secret := range []bool{false, true} {
		t.Run(fmt.Sprintf("secret=%v", secret), func(t *testing.T) {
			t.Parallel()
			o, dir := small, t.TempDir()
			if secret {
				o = sealedBy(t, keyOf(t, "k1", 1))
			}
			s := openWith(t, dir, o)
			confide(t, s, "run")
			want := exports(t, s)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				// Half of it, for what is compressed is in pieces.
				if path := holds(t, dir, secretWord[:len(secretWord)/2]); (path == "") != secret {
					t.Errorf("the secret stands in %q", path)
				}
				s = openWith(t, dir, o)
				seen := make(map[string]bool)
				for key, value := range valuesOf(t, s) {
					if !strings.Contains("lpsz", key[:1]) {
						continue
					}
					if seen[key[:1]] = true; badgerstore.Sealed(t, []byte(key), value) != secret {
						t.Errorf("%.20q is not as it should be: secret=%v", key, secret)
					}
				}
				if len(seen) != 4 {
					t.Errorf("only keys of the kinds %v were looked at", seen)
				}
				for _, clear := range []string{"run fork", "label", "clear", "the graph is"} {
					if holds(t, dir, clear) == "" {
						t.Errorf("%q does not stand in the files", clear)
					}
				}
				if got := exports(t, s); !reflect.DeepEqual(got, want) || !strings.Contains(got["run"], secretWord) {
					t.Error("the store holds something else")
				}
			}
		})
	}
}

// A run has the same digests in a store with a cipher and in one without.
func TestSecretsDoNotChangeDigests(t *testing.T) {
	t.Parallel()
	s := openWith(t, t.TempDir(), sealedBy(t, keyOf(t, "k1", 1)))
	plain := openWith(t, t.TempDir(), small)
	confide(t, s, "run")
	var file, again bytes.Buffer
	if err := checkpoint.Export(t.Context(), s, "run", &file); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Import(t.Context(), plain, bytes.NewReader(file.Bytes()), checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Export(t.Context(), plain, "run", &again); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
		t.Errorf("the export is another one: %v", err)
	}
}

// Every byte of a sealed append that is altered is ErrCorrupt, and so is every byte of what the
// cipher made that is altered by who computes the checksum anew.
func TestAlteredSecretsAreFound(t *testing.T) {
	t.Parallel()
	s := openWith(t, t.TempDir(), sealedBy(t, keyOf(t, "k1", 1)))
	s.ForgetIdle()
	l := acquire(t, s, 1)[0]
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); err != nil {
		t.Fatal(err)
	}
	key := badgerstore.LogKey(1, 1)
	value := valuesOf(t, s)[string(key)]
	read := func(altered []byte) error {
		t.Helper()
		if err := s.Put(t.Context(), key, altered); err != nil {
			t.Fatal(err)
		}
		for e, err := range s.Read(t.Context(), l.Run, 1, 0) {
			if err == nil {
				t.Errorf("entry %d is read", e.Seq)
			}
			return err
		}
		return nil
	}
	const head = 14
	for i := range value {
		altered := bytes.Clone(value)
		altered[i] ^= 0x10
		if err := read(altered); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("byte %d altered: %v, want ErrCorrupt", i, err)
		}
		if i < head {
			continue
		}
		err := read(badgerstore.Reframe(t, key, key, value, func(payload []byte) { payload[i-head] ^= 0x10 }))
		// The first byte says that it is sealed, and then come the id of its key and its check.
		named := i < head+1+len("?k1")+4
		if !errors.Is(err, checkpoint.ErrCorrupt) && !(named && (errors.Is(err, checkpoint.ErrKey) || errors.Is(err, checkpoint.ErrVersion))) {
			t.Errorf("byte %d altered, with its checksum: %v, want ErrCorrupt", i, err)
		}
	}
}

// Who reads a log, verifies or exports it is told at which entry it can't be opened any more.
func TestAlteredSecretsAreNamed(t *testing.T) {
	t.Parallel()
	s := openWith(t, t.TempDir(), sealedBy(t, keyOf(t, "k1", 1)))
	stock(t, s, 1<<12)
	key := badgerstore.LogKey(2, 6) // of run 1, which has appends of two behind its first
	value := valuesOf(t, s)[string(key)]
	last := len(value) - 20
	if err := s.Put(t.Context(), key, badgerstore.Reframe(t, key, key, value, func(payload []byte) { payload[last] ^= 0x10 })); err != nil {
		t.Fatal(err)
	}
	named := func(what string, err error) {
		t.Helper()
		var damage *checkpoint.CorruptError
		if !errors.As(err, &damage) || damage.Run != "run 1" || damage.Seq != 6 {
			t.Errorf("%s: %v, want a CorruptError of run 1, entry 6", what, err)
		}
	}
	for _, from := range []uint64{1, 6} {
		var last error
		for _, err := range s.Read(t.Context(), "run 1", from, 0) {
			last = err
		}
		named("Read", last)
	}
	named("Export", checkpoint.Export(t.Context(), s, "run 1", io.Discard))
	n := 0
	for f, err := range checkpoint.Verify(t.Context(), s, "run 1") {
		if n++; err != nil || f.Part != checkpoint.PartLog || f.Seq != 6 {
			t.Errorf("Verify found %v, %v, want entry 6 of the log", f, err)
		}
	}
	if n != 1 {
		t.Errorf("Verify found %d things, want one", n)
	}
}

// A sealed value that stands in another's place is refused, though its checksum is right: of the
// same run or of another, of the same kind or of another, of this store or of another one.
func TestSecretsStayInTheirPlace(t *testing.T) {
	t.Parallel()
	o := sealedBy(t, keyOf(t, "k1", 1))
	s, other := openWith(t, t.TempDir(), o), openWith(t, t.TempDir(), o)
	for _, s := range []*badgerstore.Store{s, other} {
		s.ForgetIdle()
		stock(t, s, 1<<16)
		if err := s.Post(t.Context(), "run 0", checkpoint.Post{ID: "post 2", Kind: "answer"}); err != nil {
			t.Fatal(err)
		}
	}
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	values, theirs := valuesOf(t, s), valuesOf(t, other)
	var blobs []string
	for key := range values {
		// The second run is enough; what is in chunks has no chunks of another key.
		if strings.Contains("lps", key[:1]) && key[8] <= 2 {
			blobs = append(blobs, key)
		}
	}
	slices.Sort(blobs)
	refused := func(from, to string, moved []byte) {
		t.Helper()
		err := withValue(t, s, to, moved, values[to], want)
		// A piece of a large value begins with bytes of any kind: one in a hundred, read as the
		// whole value that belongs there, seems to be sealed with another key, or not at all.
		seems := from[0] != to[0] && (errors.Is(err, checkpoint.ErrKey) || errors.Is(err, checkpoint.ErrPlaintext))
		if !damaged(err) && !seems {
			t.Errorf("%q in the place of %q: %v, want ErrCorrupt", from, to, err)
		}
	}
	for i, from := range blobs {
		to := blobs[(i+1)%len(blobs)]
		refused(from, to, badgerstore.Reframe(t, []byte(from), []byte(to), values[from], nil))
		refused(from, from, badgerstore.Reframe(t, []byte(from), []byte(from), theirs[from], nil))
	}
}

// Who makes one run out of another's keys, all of them, its row included, is found out.
func TestSecretRunsStayUnderTheirIDs(t *testing.T) {
	t.Parallel()
	s := openWith(t, t.TempDir(), sealedBy(t, keyOf(t, "k1", 1)))
	s.ForgetIdle()
	stock(t, s, 1<<16)
	values := valuesOf(t, s)
	// The number of run 1 becomes that of run 2, whose row says that it is run 1.
	one, two := badgerstore.IDKey("run 1"), badgerstore.IDKey("run 2")
	if err := s.Put(t.Context(), one, badgerstore.Reframe(t, two, one, values[string(two)], nil)); err != nil {
		t.Fatal(err)
	}
	row := badgerstore.RowKey(3)
	renamed := badgerstore.Reframe(t, row, row, values[string(row)], func(payload []byte) {
		copy(payload[bytes.Index(payload, []byte("run 2")):], "run 1")
	})
	if err := s.Put(t.Context(), row, renamed); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Stat(t.Context(), "run 1"); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Stat = %+v, %v, want ErrCorrupt", info, err)
	}
}

// The key to write with is changed by giving a new one, and the old one to read with. With the new
// key alone what is older is ErrKey, which names the old one; with the old key alone, or one that
// has its id, the store is not opened, and none of it has changed. Verify tells whether anything
// still needs the old key.
func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := keyOf(t, "k1", 1), keyOf(t, "k2", 2)
	s := openWith(t, dir, sealedBy(t, one))
	confide(t, s, "old")
	s.Close()
	s = openWith(t, dir, sealedBy(t, two, one))
	confide(t, s, "new")
	want := exports(t, s)
	s.Close()

	s = openWith(t, dir, sealedBy(t, two))
	if err := checkpoint.Export(t.Context(), s, "new", new(bytes.Buffer)); err != nil {
		t.Errorf("a run that was written with the new key: %v", err)
	}
	_, err := s.Stat(t.Context(), "old")
	if !errors.Is(err, checkpoint.ErrKey) || errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), `"k1"`) {
		t.Errorf("a run that was written with the old key: %v, want ErrKey that names it", err)
	}
	if _, err := s.Acquire(t.Context(), "old", "owner"); !errors.Is(err, checkpoint.ErrKey) {
		t.Errorf("Acquire = %v, want ErrKey", err)
	}
	if err := s.Delete(t.Context(), "old"); !errors.Is(err, checkpoint.ErrKey) {
		t.Errorf("Delete = %v, want ErrKey", err)
	}
	if err := verifyAll(t, s); !errors.Is(err, checkpoint.ErrKey) {
		t.Errorf("Verify = %v, want ErrKey", err)
	}
	s.Close()

	before := holdings(t, dir)
	for name, o := range map[string]badgerstore.Options{
		"the old key alone": sealedBy(t, one), "another key of its id": sealedBy(t, keyOf(t, "k2", 3), one), "no cipher": small,
	} {
		_, err := badgerstore.Open(t.Context(), dir, o)
		if !errors.Is(err, checkpoint.ErrKey) || !strings.Contains(err.Error(), `"k2"`) || strings.Count(err.Error(), "checkpoint: ") != 1 {
			t.Errorf("with %s: Open = %v, want ErrKey that names k2, and the package once", name, err)
		}
	}
	if holdings(t, dir) != before {
		t.Error("the database has changed")
	}
	s = openWith(t, dir, sealedBy(t, two, one))
	if got := exports(t, s); !reflect.DeepEqual(got, want) {
		t.Error("the store holds something else")
	}
	for run := range want {
		if run != "new" { // the new forks have the bases of the old ones
			if err := s.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Close()
	s = openWith(t, dir, sealedBy(t, two))
	if err := verifyAll(t, s); err != nil {
		t.Errorf("Verify without what is old = %v", err)
	}
}

// To be rid of a key and keep the runs they are exported, and imported into a new store that has
// the new key alone: they are there as they were, messages, bases and graphs included, the old key
// is not needed any more, and they go on.
func TestKeyIsRetired(t *testing.T) {
	t.Parallel()
	old := openWith(t, t.TempDir(), sealedBy(t, keyOf(t, "leaked", 1)))
	confide(t, old, "run")
	o := sealedBy(t, keyOf(t, "new", 2))
	dir := t.TempDir()
	s := openWith(t, dir, o)
	runs, err := old.List(t.Context(), checkpoint.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for _, info := range runs {
		var file, again bytes.Buffer
		if err := checkpoint.Export(t.Context(), old, info.Run, &file); err != nil {
			t.Fatal(err)
		}
		want[info.Run] = file.String()
		if _, err := checkpoint.Import(t.Context(), s, &file, checkpoint.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := checkpoint.Export(t.Context(), s, info.Run, &again); err != nil || again.String() != want[info.Run] {
			t.Errorf("%s is another run: %v", info.Run, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if path := holds(t, dir, "leaked"); path != "" {
		t.Errorf("%s has something that is sealed with the old key", path)
	}
	s = openWith(t, dir, o)
	if err := verifyAll(t, s); err != nil || len(want) < 4 {
		t.Errorf("Verify of %d runs = %v", len(want), err)
	}
	if err := forkstoreGrow(t.Context(), s, "run", 2); err != nil {
		t.Errorf("the run does not go on: %v", err)
	}
}

// A run whose key is not given hides no other from a listing, and keeps Verify from none: both name
// it, and say which key it needs. A run that was begun with that key and has gone on with a newer
// one is told of.
func TestRunsBesideOneWhoseKeyIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two, three := keyOf(t, "k1", 1), keyOf(t, "k2", 2), keyOf(t, "k3", 3)
	for i, o := range []badgerstore.Options{sealedBy(t, one), sealedBy(t, two, one), sealedBy(t, three, two, one)} {
		s := openWith(t, dir, o)
		if err := forkstoreGrow(t.Context(), s, fmt.Sprint("run ", i+1), 2); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	s := openWith(t, dir, sealedBy(t, three, one))
	told := func(run string, err error) string {
		if err == nil {
			return run
		}
		if !errors.Is(err, checkpoint.ErrKey) || !strings.Contains(err.Error(), `"k2"`) || strings.Count(err.Error(), fmt.Sprintf("%q", run)) != 1 {
			t.Errorf("of %q: %v, want ErrKey that names the run once, and its key", run, err)
		}
		return "[" + run + "]"
	}
	for _, limit := range []int{0, 1, 2} {
		var got []string
		for info, err := range checkpoint.Runs(t.Context(), s, checkpoint.Filter{Limit: limit}) {
			got = append(got, told(info.Run, err))
		}
		if got := strings.Join(got, " "); got != "run 3 [run 2] run 1" {
			t.Errorf("in pages of %d: %s", limit, got)
		}
	}
	var found, done []string
	for f, err := range s.Verify(t.Context(), func(p badgerstore.Progress) { done = append(done, p.Run) }) {
		found = append(found, told(f.Run, err))
		if want := `run "run 2" can't be read`; err != nil && !strings.HasPrefix(f.String(), want) {
			t.Errorf("the finding beside %v is told as %q, want %q", err, f, want)
		}
	}
	if got := strings.Join(append(found, done...), " "); got != "[run 2] run 1 run 2 run 3" {
		t.Errorf("Verify finds and passes %s", got)
	}
}

// verifyAll returns the error that Verify of the store ends with, and fails the test for findings.
func verifyAll(t *testing.T, s *badgerstore.Store) error {
	t.Helper()
	for f, err := range s.Verify(t.Context(), nil) {
		if err != nil {
			return err
		}
		t.Errorf("Verify finds %+v", f)
	}
	return nil
}

// holdings is all that the database of a closed store holds, with its versions.
func holdings(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	db, err := badger.OpenManaged(badgerstore.BadgerOptions(filepath.Join(dir, "db"), true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	txn := db.NewTransactionAt(db.MaxVersion(), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.DefaultIteratorOptions)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := it.Item().Value(func(value []byte) error {
			fmt.Fprintf(&all, "%q %d %q\n", it.Item().Key(), it.Item().Version(), value)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// A store that was made without a cipher is not opened with one: what it holds, and would be
// written beside, is plain. A plain value that somebody puts into a store with a cipher is not
// read. Both say what to do.
func TestPlaintextIsRefused(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), sealedBy(t, keyOf(t, "k1", 1))
	plain := open(t, dir)
	plain.ForgetIdle()
	stock(t, plain, 1<<16)
	values := valuesOf(t, plain)
	plain.Close()
	before := holdings(t, dir)
	_, err := badgerstore.Open(t.Context(), dir, o)
	if !errors.Is(err, checkpoint.ErrPlaintext) || !strings.Contains(err.Error(), "export its runs") {
		t.Errorf("Open of a plain store with a cipher: %v, want ErrPlaintext", err)
	}
	if holdings(t, dir) != before {
		t.Error("the database has changed")
	}

	s := openWith(t, t.TempDir(), o)
	s.ForgetIdle()
	stock(t, s, 1<<16)
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	for key, right := range valuesOf(t, s) {
		if !strings.Contains("lps", key[:1]) {
			continue
		}
		err := withValue(t, s, key, values[key], right, want)
		if !errors.Is(err, checkpoint.ErrPlaintext) || !strings.Contains(err.Error(), "restore the store") {
			t.Errorf("a plain value under %q: %v, want ErrPlaintext", key, err)
		}
	}
	for _, none := range []*checkpoint.Keyring{nil, {}} {
		o.Cipher = none
		var argument *checkpoint.ArgumentError
		if _, err := badgerstore.Open(t.Context(), t.TempDir(), o); !errors.As(err, &argument) {
			t.Errorf("Open with %v: %v, want an ArgumentError", none, err)
		}
	}
}

// A moody cipher fails, or waits, when it is told to.
type moodyCipher struct {
	checkpoint.Cipher
	seal func() error
}

func (c *moodyCipher) Seal(dst, plain, place []byte) ([]byte, error) {
	if err := c.seal(); err != nil {
		return nil, err
	}
	return c.Cipher.Seal(dst, plain, place)
}

// A cipher that fails fails the call, and nothing has changed; one that takes its time keeps
// nobody else waiting, for the committer does not seal.
func TestSealingIsTheCallersAffair(t *testing.T) {
	t.Parallel()
	o := sealedBy(t, keyOf(t, "k1", 1))
	cipher := &moodyCipher{Cipher: o.Cipher, seal: func() error { return nil }}
	o.Cipher = cipher
	s := openWith(t, t.TempDir(), o)
	leases := acquire(t, s, 2)
	broken := errors.New("the key service is away")
	cipher.seal = func() error { return broken }
	if _, err := s.Append(t.Context(), leases[0], checkpoint.Head{}, oneEntry); !errors.Is(err, broken) {
		t.Errorf("Append = %v, want %v", err, broken)
	}
	if _, err := s.Stat(t.Context(), leases[0].Run); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("Stat = %v, want ErrNotFound", err)
	}
	waits, goOn, first := make(chan struct{}), make(chan struct{}), true
	cipher.seal = func() error {
		if first {
			first = false
			close(waits)
			<-goOn
		}
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- second(s.Append(context.Background(), leases[0], checkpoint.Head{}, oneEntry)) }()
	<-waits
	if _, err := s.Append(t.Context(), leases[1], checkpoint.Head{}, oneEntry); err != nil {
		t.Errorf("Append beside one that is being sealed: %v", err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Appends whose entries take up to 1 KiB are kept as their envelopes are; what is longer is
// compressed if that makes it smaller.
func TestCompression(t *testing.T) {
	t.Parallel()
	s := openWith(t, t.TempDir(), small)
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	var err error
	add := func(text string) (value []byte) {
		t.Helper()
		entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", text)}}
		if head, err = s.Append(t.Context(), l, head, entries); err != nil {
			t.Fatal(err)
		}
		return valuesOf(t, s)[string(badgerstore.LogKey(1, head.Seq))]
	}
	if value := add(strings.Repeat("x", 900)); !bytes.HasPrefix(value, []byte("pawl")) {
		t.Errorf("900 bytes are kept as %.8q…", value)
	}
	if value := add(strings.Repeat("the library ", 900)); len(value) > 500 {
		t.Errorf("10800 bytes are kept in %d", len(value))
	}
	for e, err := range s.Read(t.Context(), l.Run, 1, 0) {
		if err != nil || !json.Valid(e.Delta) {
			t.Errorf("entry %d: %v", e.Seq, err)
		}
	}
}

// Who can read how a run stands may delete it: its row, its newest append and the append that the
// row was written with have to be readable. Whether the rest of its log is, behind a rotation of
// keys or damage, nobody asks.
func TestDeleteReadsHowARunStands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := keyOf(t, "k1", 1), keyOf(t, "k2", 2)
	s := openWith(t, dir, sealedBy(t, one))
	heads := make(map[string]checkpoint.Head)
	grow := func(run string, entries ...checkpoint.Entry) {
		t.Helper()
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil {
			t.Fatal(err)
		}
		if heads[run], err = s.Append(t.Context(), l, heads[run], entries); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	opening := checkpoint.Entry{Kind: checkpoint.Opened, Data: []byte(`{"graph":"g","digest":"d"}`)}
	for _, run := range []string{"rests", "goes on", "hurt"} { // in the order of their numbers
		grow(run, opening, checkpoint.Entry{Kind: checkpoint.Entered})
	}
	s.Close()
	s = openWith(t, dir, sealedBy(t, two, one))
	grow("rests", checkpoint.Entry{Kind: checkpoint.Waiting}) // which writes the row
	grow("goes on", checkpoint.Entry{Kind: checkpoint.Done})  // which does not
	grow("hurt", checkpoint.Entry{Kind: checkpoint.Waiting})
	s.Close()

	s = openWith(t, dir, sealedBy(t, two))
	put(t, s, badgerstore.LogKey(3, 1), []byte("damage"))
	read := func(run string) (err error) {
		for _, err = range s.Read(t.Context(), run, 0, 0) {
		}
		return err
	}
	for run, c := range map[string]struct{ stat, read error }{
		"rests": {nil, checkpoint.ErrKey}, "goes on": {checkpoint.ErrKey, checkpoint.ErrKey}, "hurt": {nil, checkpoint.ErrCorrupt},
	} {
		if err := read(run); !errors.Is(err, c.read) {
			t.Errorf("Read of run %q = %v, want %v", run, err, c.read)
		}
		if _, err := s.Stat(t.Context(), run); !errors.Is(err, c.stat) {
			t.Errorf("Stat of run %q = %v, want %v", run, err, c.stat)
		}
		if err := s.Delete(t.Context(), run); !errors.Is(err, c.stat) {
			t.Errorf("Delete of run %q = %v, want %v", run, err, c.stat)
		}
		if _, err := s.Stat(t.Context(), run); c.stat == nil && !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Stat of run %q, which was deleted, = %v", run, err)
		}
	}
}
