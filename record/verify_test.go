package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/record"
)

// preamble is how many entries stand before version 1.
const preamble = 2

// A version that was altered is named, and so is the first one that was moved or taken away; what
// lies behind it can still be read, and says that nobody should rely on it. Versions that were cut
// off are missed with a root that was kept elsewhere.
func TestLife09BrokenVersionIsNamed(t *testing.T) {
	b := newBook(t)
	all := b.versions(t, "r", 5)
	root, err := b.Root(t.Context(), "r")
	done(t, err)
	if v, err := b.Verify(t.Context(), "r", root); err != nil || !v.Valid || v.Root != root {
		t.Fatalf("whole, and %+v, %v", v, err)
	}
	at := func(version int) int { return preamble + version - 1 }
	for name, c := range map[string]struct {
		change func([]checkpoint.Entry) []checkpoint.Entry
		broken int
	}{
		"version 3 altered": {func(e []checkpoint.Entry) []checkpoint.Entry {
			e[at(3)].Data = bytes.Replace(e[at(3)].Data, []byte("walk"), []byte("talk"), 1)
			return e
		}, 3},
		"2 and 3 swapped": {func(e []checkpoint.Entry) []checkpoint.Entry {
			e[at(2)], e[at(3)] = e[at(3)], e[at(2)]
			return e
		}, 2},
		"3 deleted":        {func(e []checkpoint.Entry) []checkpoint.Entry { return slices.Delete(e, at(3), at(4)) }, 3},
		"1 deleted":        {func(e []checkpoint.Entry) []checkpoint.Entry { return slices.Delete(e, at(1), at(2)) }, 1},
		"2 doubled":        {func(e []checkpoint.Entry) []checkpoint.Entry { return slices.Insert(e, at(3), e[at(2)]) }, 3},
		"5 cut off":        {func(e []checkpoint.Entry) []checkpoint.Entry { return e[:at(5)] }, 5},
		"all cut off":      {func(e []checkpoint.Entry) []checkpoint.Entry { return e[:at(1)] }, 1},
		"a foreign entry":  {func(e []checkpoint.Entry) []checkpoint.Entry { e[at(4)].Kind = checkpoint.Tagged; return e }, 4},
		"a note of others": {func(e []checkpoint.Entry) []checkpoint.Entry { e[at(4)].Data = []byte(`{"name":"x"}`); return e }, 4},
	} {
		l := ledgerOver(t, forged(t, b.store, c.change), nil)
		v, err := l.Verify(t.Context(), "r", root)
		if err != nil || v.Valid || v.BrokenAt != c.broken || v.Reason == "" {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}

	for name, s := range map[string]checkpoint.Store{
		"altered": forged(t, b.store, func(e []checkpoint.Entry) []checkpoint.Entry {
			e[at(3)].Data = bytes.Replace(e[at(3)].Data, []byte("walk"), []byte("talk"), 1)
			return e
		}),
		"unreadable": damagedStore{b.store, preamble + 3},
	} {
		l := ledgerOver(t, s, nil)
		if v, err := l.Verify(t.Context(), "r"); err != nil || v.BrokenAt != 3 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		for _, n := range []int{4, 5} {
			v, err := l.GetByHash(t.Context(), all[n-1].Record.ContentHash)
			if err != nil || v.Number != n || v.Unverified == "" || show(v.Record) != show(all[n-1].Record) {
				t.Errorf("%s: version %d: %v, %v", name, n, v, err)
			}
		}
		if v, err := l.GetByHash(t.Context(), all[1].Record.ContentHash); err != nil || v.Unverified != "" {
			t.Errorf("%s: version 2 is whole: %v, %v", name, v, err)
		}
		told, err := l.History(t.Context(), "r")
		if err != nil || len(told) != len(all) {
			t.Errorf("%s: the history has %d versions, want %d: %v", name, len(told), len(all), err)
		}
		for i, v := range told {
			hash := ""
			if v.Record != nil {
				hash = v.Record.ContentHash
			}
			if v.Number != i+1 || (v.Unverified == "") != (i < 2) || (hash == all[i].Record.ContentHash) != (i != 2) {
				t.Errorf("%s: in the history version %d is %+v", name, i+1, v)
			}
		}
		var broken *record.BrokenError
		if _, err := l.GetByHash(t.Context(), all[2].Record.ContentHash); !errors.As(err, &broken) || broken.Version != 3 {
			t.Errorf("%s: version 3: %v", name, err)
		}
		if _, err := l.Approve(t.Context(), "r", "p", ann); !errors.As(err, &broken) || !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s: something was built on it: %v", name, err)
		}
	}
}

// Who alters a version and computes all later hashes anew has made a whole chain; that it is
// another one a proof shows, against a root that was kept elsewhere.
func TestLife10RewrittenHistoryIsFoundByARoot(t *testing.T) {
	b := newBook(t)
	all := b.versions(t, "r", 5)
	saved, err := b.Root(t.Context(), "r")
	done(t, err)

	other := newBook(t)
	other.versions(t, "r", 2)
	head, err := other.Get(t.Context(), "r")
	done(t, err)
	head = other.learn(t, head, "forged")
	other.learn(t, other.learn(t, other.learn(t, head, "d"), "e"), "f")
	if v, err := other.Verify(t.Context(), "r"); err != nil || !v.Valid {
		t.Fatalf("by itself it is whole: %+v, %v", v, err)
	}
	if v, err := other.Verify(t.Context(), "r", saved); err != nil || v.Valid || v.BrokenAt != 0 {
		t.Errorf("with the root: %+v, %v", v, err)
	}
	now, err := other.Root(t.Context(), "r")
	done(t, err)
	proof, err := other.Consistency(t.Context(), "r", 5)
	done(t, err)
	if err := proof.Verify(saved, now); !errors.Is(err, record.ErrProof) {
		t.Errorf("its proof of consistency: %v", err)
	}

	b.learn(t, all[4], "more")
	now, err = b.Root(t.Context(), "r")
	done(t, err)
	proof, err = b.Consistency(t.Context(), "r", 5)
	done(t, err)
	if err := proof.Verify(saved, now); err != nil {
		t.Errorf("an honest proof: %v", err)
	}
}

// Every version is under every root of a record that has it, and none is under another's; and
// every root is consistent with every later one.
func TestProofsOfEverySize(t *testing.T) {
	b := newBook(t)
	all := b.versions(t, "r", 1)
	var roots []record.Root
	for n := 1; n <= 17; n++ {
		root, err := b.Root(t.Context(), "r")
		done(t, err)
		roots = append(roots, root)
		for v := 1; v <= n; v++ {
			in, err := b.Inclusion(t.Context(), "r", v)
			done(t, err)
			hash, other := all[v-1].Record.ContentHash, all[v%n].Record.ContentHash
			if err := in.Verify(hash, root); err != nil {
				t.Errorf("version %d of %d: %v", v, n, err)
			}
			if err := in.Verify(other, root); n > 1 && (!errors.Is(err, record.ErrProof) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("another version in the place of %d of %d: %v", v, n, err)
			}
			if err := in.Verify(hash, record.Root{Size: n + 1, Hash: root.Hash}); !errors.Is(err, record.ErrProof) {
				t.Errorf("version %d of %d, under a root of more: %v", v, n, err)
			}
			proof, err := b.Consistency(t.Context(), "r", v)
			done(t, err)
			if err := proof.Verify(roots[v-1], root); err != nil {
				t.Errorf("%d and %d: %v", v, n, err)
			}
			wrong := record.Root{Size: v, Hash: roots[(v)%n].Hash}
			if err := proof.Verify(wrong, root); n > 1 && !errors.Is(err, record.ErrProof) {
				t.Errorf("another root in the place of %d, to %d: %v", v, n, err)
			}
		}
		all = append(all, b.learn(t, all[n-1], fmt.Sprint(n)))
	}
	for _, v := range []int{0, 19} {
		if _, err := b.Inclusion(t.Context(), "r", v); !errors.Is(err, record.ErrNotFound) {
			t.Errorf("version %d: %v", v, err)
		}
		if _, err := b.Consistency(t.Context(), "r", v); !errors.Is(err, record.ErrNotFound) {
			t.Errorf("%d versions: %v", v, err)
		}
	}
}

// A root is what its digits say, in capitals too: so say proofs, and so does Verify. One that has
// no digits is no root of other versions.
func TestRootInCapitals(t *testing.T) {
	b := newBook(t)
	b.versions(t, "r", 3)
	root, err := b.Root(t.Context(), "r")
	done(t, err)
	p, err := b.Consistency(t.Context(), "r", 3)
	done(t, err)
	capitals := record.Root{Size: root.Size, Hash: strings.ToUpper(root.Hash)}
	if err := p.Verify(capitals, root); err != nil {
		t.Errorf("the proof says %v", err)
	}
	if v, err := b.Verify(t.Context(), "r", capitals); err != nil || !v.Valid {
		t.Errorf("Verify says %+v, %v", v, err)
	}
	var argument *record.ArgumentError
	for _, hash := range []string{"", "no digits", root.Hash[1:], root.Hash + "00"} {
		if v, err := b.Verify(t.Context(), "r", record.Root{Size: 3, Hash: hash}); !errors.As(err, &argument) {
			t.Errorf("with the root %q Verify says %+v, %v", hash, v, err)
		}
	}
}

// The tree is that of RFC 6962: its hashes are those that the RFC's own rules give.
func TestRootIsThatOfRFC6962(t *testing.T) {
	b := newBook(t)
	all := b.versions(t, "r", 3)
	hash := func(v int) []byte { return leaf(t, all[v].Record.ContentHash) }
	want := fmt.Sprintf("%x", node(node(hash(0), hash(1)), hash(2)))
	if root, err := b.Root(t.Context(), "r"); err != nil || root.Hash != want {
		t.Errorf("%v, %v, want %s", root, err, want)
	}
	want = fmt.Sprintf("%x", node(hash(0), hash(1)))
	if all[2].Record.MerkleRoot != want {
		t.Errorf("version 3 was written behind %s, want %s", all[2].Record.MerkleRoot, want)
	}
}

// A byte of a version, altered in the store, names that version. That every byte of every version
// counts another test shows, without a store.
func TestAlteredByteNamesItsVersion(t *testing.T) {
	b := newBook(t)
	b.versions(t, "r", 50)
	for version := 1; version <= 50; version += 7 {
		l := ledgerOver(t, forged(t, b.store, func(all []checkpoint.Entry) []checkpoint.Entry {
			data := all[preamble+version-1].Data
			digit := bytes.Index(data, []byte(`"createdAt":1`)) + len(`"createdAt":`)
			data[digit+1+version%6] ^= 1
			return all
		}), nil)
		if v, err := l.Verify(t.Context(), "r"); err != nil || v.BrokenAt != version {
			t.Errorf("version %d: %+v, %v", version, v, err)
		}
	}
}

// A record leaves a store as lines that others can read, and is the same in another store. What
// was altered, cut or added on the way is refused, and then there is nothing.
func TestExportAndImport(t *testing.T) {
	b := newBook(t)
	b.versions(t, "r", 4)
	root, err := b.Root(t.Context(), "r")
	done(t, err)
	var file bytes.Buffer
	done(t, b.Export(t.Context(), "r", &file))
	for line := range strings.Lines(file.String()) {
		conforms(t, []byte(line))
	}

	other := newBook(t)
	v, err := other.Import(t.Context(), bytes.NewReader(file.Bytes()), root)
	if err != nil || v.Number != 4 {
		t.Fatalf("%v, %v", v, err)
	}
	var again bytes.Buffer
	done(t, other.Export(t.Context(), "r", &again))
	if again.String() != file.String() {
		t.Error("exported again it is another file")
	}
	other.learn(t, v, "more") // it goes on there
	if err := other.unchanged(t, func() error {
		_, err := other.Import(t.Context(), bytes.NewReader(file.Bytes()))
		return err
	}); !errors.Is(err, record.ErrExists) {
		t.Errorf("a second time: %v", err)
	}

	lines := strings.SplitAfter(file.String(), "\n")
	empty := newBook(t)
	for name, c := range map[string]struct{ text, reason string }{
		"nothing":           {"", "it is empty"},
		"a blank line":      {lines[0] + "\n" + lines[1] + lines[2] + lines[3], "it is empty"},
		"a blank one first": {"\n" + file.String(), "it is empty"},
		"blanks at the end": {file.String() + " \n", "it is empty"},
		"a letter more":     {file.String() + "x\n", "it is no JSON from byte 1 on"},
		"a line altered":    {strings.Replace(file.String(), "walk", "talk", 3), "its content is not that of its contentHash"},
		"a line lost":       {lines[0] + lines[2] + lines[3], "written behind other versions"},
		"a line more":       {file.String() + "{}\n", ""},
		"cut off":           {lines[0] + lines[1], ""},
		"half a line":       {file.String()[:file.Len()-9], "it is JSON that was cut off"},
		"a number alone":    {lines[0] + "1\n", "can't be a number"},
	} {
		if err := empty.unchanged(t, func() error {
			_, err := empty.Import(t.Context(), strings.NewReader(c.text), root)
			return err
		}); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, want that %s", name, err, c.reason)
		}
	}
}

// A file and a clock come from outside; neither can make a ledger panic, or keep what is not whole.
func FuzzImport(f *testing.F) {
	f.Add([]byte("{}\n"))
	r := draft("r")
	r.CreatedBy, r.LastModifiedBy = bot, bot
	if r.Seal() == nil {
		data, _ := r.Encode()
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := ledgerOver(t, newStore(), time.Now)
		v, err := l.Import(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		if verdict, err := l.Verify(t.Context(), v.Record.ID); err != nil || !verdict.Valid {
			t.Fatalf("kept, and not whole: %+v, %v", verdict, err)
		}
	})
}

// The entries before the first version count as well: a record that has lost one is broken from its
// first version on, and takes no further one.
func TestWhatStandsBeforeTheFirstVersionIsVerified(t *testing.T) {
	for seq := uint64(1); seq <= 2; seq++ {
		b := newBook(t)
		all := b.versions(t, "r", 3)
		l := ledgerOver(t, damagedStore{b.store, seq}, nil)
		v, err := l.Verify(t.Context(), "r")
		if err != nil || v.Valid || v.BrokenAt != 1 {
			t.Errorf("without entry %d: %+v, %v", seq, v, err)
		}
		var broken *record.BrokenError
		if _, err := l.Update(t.Context(), "r", all[2].Record.ContentHash, func(r *record.Record) error { r.Task.Goal = "run"; return nil }, ann); !errors.As(err, &broken) || broken.Version != 1 {
			t.Errorf("without entry %d it takes an update: %v", seq, err)
		}
	}
}

// A shortStore ends its logs before their heads, and says nothing.
type shortStore struct {
	checkpoint.Store
	last  uint64
	reads int
}

func (s *shortStore) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	if s.reads++; s.reads > 10 {
		panic("the log is read again and again")
	}
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, run, from, to) {
			if err == nil && e.Seq > s.last || !yield(e, err) {
				return
			}
		}
	}
}

// A version that the store says is there, and does not hand out, is missing.
func TestALogThatEndsBeforeItsHead(t *testing.T) {
	b := newBook(t)
	b.versions(t, "r", 3)
	l := ledgerOver(t, &shortStore{Store: b.store, last: 4}, nil)
	if v, err := l.Verify(t.Context(), "r"); err != nil || v.Valid || v.BrokenAt != 3 || v.Root.Size != 3 {
		t.Errorf("%+v, %v; want that the third version is broken", v, err)
	}
}
