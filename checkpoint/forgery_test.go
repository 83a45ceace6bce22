package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// forge changes a word in an append, and makes its checksum fit, and its digest too if that is
// asked for.
func forge(data []byte, digest bool) []byte {
	data = bytes.Replace(data, []byte(`"delta":1`), []byte(`"delta":7`), 1)
	if trailer := len(data) - 36; digest {
		sum := sha256.Sum256(data[:trailer])
		copy(data[trailer:], sum[:])
	}
	end := len(data) - 4
	binary.BigEndian.PutUint32(data[end:], crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

// P9. What somebody has changed who made the checksum fit is found by whoever computes digests:
// Verify and Export, of a store that is an Archiver and of one that is not, and Restore. Who reads
// finds it where the digest was made to fit too, since the next append repeats the one that was.
func TestForgedAppendIsFound(t *testing.T) {
	for _, c := range []struct {
		digest bool
		seq    uint64 // of the entry at which it is found
	}{{false, 3}, {true, 5}} {
		s := new(memory.Faulty)
		forkstoreGrow(t, s, "run", 4)
		envelope, err := s.Sealed("run", 3)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(forge(bytes.Clone(envelope), c.digest), envelope) {
			t.Fatal("nothing is forged")
		}
		if err := s.Damage("run", 3, forge(envelope, c.digest)); err != nil {
			t.Fatal(err)
		}
		plain := struct{ checkpoint.Store }{s}
		for name, s := range map[string]checkpoint.Store{"an Archiver": s, "a plain store": plain} {
			found, err := forkstoreFindings(t, s, "run")
			if want := fmt.Sprintf("[log %d]", c.seq); fmt.Sprint(found) != want || err != nil {
				t.Errorf("digest %t: of %s Verify finds %v, %v, want %s", c.digest, name, found, err, want)
			}
			var damage *checkpoint.CorruptError
			if err := checkpoint.Export(t.Context(), s, "run", io.Discard); !errors.As(err, &damage) || damage.Seq != c.seq {
				t.Errorf("digest %t: Export of %s = %v", c.digest, name, err)
			}
		}
		var damage *checkpoint.CorruptError
		to := new(memory.Store)
		l, err := to.Acquire(t.Context(), "run", "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Restore(t.Context(), l, checkpoint.Archive{Envelopes: s.Envelopes(t.Context(), "run")}); !errors.As(err, &damage) || damage.Seq != c.seq {
			t.Errorf("digest %t: Restore = %v", c.digest, err)
		}
		err = nil
		for _, e := range s.Read(t.Context(), "run", 1, 0) {
			err = e
		}
		if !c.digest && err != nil || c.digest && (!errors.As(err, &damage) || damage.Seq != c.seq) {
			t.Errorf("digest %t: Read ends with %v", c.digest, err)
		}
	}
}

// A forged append hides nothing behind it: neither another one, nor a gap.
func TestVerifyFindsWhatIsBehindAForgery(t *testing.T) {
	for name, c := range map[string]struct {
		change func(all [][]byte) [][]byte
		want   string
	}{
		"three forged": {func(all [][]byte) [][]byte {
			for i := 1; i < 4; i++ {
				all[i] = forgeAny(all[i])
			}
			return all
		}, "[log 3 log 5 log 7]"},
		"one before a gap": {func(all [][]byte) [][]byte {
			all[1] = forgeAny(all[1])
			return slices.Delete(all, 2, 3)
		}, "[log 3 log 5]"},
	} {
		s := new(memory.Store)
		forkstoreGrow(t, s, "run", 5)
		found, err := forkstoreFindings(t, forkstoreDamaged{Store: s, envelopes: c.change}, "run")
		if fmt.Sprint(found) != c.want || err != nil {
			t.Errorf("%s: Verify finds %v, %v, want %s", name, found, err, c.want)
		}
	}
}

// An envelope that says it has very many entries, and has none, takes no memory for them.
func TestForgedCountTakesNoMemory(t *testing.T) {
	const count = 1 << 18
	data := checkpoint.Forge(bytes.Repeat([]byte("1\n"), count), count)
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := allocated()
	if _, err := (checkpoint.Info{Run: "run"}).Sealed(data); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("Sealed = %v, want ErrCorrupt", err)
	}
	if n := allocated() - before; n > 1<<20 {
		t.Errorf("%d bytes were allocated for an envelope of %d", n, len(data))
	}
}

// forgeAny changes a letter of what an append says, and makes its checksum fit.
func forgeAny(data []byte) []byte {
	data[bytes.Index(data, []byte(`"path":"a"`))+8] = 'b'
	end := len(data) - 4
	binary.BigEndian.PutUint32(data[end:], crc32.Checksum(data[:end], crc32.MakeTable(crc32.Castagnoli)))
	return data
}

// An export whose appends are of version 1 makes the run that it was made of, with its digests, and
// is exported to the same bytes; what the run goes on with is of the newest version, and both are
// in its next export.
func TestImportOfVersionOne(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "export-v1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]checkpoint.Store{"memory": new(memory.Store), "badger": superBadger(t)} {
		superImport(t, s, file)
		if again := superExport(t, s, "inquiry 42"); !bytes.Equal(again, file) {
			t.Errorf("%s: exported again it is\n%s", name, again)
		}
		forkstoreGrow(t, s, "inquiry 42", 2)
		if found, err := forkstoreFindings(t, s, "inquiry 42"); len(found) > 0 || err != nil {
			t.Errorf("%s: Verify finds %v, %v", name, found, err)
		}
		both := superExport(t, s, "inquiry 42")
		if n := bytes.Count(both, []byte(`"envelope":2`)); n != 2 {
			t.Errorf("%s: %d appends are of version 2, want 2", name, n)
		}
		if want, _ := s.Stat(t.Context(), "inquiry 42"); superImport(t, new(memory.Store), both).Head != want.Head {
			t.Errorf("%s: the run has another head", name)
		}
	}
	for version, want := range map[string]error{"1": nil, "3": checkpoint.ErrVersion, "300": checkpoint.ErrVersion, "-1": checkpoint.ErrVersion} {
		said := superResum(bytes.Replace(file, []byte(`"epoch":1,`), []byte(`"epoch":1,"envelope":`+version+`,`), 1))
		if _, err := checkpoint.Import(t.Context(), new(memory.Store), bytes.NewReader(said), checkpoint.ImportOptions{}); !errors.Is(err, want) {
			t.Errorf("an append of version %s: %v", version, err)
		}
	}
}

// A log is sound in what its entries hold too: a delta that is no JSON, or has a text that no JSON
// has, is found by Verify, which Import does with what it reads. Who replays a log doesn't look at
// texts again.
func TestVerifyLooksAtDeltas(t *testing.T) {
	for delta, want := range map[string]string{`{"a":"é"}`: "[]", `{"a":"`: "[log 1]", "{\"a\":\"\xff\"}": "[log 1]"} {
		s := new(memory.Store)
		l, err := s.Acquire(t.Context(), "run", "owner")
		if err != nil {
			t.Fatal(err)
		}
		opened := checkpoint.Entry{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"g","digest":"d"}`), Delta: json.RawMessage(delta)}
		if _, err := s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{opened}); err != nil {
			t.Fatal(err)
		}
		found, err := forkstoreFindings(t, s, "run")
		if found = slices.DeleteFunc(found, func(f string) bool { return !strings.HasPrefix(f, "log") }); fmt.Sprint(found) != want || err != nil {
			t.Errorf("with the delta %q Verify finds %v, %v, want %s", delta, found, err, want)
		}
	}
}
