package badgerstore_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Nothing that happens to a file makes the store hold something else, or ends the process.
// PAWL_FLIPS says how many bits to flip, and a fifth of it how many files to cut; the ordinary test
// does little.
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
			files := filesOf(t, dir)
			found := 0
			for i := range flips {
				file := files[i%len(files)]
				at := flipOne(t, filepath.Join(dir, file), random)
				if at < 0 {
					continue
				}
				if checkFiles(t, dir, want) != nil {
					found++
				}
				if t.Failed() {
					t.Fatalf("seed %d: bit %d of %s was flipped", seed, at, file)
				}
				restore(t, filepath.Join(dir, file), at)
			}
			t.Logf("%d of %d flipped bits were found, in %d files", found, flips, len(files))
			for range flips / 5 {
				file, part := files[random.IntN(len(files))], random.Float64()
				if checkCut(t, dir, file, part, want); t.Failed() {
					t.Fatalf("seed %d: %s was cut to %v of it", seed, file, part)
				}
			}
			for _, file := range files {
				for _, part := range parts {
					if checkCut(t, dir, file, part, want); t.Failed() {
						t.Fatalf("%s was cut to %v of it", file, part)
					}
				}
				if checkZeroed(t, dir, file, want); t.Failed() {
					t.Fatalf("%s was overwritten with zeros", file)
				}
				other := files[random.IntN(len(files))]
				if checkSwapped(t, dir, file, other, want); t.Failed() {
					t.Fatalf("seed %d: %s and %s have changed places", seed, file, other)
				}
			}
		})
	}
}

// checkFiles opens a copy of dir, which either fails as it should or holds what it should.
func checkFiles(t *testing.T, dir string, want *library) error {
	t.Helper()
	dir = copyDir(t, dir)
	defer os.RemoveAll(dir)
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		if !damaged(err) {
			t.Errorf("Open = %v", err)
		}
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
	sameLibrary(t, got, want)
	return nil
}

// checkCut is checkFiles with a file of which only a part is left, and of 1 but a byte; or
// that is missing, if the part is negative.
func checkCut(t *testing.T, dir, file string, part float64, want *library) {
	t.Helper()
	dir = copyDir(t, dir)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, file)
	if part < 0 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if file == "pawl.json" {
			if _, err := badgerstore.Open(t.Context(), dir, small); err == nil {
				t.Error("a directory without a name was opened")
			}
			return
		}
	} else {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size := max(0, min(int64(part*float64(info.Size())), info.Size()-1))
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if file == "witness" && size == 0 {
			return // that is how to have the store taken as it is
		}
	}
	_ = checkFiles(t, dir, want)
}

// checkZeroed is checkFiles with a file that is as long as it was and holds nothing.
func checkZeroed(t *testing.T, dir, file string, want *library) {
	t.Helper()
	dir = copyDir(t, dir)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, file)
	info, err := os.Stat(path)
	if err == nil {
		err = errors.Join(os.Truncate(path, 0), os.Truncate(path, info.Size()))
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = checkFiles(t, dir, want)
}

// checkSwapped is checkFiles with two files that have changed places.
func checkSwapped(t *testing.T, dir, file, other string, want *library) {
	t.Helper()
	dir = copyDir(t, dir)
	defer os.RemoveAll(dir)
	a, b := filepath.Join(dir, file), filepath.Join(dir, other)
	if err := errors.Join(os.Rename(a, a+".kept"), os.Rename(b, a), os.Rename(a+".kept", b)); file != other && err != nil {
		t.Fatal(err)
	}
	_ = checkFiles(t, dir, want)
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

// flipOne flips a bit of a file, and returns which, or -1 if there is none.
func flipOne(t *testing.T, path string, random *mathrand.Rand) int64 {
	t.Helper()
	b, _, err := head(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(b, "\x00")) // what follows was never written
	if end == 0 {
		return -1
	}
	at := random.Int64N(int64(end) * 8)
	restore(t, path, at)
	return at
}

// restore flips a bit of a file.
func restore(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at/8); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (at % 8)
	if _, err := f.WriteAt(b[:], at/8); err != nil {
		t.Fatal(err)
	}
}

// copyDir copies a directory as it is at one moment, holes in files included.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	for {
		to := memoryDir(t)
		before := filesOf(t, dir)
		err := copyFiles(dir, to, before)
		if err == nil && slices.Equal(filesOf(t, dir), before) {
			return to
		}
		if err != nil && !errors.Is(err, errMoved) {
			t.Fatal(err)
		}
	}
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
