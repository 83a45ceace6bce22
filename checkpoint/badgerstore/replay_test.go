package badgerstore_test

import (
	"bytes"
	"context"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Badger cuts a log of what was in memory at the first record that it can't read, and what is sound
// behind it would be lost by an Open that is refused. So nothing is cut, however often it is
// refused: with the bit as it was, or the witness back, all is there.
func TestARefusedOpenCutsNoLog(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	logs, err := filepath.Glob(filepath.Join(dir, "db", "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%q, %v, want one log", logs, err)
	}
	log, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	used := int64(len(bytes.TrimRight(log, "\x00"))) * 8
	refused := func(what string) {
		t.Helper()
		before := snapshotOf(t, dir)
		for range 2 {
			if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Fatalf("%s: Open = %v, want ErrCorrupt", what, err)
			}
			if snapshotOf(t, dir) != before {
				t.Fatalf("%s: a refused Open has changed the files", what)
			}
		}
	}
	for _, at := range []int64{20 * 8, 21 * 8, 40 * 8, used / 3, used / 2, used - 9} {
		if err := flip(logs[0], at); err != nil {
			t.Fatal(err)
		}
		refused("a flipped bit")
		if err := flip(logs[0], at); err != nil {
			t.Fatal(err)
		}
	}
	witness := filepath.Join(dir, "witness")
	second := 8 * badgerstore.EndsOf(t, logs[0])[0]
	for _, at := range []int64{21 * 8, second + 16, used / 2} {
		if err := errors.Join(flip(logs[0], at), os.Rename(witness, witness+".kept")); err != nil {
			t.Fatal(err)
		}
		refused("a flipped bit and no witness")
		if err := errors.Join(flip(logs[0], at), os.Rename(witness+".kept", witness)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	got, err := contents(t, s)
	if err != nil {
		t.Fatal(err)
	}
	sameLibrary(t, got, want)
}

// Of two logs the first is not cut either where the second goes on behind what is missing.
func TestARefusedOpenCutsNoFirstLog(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	log := filepath.Join("db", "00001.mem")
	used := badgerstore.SplitLog(t, filepath.Join(dir, log), filepath.Join(dir, "db", "00002.mem"))
	if err := os.Truncate(filepath.Join(dir, "witness"), 0); err != nil { // says nothing
		t.Fatal(err)
	}
	err := image{dir, want}.withDamage(t, func(dir string) error { return flip(filepath.Join(dir, log), 4*used) }, log)
	if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "is missing") {
		t.Fatalf("Open = %v, want ErrCorrupt and what is missing", err)
	}
}

// A store that would be empty, with a log that can't be read from its first record on, is not made
// anew, also where the witness says nothing.
func TestALogOfNothingIsNoNewStore(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	of := image{dir, want}
	err := of.withDamage(t, func(dir string) error {
		return errors.Join(flip(filepath.Join(dir, "db", "00001.mem"), 21*8), os.Truncate(filepath.Join(dir, "witness"), 0))
	}, "db/00001.mem", "witness")
	if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "00001.mem can't be read from byte 20 on") {
		t.Errorf("Open = %v, want ErrCorrupt and where the log ends", err)
	}
}

// A manifest that does not name the newest table has that found also where a log is there and holds
// no transaction: what a process that was killed at once has left.
func TestANewestTableIsNotLoose(t *testing.T) {
	t.Parallel()
	closed := closedStore(t)
	s := open(t, closed.dir)
	of := image{copyDir(t, closed.dir), closed.want}
	s.Close()
	for _, witness := range []string{"as it is", "empty"} {
		err := of.withDamage(t, func(dir string) error {
			manifest := filepath.Join(dir, "db", "MANIFEST")
			info, err := os.Stat(manifest)
			if err == nil && witness == "empty" {
				err = os.Truncate(filepath.Join(dir, "witness"), 0)
			}
			return errors.Join(err, os.Truncate(manifest, min(info.Size()-1, 20)))
		}, "db/MANIFEST", "witness")
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "does not name the newest table") {
			t.Errorf("witness %s: Open = %v, want ErrCorrupt that names the table", witness, err)
		}
	}
}

// What Badger fails at, also behind all that is sound, is refused before, and an error of the
// system is not taken for the end of a log.
func TestLogsThatBadgerCantRead(t *testing.T) {
	t.Parallel()
	dir, want := interrupted(t)
	of := image{dir, want}
	const log = "db/00001.mem"
	ends := badgerstore.EndsOf(t, filepath.Join(dir, log))
	last := ends[len(ends)-1]
	for name, c := range map[string]struct {
		at   int64
		b    []byte
		says string
	}{
		"a length that is no number": {last, append([]byte{0x40, 0}, bytes.Repeat([]byte{0xff}, 12)...), "no number"},
		"lengths that wrap":          {last, []byte{0x40, 0, 8, 0xff, 0xff, 0xff, 0xff, 0xf, 0, 1, 2, 3}, "are none"},
		"an encrypted log":           {7, []byte{1}, "encrypted"},
	} {
		err := of.withDamage(t, func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, log), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(c.b, c.at)
			return errors.Join(err, f.Close())
		}, log)
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: Open = %v, want ErrCorrupt: %q", name, err, c.says)
		}
	}
	copied := copyDir(t, dir)
	if err := errors.Join(os.Remove(filepath.Join(copied, log)), os.Mkdir(filepath.Join(copied, log), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := badgerstore.Open(t.Context(), copied, small); err == nil || errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("a directory in the place of a log: Open = %v, want the error of the system", err)
	}
}

// An append that shares its transaction with no other one, of a run that goes on, is a single
// record of Badger's log, without the marks of a transaction.
func TestALoneAppendIsOneRecord(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(context.Context, string, badgerstore.Options) (*badgerstore.Store, error){
		"synced": badgerstore.Open, "not synced": badgerstore.OpenUnsynced,
	} {
		dir := t.TempDir()
		s, err := open(t.Context(), dir, small)
		opened(t, s, err)
		l, log := acquire(t, s, 1)[0], filepath.Join(dir, "db", "00001.mem")
		var head checkpoint.Head
		var before int
		for i := range 5 {
			if head, err = s.Append(t.Context(), l, head, oneEntry); err != nil {
				t.Fatal(err)
			}
			if i == 1 { // the first two say as well what the run is
				before = len(badgerstore.FlagsOf(t, log))
			}
		}
		if got := badgerstore.FlagsOf(t, log)[before:]; !slices.Equal(got, make([]byte, 3)) {
			t.Errorf("%s: three appends are records with the flags %x, want three without any", name, got)
		}
	}
}

// What is read of a log before Badger has it is what Badger then finds, whatever has happened to
// it.
func TestLogsAreReadAsBadgerDoes(t *testing.T) {
	t.Parallel()
	dir, _ := interrupted(t)
	b, err := os.ReadFile(filepath.Join(dir, "db", "00001.mem"))
	if err != nil {
		t.Fatal(err)
	}
	b = b[:len(bytes.TrimRight(b, "\x00"))+64]
	seed := mathrand.Uint64()
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	for name, c := range map[string]struct {
		records [][]byte
		want    []uint64
	}{
		"whole":                         {[][]byte{badgerstore.Record(1), badgerstore.EndRecord(1), badgerstore.Record(2), badgerstore.EndRecord(2)}, []uint64{1, 2}},
		"alone":                         {[][]byte{badgerstore.PlainRecord(1), badgerstore.Record(2), badgerstore.EndRecord(2), badgerstore.PlainRecord(3)}, []uint64{1, 2, 3}},
		"alone and a part of one":       {[][]byte{badgerstore.PlainRecord(1), badgerstore.PlainRecord(2)[:9]}, []uint64{1}},
		"alone and one without a key":   {[][]byte{badgerstore.PlainRecord(1), badgerstore.KeylessRecord(), badgerstore.PlainRecord(2)}, []uint64{1}},
		"no end":                        {[][]byte{badgerstore.Record(1), badgerstore.EndRecord(1), badgerstore.Record(2)}, []uint64{1}},
		"an entry of another one":       {[][]byte{badgerstore.Record(1), badgerstore.Record(2), badgerstore.EndRecord(2)}, nil},
		"the end of another one":        {[][]byte{badgerstore.Record(1), badgerstore.EndRecord(2), badgerstore.Record(3), badgerstore.EndRecord(3)}, nil},
		"one without a transaction":     {[][]byte{badgerstore.Record(1), badgerstore.PlainRecord(1), badgerstore.EndRecord(1)}, nil},
		"not in order":                  {[][]byte{badgerstore.Record(3), badgerstore.EndRecord(3), badgerstore.Record(2), badgerstore.EndRecord(2)}, []uint64{2, 3}},
		"a key that is longer than any": {[][]byte{badgerstore.Record(1), badgerstore.EndRecord(1), {0x40, 0, 0xff, 0xff, 0x7f, 1, 0}}, []uint64{1}},
	} {
		log := append(make([]byte, 20), bytes.Join(c.records, nil)...)
		mine, theirs, err := badgerstore.ReadBoth(t, append(log, make([]byte, 64)...))
		if err != nil || !slices.Equal(mine, c.want) || !slices.Equal(theirs, c.want) {
			t.Errorf("%s: transactions %v are read, Badger finds %v, %v, want %v", name, mine, theirs, err, c.want)
		}
	}
	differ := 0
	for range 40 {
		log := slices.Clone(b)
		at := random.IntN(len(log))
		if random.IntN(2) == 0 {
			at = random.IntN(600)
		}
		rest := log[at:min(at+1+random.IntN(40), len(log))]
		switch random.IntN(5) {
		case 0:
			log[at] ^= 1 << random.IntN(8)
		case 1:
			log = log[:max(at, 1)] // an empty one is removed before Badger sees it: see TestOpenWithEmptyFiles
		case 2:
			clear(rest)
		case 3: // some transactions again
			log = append(log, log[min(at, 20):]...)
		case 4: // a transaction inside another one
			log = slices.Insert(log, at, b[20:20+random.IntN(300)]...)
		}
		mine, theirs, err := badgerstore.ReadBoth(t, log)
		if err == nil && !slices.Equal(mine, theirs) {
			t.Errorf("seed %d: transactions %v are read, Badger finds %v", seed, mine, theirs)
		}
		if len(mine) < 3 || err != nil {
			differ++
		}
	}
	t.Logf("%d of 40 logs were read to an early end", differ)
}

// A store whose process has died with more in memory than the next one is to have there is opened,
// again and again, and is whole. Badger would end the process.
func TestOpenWithLessMemoryThanACrashHasLeft(t *testing.T) {
	t.Parallel()
	const small, each = 500, 60 // values that are nearly nothing, and large ones
	dir := t.TempDir()
	s, err := badgerstore.OpenUnsynced(t.Context(), dir, badgerstore.Options{MemTableSize: 64 << 20})
	opened(t, s, err)
	l := acquire(t, s, 2)
	var heads [2]checkpoint.Head
	large := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: []byte(`"` + noise(300<<10) + `"`)}}
	for i := range each {
		for range small / each {
			if heads[0], err = s.Append(t.Context(), l[0], heads[0], oneEntry); err != nil {
				t.Fatal(err)
			}
		}
		if heads[1], err = s.Append(t.Context(), l[1], heads[1], large); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	for range 3 {
		dir = copyDir(t, dir) // as a kill leaves it
		s, err := badgerstore.OpenUnsynced(t.Context(), dir, badgerstore.Options{MemTableSize: 4 << 20})
		opened(t, s, err)
		for i, head := range heads {
			if info, err := s.Stat(t.Context(), l[i].Run); err != nil || info.Head != head {
				t.Errorf("run %d is at %+v, %v, want %+v", i, info.Head, err, head)
			}
		}
		for f, err := range s.Verify(t.Context(), nil) {
			t.Errorf("Verify finds %v, %v", f, err)
		}
	}
}
