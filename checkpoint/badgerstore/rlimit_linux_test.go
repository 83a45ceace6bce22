package badgerstore_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// In the environment of a test that is run again in another process: the limit, and the directory.
const (
	limitSet = "PAWL_LIMIT"
	limitDir = "PAWL_LIMIT_DIR"
)

// openLimited opens and closes the store in dir in another process, under a limit of the system. It
// returns what that one says, and fails if it dies.
func openLimited(t *testing.T, dir string, limit uint64) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), limitSet+"="+strconv.FormatUint(limit, 10), limitDir+"="+dir)
	out, err := cmd.CombinedOutput()
	if _, said, ok := strings.Cut(string(out), "opening: "); ok && err == nil {
		said, _, _ = strings.Cut(said, "\n")
		return said
	}
	t.Errorf("Open under a limit of %d has ended its process: %v: %s", limit, err, out)
	return ""
}

// limited is the other process of openLimited, if this is one: it says "done", or the error of
// Open, or only its reason if that is one of the system's and not of damage.
func limited(t *testing.T, resource int, reason syscall.Errno) bool {
	t.Helper()
	limit, err := strconv.ParseUint(os.Getenv(limitSet), 10, 64)
	if err != nil {
		return false
	}
	if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	s, err := badgerstore.Open(t.Context(), os.Getenv(limitDir), small)
	if err == nil {
		err = s.Close()
	}
	switch {
	case err == nil:
		fmt.Println("opening: done")
	case errors.Is(err, reason) && !errors.Is(err, checkpoint.ErrCorrupt):
		fmt.Println("opening:", int(reason))
	default:
		fmt.Printf("opening: %q\n", err)
	}
	return true
}

// A limit on the size of files that is below what the database needs is EFBIG and no damage,
// whether the store is new or not. Without the limit it is whole.
func TestOpenUnderALimitOfFileSizes(t *testing.T) {
	if limited(t, syscall.RLIMIT_FSIZE, syscall.EFBIG) {
		return
	}
	t.Parallel()
	whole := t.TempDir()
	s := open(t, whole)
	stock(t, s, 1<<12)
	killed := copyDir(t, whole)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"a new store": t.TempDir(), "a closed one": whole, "one that was killed": killed} {
		for _, limit := range []uint64{100 << 10, 3 << 20, 9 << 20, 20 << 20} { // a log of memory has 8 MiB, one of values 32
			dir := copyDir(t, from)
			if said := openLimited(t, dir, limit); said != fmt.Sprint(int(syscall.EFBIG)) {
				t.Errorf("%s with files of at most %d bytes: %s, want EFBIG", name, limit, said)
			}
			s, err := badgerstore.Open(t.Context(), dir, small)
			opened(t, s, err)
			if _, err := s.Stat(t.Context(), "run 1"); (err == nil) != (name != "a new store") {
				t.Errorf("%s without the limit again: Stat = %v", name, err)
			}
		}
	}
}

// With too few descriptors for the database Open is refused and the process lives, however many
// there are, and whatever of the database it is that can't be opened.
func TestOpenUnderALimitOfDescriptors(t *testing.T) {
	if limited(t, syscall.RLIMIT_NOFILE, syscall.EMFILE) {
		return
	}
	t.Parallel()
	whole := t.TempDir()
	s := open(t, whole)
	stock(t, s, 1<<12)
	killed := copyDir(t, whole)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tables := copyDir(t, whole) // between the directory, which must be read, and the last file
	for n := range 3 {
		s, err := badgerstore.Open(t.Context(), tables, small)
		if err == nil {
			err = errors.Join(s.PutGraph(t.Context(), fmt.Sprint("digest ", n), []byte(`{}`)), s.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if all, err := filepath.Glob(filepath.Join(tables, "db", "*.sst")); err != nil || len(all) != 4 {
		t.Fatalf("there are the tables %q, %v, want 4", all, err)
	}
	for name, from := range map[string]string{"a closed store": whole, "one that was killed": killed, "one of several tables": tables} {
		refused := 0
		for limit := uint64(8); ; limit++ {
			said := openLimited(t, copyDir(t, from), limit)
			if said == "done" && limit >= 24 {
				break
			}
			if said != fmt.Sprint(int(syscall.EMFILE)) {
				t.Errorf("%s with %d descriptors: %s, want EMFILE", name, limit, said)
			}
			if refused++; refused > 60 {
				t.Fatalf("%s is not opened with %d descriptors", name, limit)
			}
		}
	}
}

// An append whose log goes on in the file that it has takes no descriptor: where there is none to
// be had it is acknowledged.
func TestAppendUnderALimitOfDescriptors(t *testing.T) {
	if dir := os.Getenv(limitDir); dir != "" {
		s := open(t, dir)
		l := acquire(t, s, 1)[0]
		head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
		var was syscall.Rlimit
		if err = errors.Join(err, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }() // for Close
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max})
		for range 3 {
			if err == nil {
				head, err = s.Append(t.Context(), l, head, oneEntry)
			}
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), limitDir+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
