package badgerstore_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Nothing that happens to a file makes the store hold something else, or ends the process. A store
// that is not opened is left as it is: when the file is as it was, all is there. PAWL_FLIPS says
// how many bits to flip, and a fifth of it how many files to cut; the ordinary test does little.
func TestEveryFileIsChecked(t *testing.T) {
	t.Parallel()
	flips, _ := strconv.Atoi(os.Getenv("PAWL_FLIPS"))
	parts := []float64{-1, 0, 0.3, 0.9, 1}
	if flips == 0 {
		flips, parts = 14, []float64{-1, 0.9}
	}
	seed := mathrand.Uint64()
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	dir := t.TempDir()
	s := open(t, dir)
	stock(t, s, 7<<20) // some in tables, some in the log of transactions
	want, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	killed := copyDir(t, dir) // as if the process had died now
	s.Close()
	for name, dir := range map[string]string{"closed": dir, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			of := image{dir, want}
			files := filesOf(t, dir)
			found := 0
			for i := range flips {
				file := files[i%len(files)]
				at := anyBit(t, filepath.Join(dir, file), random)
				if at < 0 {
					continue
				}
				if of.withDamage(t, func(dir string) error { return flip(filepath.Join(dir, file), at) }, file) != nil {
					found++
				}
				if t.Failed() {
					t.Fatalf("seed %d: bit %d of %s was flipped", seed, at, file)
				}
			}
			t.Logf("%d of %d flipped bits were found, in %d files", found, flips, len(files))
			for range flips / 5 {
				file, part := files[random.IntN(len(files))], random.Float64()
				if of.cut(t, file, part); t.Failed() {
					t.Fatalf("seed %d: %s was cut to %v of it", seed, file, part)
				}
			}
			for _, file := range files {
				for _, part := range parts {
					if of.cut(t, file, part); t.Failed() {
						t.Fatalf("%s was cut to %v of it", file, part)
					}
				}
				if of.zeroed(t, file); t.Failed() {
					t.Fatalf("%s was overwritten with zeros", file)
				}
				other := files[random.IntN(len(files))]
				if of.swapped(t, file, other); t.Failed() {
					t.Fatalf("seed %d: %s and %s have changed places", seed, file, other)
				}
			}
		})
	}
}

// An image is the directory of a store that nobody has open, and what it holds.
type image struct {
	dir  string
	want *library
}

// withDamage opens a copy of which some files have been damaged, which either fails as it should,
// and doesn't when these files are as they were, or holds what it should.
func (of image) withDamage(t *testing.T, damage func(dir string) error, files ...string) error {
	t.Helper()
	dir := copyDir(t, of.dir)
	defer os.RemoveAll(dir)
	if err := damage(dir); err != nil {
		t.Fatal(err)
	}
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		if _, missing := os.Stat(filepath.Join(dir, "pawl.json")); !damaged(err) && missing == nil {
			t.Errorf("Open = %v", err)
		}
		of.mended(t, dir, files)
		return err
	}
	defer s.Close()
	got, err := contents(t, s)
	if err != nil {
		if !damaged(err) {
			t.Errorf("reading = %v", err)
		}
		return err
	}
	sameLibrary(t, got, of.want)
	return nil
}

// mended opens a store that was not opened, now that the files that were damaged are as they were.
func (of image) mended(t *testing.T, dir string, files []string) {
	t.Helper()
	if err := copyFiles(of.dir, dir, files); err != nil {
		t.Fatal(err)
	}
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Errorf("the damage is gone, and Open = %v", err)
		return
	}
	defer s.Close()
	got, err := contents(t, s)
	if err != nil {
		t.Errorf("the damage is gone, and reading = %v", err)
		return
	}
	sameLibrary(t, got, of.want)
}

// cut is withDamage with a file of which only a part is left, and of 1 but a byte; or that is
// missing, if the part is negative.
func (of image) cut(t *testing.T, file string, part float64) {
	t.Helper()
	missing, emptied := part < 0, false
	err := of.withDamage(t, func(dir string) error {
		path := filepath.Join(dir, file)
		if missing {
			return os.Remove(path)
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		size := max(0, min(int64(part*float64(info.Size())), info.Size()-1))
		emptied = size == 0
		return os.Truncate(path, size)
	}, file)
	switch {
	case file == "pawl.json" && missing && err == nil:
		t.Error("a directory without a name was opened")
	case file == "witness" && emptied && err != nil:
		t.Errorf("an empty witness has the store taken as it is, but Open = %v", err)
	}
}

// zeroed is withDamage with a file that is as long as it was and holds nothing.
func (of image) zeroed(t *testing.T, file string) {
	t.Helper()
	_ = of.withDamage(t, func(dir string) error {
		path := filepath.Join(dir, file)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return errors.Join(os.Truncate(path, 0), os.Truncate(path, info.Size()))
	}, file)
}

// swapped is withDamage with two files that have changed places.
func (of image) swapped(t *testing.T, file, other string) {
	t.Helper()
	if file == other {
		return
	}
	_ = of.withDamage(t, func(dir string) error {
		a, b := filepath.Join(dir, file), filepath.Join(dir, other)
		return errors.Join(os.Rename(a, a+".kept"), os.Rename(b, a), os.Rename(a+".kept", b))
	}, file, other)
}

func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && d.Name() != "LOCK" {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// anyBit returns the number of a bit of a file, or -1 if there is none.
func anyBit(t *testing.T, path string, random *mathrand.Rand) int64 {
	t.Helper()
	b, _, err := head(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(b, "\x00")) // what follows was never written
	if end == 0 {
		return -1
	}
	return random.Int64N(int64(end) * 8)
}

// flip flips a bit of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at/8); err != nil {
		return err
	}
	b[0] ^= 1 << (at % 8)
	_, err = f.WriteAt(b[:], at/8)
	return err
}

// copyDir copies a directory as it is at one moment, holes in files included: when the database of
// a store that is open is writing no table, nor what it says of them.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	for before := sizes(t, dir); ; {
		to := memoryDir(t)
		err := copyFiles(dir, to, slices.Sorted(maps.Keys(before)))
		after := sizes(t, dir)
		if err == nil && maps.Equal(before, after) {
			return to
		}
		if err != nil && !errors.Is(err, errMoved) {
			t.Fatal(err)
		}
		_ = os.RemoveAll(to) // if it can't be removed now it is with the test
		before = after
	}
}

// sizes returns the files of a directory with the size of each.
func sizes(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	for _, file := range filesOf(t, dir) {
		if info, err := os.Stat(filepath.Join(dir, file)); err == nil { // or it has just been removed
			all[file] = info.Size()
		}
	}
	return all
}

// memoryDir returns a directory that ends with the test, in memory where there is one, for
// stores of which nothing but their reading matters.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "pawl-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// errMoved: a file was removed, or cut off to be removed, while it was copied.
var errMoved = errors.New("moved")

func copyFiles(dir, to string, files []string) error {
	for _, file := range files {
		b, size, err := head(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return errMoved
		}
		if err != nil {
			return err
		}
		path := filepath.Join(to, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		end := len(bytes.TrimRight(b, "\x00"))
		if err := os.WriteFile(path, b[:end], 0o600); err != nil {
			return err
		}
		if err := os.Truncate(path, size); err != nil {
			return err
		}
	}
	return nil
}

// head returns the part of a file that is in use, and its size. Of value logs, which no
// value ever reaches, that is little of many megabytes.
func head(path string) (b []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	used := info.Size()
	if filepath.Ext(path) == ".vlog" {
		used = min(used, 1<<12)
	}
	b = make([]byte, used)
	_, err = io.ReadFull(f, b)
	return b, info.Size(), err
}

// A directory in the place of a file that the store or its database makes anew is ErrCorrupt, and
// the error says where it stands and what to do.
func TestDirectoriesInPlaceOfFilesAreFound(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	for _, file := range []string{"tables.new", "db/DISCARD"} {
		dir := copyDir(t, of.dir)
		path := filepath.Join(dir, filepath.FromSlash(file))
		// Without an inventory another one is written.
		if err := errors.Join(os.Remove(filepath.Join(dir, "tables")), os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		s, err := badgerstore.Open(t.Context(), dir, small)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.HasSuffix(err.Error(), "makes a file of that name") || !strings.Contains(err.Error(), path+" is a directory: remove it") {
			t.Errorf("%s: Open = %v, want ErrCorrupt, and what to do", file, err)
		}
	}
}

// A link to what is gone, in the place of a file that holds something, is missing data: ErrCorrupt.
// Nothing is made where it leads.
func TestLinksToNothingAreFound(t *testing.T) {
	t.Parallel()
	of := closedStore(t)
	for _, place := range []string{"db/*.sst", "db/*.mem", "db/*.vlog", "db/MANIFEST", "pawl.json", "witness"} {
		dir := copyDir(t, of.dir)
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(place)))
		if err != nil {
			t.Fatal(err)
		}
		if place == "db/*.mem" { // as a process leaves it that was killed
			files = []string{filepath.Join(dir, "db", "00009.mem")}
		} else if len(files) == 0 {
			t.Fatalf("%s: no file", place)
		}
		gone := filepath.Join(t.TempDir(), "gone")
		_ = os.Remove(files[0])
		if err := os.Symlink(gone, files[0]); err != nil {
			t.Skip(err)
		}
		s, err := badgerstore.Open(t.Context(), dir, small)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "from a backup") && place != "witness" {
			t.Errorf("%s: Open = %v, want ErrCorrupt, and what to do", place, err)
		}
		if _, err := os.Lstat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: there is a file where the link leads: %v", place, err)
		}
	}
}
