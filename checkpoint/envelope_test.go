package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

var noon = time.UnixMilli(1_795_262_400_000)

// sealed returns the envelope of entries behind the position after.
func sealed(
	t testing.TB, after checkpoint.Head, entries ...checkpoint.Entry,
) ([]byte, checkpoint.Head) {
	t.Helper()
	data, head, err := checkpoint.Seal(nil, after, noon, 7, entries)
	if err != nil {
		t.Fatalf("Seal = %v", err)
	}
	return data, head
}

// entriesOf returns the entries of an envelope, copied.
func entriesOf(e checkpoint.Envelope) (entries []checkpoint.Entry, err error) {
	for entry, err := range e.Entries() {
		if err != nil {
			return entries, err
		}
		entry.Delta = bytes.Clone(entry.Delta)
		entry.Outer = bytes.Clone(entry.Outer)
		entry.Data = bytes.Clone(entry.Data)
		entries = append(entries, entry)
	}
	return entries, nil
}

// someEntries has every field, and strings that need escapes.
func someEntries() []checkpoint.Entry {
	return []checkpoint.Entry{
		{Kind: checkpoint.Opened, Data: json.RawMessage(`{"graph":"archivist"}`)},
		{
			Kind: checkpoint.Done, Path: "compose-loop/2/validate", Step: 3, Attempt: 2,
			Outcome: "ok \"quoted\" \\ \n \x01 ü 🪓", ID: "id", Post: "p\u2028",
			Delta: json.RawMessage(`{"text":{"set":"} \" ] \\"},"list":{"append":[1,2.5,null,true]}}`),
			Outer: json.RawMessage(` [ "a" , {} ] `), Data: json.RawMessage(`"text"`),
		},
		{Kind: checkpoint.Superstep, Step: -1, Outer: json.RawMessage(`0`)},
	}
}

func TestSealUnseal(t *testing.T) {
	after := checkpoint.Head{Seq: 41, Digest: sha256.Sum256([]byte("before"))}
	want := someEntries()
	data, head := sealed(t, after, want...)
	if head.Seq != 44 || head.Digest != sha256.Sum256(data[:len(data)-36]) {
		t.Errorf("Seal ends at %+v", head)
	}
	e, err := checkpoint.Unseal(data)
	if err != nil {
		t.Fatal(err)
	}
	if e.First != 42 || e.Count != 3 || e.Last() != 44 || e.Epoch != 7 || !e.At.Equal(noon) ||
		e.Previous != after.Digest || e.Head() != head {
		t.Errorf("Unseal = %+v", e)
	}
	got, err := entriesOf(e)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Seq, want[i].At = uint64(42+i), noon.UTC()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("entries\n%+v\nwant\n%+v", got, want)
	}
}

// Numbers of any length come back.
func TestNumbersComeBack(t *testing.T) {
	var want []checkpoint.Entry
	for _, n := range []int{1, 9, 10, 12_345_678, 123_456_789, 1_234_567_890, math.MaxInt32, math.MaxInt, -1, -1_234_567_890, math.MinInt} {
		want = append(want, checkpoint.Entry{Kind: checkpoint.Done, Path: "a", Step: n, Attempt: -n})
	}
	data, _ := sealed(t, checkpoint.Head{}, want...)
	e, err := checkpoint.Unseal(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := entriesOf(e)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d entries, %v, want %d", len(got), err, len(want))
	}
	for i := range want {
		if got[i].Step != want[i].Step || got[i].Attempt != want[i].Attempt {
			t.Errorf("step %d, attempt %d, want %d, %d", got[i].Step, got[i].Attempt, want[i].Step, want[i].Attempt)
		}
	}
}

// Seal appends to what it is given, and leaves it as it was if it refuses.
func TestSealAppends(t *testing.T) {
	want, _ := sealed(t, checkpoint.Head{}, someEntries()...)
	got, _, err := checkpoint.Seal([]byte("before"), checkpoint.Head{}, noon, 7, someEntries())
	if err != nil || string(got) != "before"+string(want) {
		t.Errorf("Seal = %q, %v", got, err)
	}
	for name, bad := range map[string][]checkpoint.Entry{
		"no entries":    nil,
		"no kind":       {{}},
		"bad data":      {{Kind: checkpoint.Done}, {Kind: checkpoint.Noted, Data: []byte("{")}},
		"a bad path":    {{Kind: checkpoint.Done, Path: "a\xff"}},
		"a bad outcome": {{Kind: checkpoint.Done, Outcome: "\"\xc3"}},
	} {
		got, head, err := checkpoint.Seal([]byte("before"), checkpoint.Head{}, noon, 7, bad)
		if err == nil || string(got) != "before" || head != (checkpoint.Head{}) {
			t.Errorf("Seal with %s = %q, %v, %v", name, got, head, err)
		}
	}
}

// The payload is JSON that anybody can read: one object per line, as encoding/json would
// write it.
func TestPayloadIsJSON(t *testing.T) {
	want := someEntries()
	data, _ := sealed(t, checkpoint.Head{}, want...)
	for i, line := range bytes.Split(bytes.TrimSuffix(data[72:len(data)-36], []byte("\n")), []byte("\n")) {
		var got checkpoint.Entry
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("line %d, %s: %v", i, line, err)
		}
		want[i].Outer = bytes.TrimSpace(want[i].Outer)
		if len(want[i].Outer) == 0 {
			want[i].Outer = nil
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("line %d is read as %+v, want %+v", i, got, want[i])
		}
	}
	plain := checkpoint.Entry{
		Kind: checkpoint.Done, Path: "a/1/b", Step: 1, Attempt: 2, Outcome: "ok", ID: "i", Post: "p",
		Delta: []byte(`{"n":1}`), Outer: []byte(`[1]`), Data: []byte(`"x"`),
	}
	text, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	data, _ = sealed(t, checkpoint.Head{}, plain)
	if got := string(data[72 : len(data)-36]); got != string(text)+"\n" {
		t.Errorf("the payload is %s, want %s", got, text)
	}
}

// The bytes of version 2: if this fails the format has changed.
func TestFormatV2(t *testing.T) {
	data, head := sealed(t, checkpoint.Head{}, checkpoint.Entry{Kind: checkpoint.Done, Path: "a"})
	const (
		begin  = "7061776c" + "02" + "01" + "0000" + "0000001b" + "00000001" + "0000000000000001" + "%016x" + "0000000000000007"
		digest = "a4a9bebdf8c1c30cbf8ea260cc5a14c30ca712b612495dff8d0bbaa68f3bf83a"
	)
	want := fmt.Sprintf(begin, noon.UnixMilli()) + strings.Repeat("00", 32) +
		hex.EncodeToString([]byte(`{"kind":"done","path":"a"}`+"\n")) + digest + "e668f36d"
	if got := hex.EncodeToString(data); got != want {
		t.Errorf("the envelope is %s, want %s", got, want)
	}
	if got := hex.EncodeToString(head.Digest[:]); got != digest {
		t.Errorf("the digest is %s, want %s", got, digest)
	}
}

// envelopeV1 is someEntries behind entry 5, as programs have sealed it that wrote version 1.
func envelopeV1(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "envelope-v1"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Envelopes of version 1 are read, for ever: they have the same entries, and the digests that they
// had.
func TestFormatV1IsRead(t *testing.T) {
	e, err := checkpoint.Unseal(envelopeV1(t))
	if err != nil {
		t.Fatal(err)
	}
	const digest = "477cde463961448431c3b6204c398fe65163e9e1781859de63ab87b0c5320224"
	if head := e.Head(); hex.EncodeToString(head.Digest[:]) != digest || head.Seq != 8 {
		t.Errorf("the head is %d, %x", head.Seq, head.Digest)
	}
	if e.First != 6 || e.Count != 3 || e.Epoch != 7 || !e.At.Equal(noon) || e.Previous != (checkpoint.Digest{1, 2, 3}) {
		t.Errorf("Unseal = %+v", e)
	}
	got, err := entriesOf(e)
	want := someEntries()
	for i := range want {
		want[i].Seq, want[i].At = uint64(6+i), noon.UTC()
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("entries\n%+v, %v\nwant\n%+v", got, err, want)
	}
}

// Every flipped bit, and every other length, is found.
func TestEveryBitCounts(t *testing.T) {
	data, _ := sealed(t, checkpoint.Head{Seq: 5}, someEntries()...)
	for _, data := range [][]byte{data, envelopeV1(t)} {
		everyBitCounts(t, data)
	}
}

func everyBitCounts(t *testing.T, data []byte) {
	t.Helper()
	for i := range len(data) * 8 {
		flipped := bytes.Clone(data)
		flipped[i/8] ^= 1 << (i % 8)
		_, err := checkpoint.Unseal(flipped)
		if !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrVersion) {
			t.Fatalf("bit %d of byte %d flipped: %v", i%8, i/8, err)
		}
		known := flipped[4] == 1 || flipped[4] == 2 // the other one, of which this is no envelope
		if isVersion := i/8 == 4 && !known; errors.Is(err, checkpoint.ErrVersion) != isVersion {
			t.Fatalf("bit %d of byte %d flipped: %v", i%8, i/8, err)
		}
	}
	for n := range len(data) {
		if _, err := checkpoint.Unseal(data[:n]); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Fatalf("cut off at %d: %v", n, err)
		}
	}
	if _, err := checkpoint.Unseal(append(data, 0)); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("a byte too many: %v", err)
	}
}

// Of a version that is not known nothing else is judged.
func TestUnknownVersion(t *testing.T) {
	data := []byte("pawl\x03 whatever the next version is like")
	if _, err := checkpoint.Unseal(data); !errors.Is(err, checkpoint.ErrVersion) {
		t.Errorf("Unseal = %v, want ErrVersion", err)
	}
}

// Random entries come back as they were.
func TestRandomEntriesRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	letters := []rune("abc/0\"\\\n\x00{}[]:, ü🪓\u2028<")
	text := func() string {
		var b strings.Builder
		for random.IntN(5) > 0 {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(6); {
		case n == 0:
			return random.Int()
		case n == 1:
			return nil
		case n == 2 && depth < 4:
			return map[string]any{text(): value(depth + 1), text(): value(depth + 1)}
		case n == 3 && depth < 4:
			return []any{value(depth + 1), value(depth + 1)}
		}
		return text()
	}
	raw := func() json.RawMessage {
		if random.IntN(3) == 0 {
			return nil
		}
		b, err := json.MarshalIndent(value(0), "", strings.Repeat(" ", random.IntN(2)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for range 2000 {
		var want []checkpoint.Entry
		for range 1 + random.IntN(4) {
			want = append(want, checkpoint.Entry{
				Seq: uint64(len(want) + 1), At: noon.UTC(),
				Kind: checkpoint.Kind(1 + random.IntN(int(checkpoint.Waiting))), Path: text(),
				Step: random.IntN(3), Attempt: random.IntN(3), Outcome: text(), ID: text(), Post: text(),
				Delta: raw(), Outer: raw(), Data: raw(),
			})
		}
		data, _ := sealed(t, checkpoint.Head{}, want...)
		e, err := checkpoint.Unseal(data)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := entriesOf(e)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %v\ngot  %+v\nwant %+v", seed, err, got, want)
		}
	}
}

// Members are told apart by a letter before they are compared as a whole, and the kinds that most
// entries have before all others: neither lets anything through.
func TestEntriesAreReadAsTheyAreWritten(t *testing.T) {
	read := func(payload string) ([]checkpoint.Entry, error) {
		e, err := checkpoint.Unseal(checkpoint.Forge([]byte(payload), 1))
		if err != nil {
			t.Fatal(err)
		}
		return entriesOf(e)
	}
	for _, payload := range []string{
		`{"kind":"done"`, `{"kind":"donee"}`, `{"kind":"don"}`, `{"kind":"superstep_"}`, `{"kind":"superstep"`, `{"kind":done}`,
		`{"kind":"done","p}`, `{"kind":"done","pa":"x"}`, `{"kind":"done","pax":"x"}`, `{"kind":"done","post":"x","path":"x"}`,
		`{"kind":"done","step":"1"}`, `{"kind":"done","step":}`, `{"kind":"done","step":1-2}`, `{"kind":"done","step":99999999999999999999}`,
		`{"kind":"done","path":"x}`, `{"kind":"done","path":"\x"}`, "{\"kind\":\"done\",\"path\":\"\xff\"}", "{\"kind\":\"done\",\"path\":\"a\nb\"}",
		`{"kind":"done","delta":}`, `{"kind":"done","delta":{}`, `{"kind":"done","delta":{},"delta":{}}`, `{"kind":"done","outer":{},"delta":{}}`,
		`{"kind":"done"} `, `{"kind":"done"}x`, "",
	} {
		if got, err := read(payload + "\n"); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s: %+v, %v, want damage", payload, got, err)
		}
	}
	for _, path := range []string{"a", "é", `a\"b`, "a\u0001b", `\\`, `a\\`, "node-1/12/items"} {
		payload := `{"kind":"superstep","path":"` + strings.ReplaceAll(path, "\u0001", `\u0001`) + `","step":-7,"post":"` + "p" + `","delta":{"a":"]"}}` + "\n"
		var want string
		if err := json.Unmarshal([]byte(`"`+strings.ReplaceAll(path, "\u0001", `\u0001`)+`"`), &want); err != nil {
			t.Fatal(err)
		}
		got, err := read(payload)
		if err != nil || len(got) != 1 || got[0].Path != want || got[0].Step != -7 || got[0].Post != "p" ||
			got[0].Kind != checkpoint.Superstep || string(got[0].Delta) != `{"a":"]"}` {
			t.Errorf("%s: %+v, %v", payload, got, err)
		}
	}
}

// Whatever is unsealed, entries and all, is an error or is sealed to the same bytes, or to
// ones that are read the same.
func FuzzUnseal(f *testing.F) {
	data, _ := sealed(f, checkpoint.Head{}, someEntries()...)
	f.Add(data)
	f.Add(data[:72])
	f.Add([]byte("pawl\x02"))
	f.Add(envelopeV1(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := checkpoint.Unseal(data)
		if err != nil {
			if !errors.Is(err, checkpoint.ErrCorrupt) && !errors.Is(err, checkpoint.ErrVersion) {
				t.Fatalf("Unseal = %v", err)
			}
			return
		}
		if got, err := entriesOf(e); err == nil && len(got) != e.Count {
			t.Fatalf("%d entries, want %d", len(got), e.Count)
		}
	})
}

// FuzzPayload reads payloads behind a header that is right.
func FuzzPayload(f *testing.F) {
	data, _ := sealed(f, checkpoint.Head{}, someEntries()...)
	f.Add(data[72:len(data)-36], uint8(3))
	f.Add([]byte(`{"kind":"done","delta":{"a":["]"]},"data":"\\"}`+"\n"), uint8(1))
	f.Add([]byte(`{"kind":"done","path":"\u00e9"}`+"\n"), uint8(1))
	f.Fuzz(func(t *testing.T, payload []byte, count uint8) {
		e, err := checkpoint.Unseal(checkpoint.Forge(payload, int(count)))
		if err != nil {
			return
		}
		want, err := entriesOf(e)
		if err != nil {
			if !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Fatalf("Entries = %v", err)
			}
			return
		}
		again, _, err := checkpoint.Seal(nil, checkpoint.Head{}, e.At, e.Epoch, want)
		if err != nil {
			return // JSON is not judged when it is read
		}
		e, err = checkpoint.Unseal(again)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := entriesOf(e); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %+v, and that again as %+v, %v", payload, want, got, err)
		}
	})
}

// An envelope that counts more entries than it has bytes, or more than there are numbers for, is
// none; and of an entry that can't be read there is nothing.
func TestEnvelopesThatCantBe(t *testing.T) {
	entry := []byte(`{"kind":"done","path":"a"}` + "\n")
	for name, c := range map[string]struct {
		after uint64
		count int
	}{
		"too many entries":      {0, 1 << 30},
		"no entries":            {0, 0},
		"numbers that run over": {math.MaxUint64 - 2, 3},
		"the number zero":       {math.MaxUint64, 1},
	} {
		data, _ := checkpoint.ForgeBehind(checkpoint.Head{Seq: c.after}, entry, c.count)
		if _, err := checkpoint.Unseal(data); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
	data, _ := checkpoint.ForgeBehind(checkpoint.Head{}, []byte(`{"kind":"done","path":"a","step":x}`+"\n"), 1)
	e, err := checkpoint.Unseal(data)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range e.Entries() {
		if !errors.Is(err, checkpoint.ErrCorrupt) || !reflect.DeepEqual(entry, checkpoint.Entry{}) {
			t.Errorf("an entry that can't be read is %+v, %v", entry, err)
		}
	}
}
