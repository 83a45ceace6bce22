package badgerstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/uuid"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A directory is open once, in this process or another; the error names both.
func TestLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	_, err := badgerstore.Open(t.Context(), dir, small)
	if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), dir) ||
		!strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), "open in another Store") {
		t.Errorf("Open again = %v, want ErrLocked with the directory, the process and what has it", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir).Close()

	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewScanner(out).Scan() // it has appended something
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("Open beside another process = %v, want ErrLocked", err)
	} else if host, _ := os.Hostname(); !strings.Contains(err.Error(), fmt.Sprintf("another process (%d on %s)", cmd.Process.Pid, host)) {
		t.Errorf("Open beside another process = %v, want its number and host", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	open(t, dir).Close() // the lock of a process that died is none
}

// The process that has a directory open is this one only if it says so itself: in containers others
// have its number, and its host's name.
func TestLockedByAProcessOfTheSameName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := badgerstore.LockFile(openUnsynced(t, dir))
	ours, err := os.ReadFile(lock.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfterN(string(ours), "\n", 3)
	earlier := lines[0] + lines[1]
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"this process":       {string(ours), []string{"by this process (", "is open in another Store: share that one"}},
		"another container":  {earlier + uuid.NewString() + "\n", []string{"by another process (", "is open: end that one"}},
		"an earlier version": {earlier, []string{"by another process (", "is open: end that one"}},
		"one that is closing": {lines[0] + "closing\n" + uuid.NewString() + "\n",
			[]string{"by another process (", "is closing, perhaps"}},
		"one of an earlier version that is closing": {lines[0] + "closing\n", []string{"by another process (", "is closing, perhaps"}},
	} {
		if err := os.WriteFile(lock.Name(), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := badgerstore.Open(t.Context(), dir, small)
		for _, want := range append(c.want, strings.TrimSpace(lines[0])) {
			if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Open = %v, want ErrLocked that says %q", name, err, want)
			}
		}
	}
}

// What is no store is refused, and left as it is.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a file": file, "a directory of something else": dir, "a path in a file": file + "/a",
	} {
		if _, err := badgerstore.Open(t.Context(), path, small); err == nil {
			t.Errorf("Open of %s = nil", name)
		} else if !strings.Contains(err.Error(), dir) {
			t.Errorf("Open of %s = %v, which does not say where", name, err)
		}
	}
	for _, path := range []string{file + "/a", file + "/a/b"} {
		_, err := badgerstore.Open(t.Context(), path, small)
		var refused *checkpoint.ArgumentError
		if !errors.As(err, &refused) || refused.Argument != "directory" || !strings.Contains(err.Error(), file+" is a file") {
			t.Errorf("Open of %s = %v, want an ArgumentError that says that %s is a file", path, err, file)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := badgerstore.Open(ctx, t.TempDir(), small); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a context that has ended = %v", err)
	}
}

func TestOpenUnwritable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("nothing is unwritable")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Open = %v, want ErrPermission", err)
	}
}

// A store of another format, one to come or the one before the first release, is ErrVersion, and
// not a byte of it changes.
func TestOpenAnotherFormat(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]string{"newer": `"format":4,"new":[]`, "older": `"format":0`} {
		t.Run(name, func(t *testing.T) { openAnotherFormat(t, format) })
	}
}

func openAnotherFormat(t *testing.T, format string) {
	dir := t.TempDir()
	open(t, dir).Close()
	path := filepath.Join(dir, "pawl.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(text), `"format":3`, format, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshotOf(t, dir)
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrVersion) {
		t.Errorf("Open = %v, want ErrVersion", err)
	}
	if after := snapshotOf(t, dir); after != before {
		t.Error("the directory has changed")
	}
}

// snapshotOf returns the names and contents of all files.
func snapshotOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, file := range filesOf(t, dir) {
		text, _, err := head(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(file + "\x00" + string(text) + "\x00")
	}
	return b.String()
}

// Files of no bytes, which a crash may leave, do not keep a store from being opened.
func TestOpenWithEmptyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 1<<12)
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	for _, name := range []string{"00099.mem", "000099.vlog", "000099.sst"} {
		if err := os.WriteFile(filepath.Join(dir, "db", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
}

// A directory that was replaced by an older copy of itself is found out by a witness that
// was not; an empty witness has it taken as it is.
func TestRollbackIsFound(t *testing.T) {
	t.Parallel()
	dir, o := t.TempDir(), small
	o.Witness = filepath.Join(t.TempDir(), "witness")
	opened := func(dir string) (*badgerstore.Store, error) {
		return badgerstore.Open(t.Context(), dir, o)
	}
	s, err := opened(dir)
	if err != nil {
		t.Fatal(err)
	}
	stock(t, s, 1<<12)
	old := copyDir(t, dir)
	l, err := s.Acquire(t.Context(), "one more", "owner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); err != nil {
		t.Fatal(err)
	}
	killed := copyDir(t, dir)
	s.Close()
	if _, err := opened(old); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Open of an older copy = %v, want ErrCorrupt", err)
	}
	s, err = opened(killed)
	if err != nil {
		t.Fatalf("Open of the newest copy = %v", err)
	}
	s.Close()
	if err := os.Remove(o.Witness); err != nil {
		t.Fatal(err)
	}
	if _, err := opened(old); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Open without the witness = %v, want ErrCorrupt", err)
	}
	if err := os.WriteFile(o.Witness, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = opened(old); err != nil {
		t.Fatalf("Open with an empty witness = %v", err)
	}
	s.Close()
}

// A store that was not synced becomes one that is, and back.
func TestUnsyncedAndSynced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var head checkpoint.Head
	for i, open := range []opener{openUnsynced, open, openUnsynced, openUnsynced, open} {
		s := open(t, dir)
		if want := i == 1 || i == 4; s.Syncs() != want {
			t.Errorf("opened for time %d, it syncs: %v, want %v", i+1, !want, want)
		}
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A deletion that a crash cut short is ended by the next Open, and the number of the run is
// not given again.
func TestOpenEndsDeletions(t *testing.T) {
	t.Parallel()
	for format := 1; format <= 3; format++ {
		t.Run(fmt.Sprintf("format %d", format), func(t *testing.T) { openEndsDeletions(t, openFormat(format)) })
	}
}

func openEndsDeletions(t *testing.T, open opener) {
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 1<<12)
	if err := s.Delete(t.Context(), "run 3"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	key := badgerstore.DeletedKey(s, 4)
	badgerstore.Raw(t, dir, small, func(txn *badger.Txn) error {
		if err := txn.Set(badgerstore.LogKey(4, 7), []byte("left behind")); err != nil {
			return err
		}
		return txn.Set(key, badgerstore.Frame(key, []byte("run 3")))
	})
	s = open(t, dir)
	l, err := s.Acquire(t.Context(), "run 3", "owner")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry); err != nil {
		t.Fatal(err)
	}
	s.Close()
	badgerstore.Raw(t, dir, small, func(txn *badger.Txn) error {
		for name, c := range map[string]struct {
			key  []byte
			want error
		}{
			"the rest of the log": {badgerstore.LogKey(4, 7), badger.ErrKeyNotFound},
			"the mark":            {key, badger.ErrKeyNotFound},
			"the new run":         {badgerstore.LogKey(5, 1), nil},
		} {
			if _, err := txn.Get(c.key); err != c.want {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		return txn.Set([]byte("x"), nil)
	})
}

// What removes a long log goes on behind the keys that it has removed: to begin at the first again
// it would step over all of those, each time.
func TestSweepGoesOnBehindWhatItRemoved(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	const appends = 2500
	if err := forkstoreGrow(t.Context(), s, "run", appends); err != nil {
		t.Fatal(err)
	}
	num := badgerstore.NumberOf(t, s, "run")
	var given [][]byte
	err := s.SweepLog(t.Context(), num, func(keys [][]byte) error { // and removes none
		if given = append(given, keys...); len(given) > appends {
			return errors.New("it has begun again")
		}
		return nil
	})
	if err != nil || len(given) != appends {
		t.Fatalf("%d keys are to be removed, %v, want %d", len(given), err, appends)
	}
	for i, key := range given {
		if want := badgerstore.LogKey(num, uint64(2*i+1)); !slices.Equal(key, want) {
			t.Fatalf("key %d is %q, want %q", i, key, want)
		}
	}
}

// What a process that was killed while it looked for room has left is removed, and nothing that
// only has such a name.
func TestOpenRemovesProbes(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	dirs := []string{of.dir, filepath.Join(of.dir, "db")} // earlier versions looked in the first
	for name, text := range map[string]string{"probe-123": "", "probe-124": "a page", "probe-of-mine": "", "probe-": ""} {
		for _, dir := range dirs {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer open(t, of.dir).Close()
	for _, dir := range dirs {
		left, err := filepath.Glob(filepath.Join(dir, "probe-*"))
		for i := range left {
			left[i] = filepath.Base(left[i])
		}
		if want := []string{"probe-", "probe-124", "probe-of-mine"}; err != nil || !slices.Equal(left, want) {
			t.Errorf("in %s there are still %q, %v, want %q", dir, left, err, want)
		}
	}
}
