package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// What a floor appends is JSON, and as long as what pawl does.
func TestFloorsSayWhatPawlDoes(t *testing.T) {
	asks, lists := scribe{ctx: t.Context()}, scribe{ctx: t.Context()}
	_, err := asks.starts(10)
	err = errors.Join(err, asks.answers(), lists.opens(10))
	opened := lists.kept[0][sha256.Size:]
	lists.diary = diary{}
	page, err1 := newClerk().say(9, aPage)
	title, err2 := say(nil, 9, text)
	if err = errors.Join(err, lists.notes(1), err1, err2); err != nil {
		t.Fatal(err)
	}
	takesNotes := chain(2, func(_ context.Context, w *Work) error {
		w.Notes.Append(note)
		return nil
	})
	for _, test := range []struct {
		name        string
		floor, pawl [][]byte
	}{
		{"resume", texts(t, &asks.diary), appendsOf(t, questioning(12, ask), nil)[1:]},
		{"list", append([][]byte{opened}, texts(t, &lists.diary)...), appendsOf(t, takesNotes, fillNotes(10, note))[:2]},
		{"superstep", [][]byte{page}, appendsOf(t, chain(2, keep), nil)[1:2]},
		{"durable", [][]byte{title}, appendsOf(t, chain(2, write), nil)[1:2]},
	} {
		if len(test.floor) != len(test.pawl) {
			t.Errorf("floor/%s has %d appends, want %d", test.name, len(test.floor), len(test.pawl))
			continue
		}
		for i, said := range test.floor {
			if n, want := len(said), len(test.pawl[i]); n < want*9/10 || n > want*11/10 {
				t.Errorf("floor/%s says %d bytes, want about %d:\n%s\n%s", test.name, n, want, said, test.pawl[i])
			}
			dec := json.NewDecoder(bytes.NewReader(said))
			err := error(nil)
			for v := any(nil); err == nil; {
				err = dec.Decode(&v)
			}
			if err != io.EOF {
				t.Errorf("floor/%s says %s: %v", test.name, said, err)
			}
		}
	}
}

// A floor's snapshot has the state as it is.
func TestFloorsSayWhereARunStands(t *testing.T) {
	said, err := sayStands(text, []uint64{1<<64 - 1, 7})
	if want := `{"State":"` + text + `","Done":[18446744073709551615,7]}`; err != nil || string(said) != want {
		t.Errorf("where a run stands is %s, %v; want %s", said, err, want)
	}
}

// texts returns what each append to a log says, behind the digest of the one before it.
func texts(t *testing.T, d *diary) (all [][]byte) {
	t.Helper()
	for rest := d.log; len(rest) > 0; {
		end, sum := sha256.Size, [sha256.Size]byte{}
		for ; end < len(rest); end++ {
			if sum = sha256.Sum256(rest[:end]); bytes.HasPrefix(rest[end:], sum[:]) {
				break
			}
		}
		if end == len(rest) && sha256.Sum256(rest) != d.digest {
			t.Fatalf("no digest is of %q", rest)
		}
		all, rest = append(all, rest[sha256.Size:end]), rest[end:]
	}
	return all
}

// appendsOf returns the JSON of each append of a run, which is answered if it asks.
func appendsOf[S any](t *testing.T, g *dag.Graph[S], input func(*S)) (all [][]byte) {
	t.Helper()
	store := new(memory.Store)
	d := dispatch(g, checkpoint.Store(store), dispatcher.Options{})
	r, err := d.Start(t.Context(), "run", input)
	if errors.Is(err, dispatcher.ErrInterrupted) {
		_, err = d.Run(t.Context(), "run", nil, dispatcher.Answering(r.Interrupts[0].ID, true))
	}
	if err != nil {
		t.Fatal(err)
	}
	for data, err := range store.Envelopes(t.Context(), "run") {
		if err != nil {
			t.Fatal(err)
		}
		data = data[:len(data)-sha256.Size-crc32.Size]
		all = append(all, data[bytes.Index(data, []byte(`{"kind"`)):])
	}
	return all
}

// A text that JSON has to escape, or that isn't ASCII, is refused wherever that stands in it, and
// no other one.
func TestQuoted(t *testing.T) {
	for c := range 256 {
		asItIs := c >= ' ' && c < 0x80 && c != '"' && c != '\\'
		for at := range 17 {
			text := bytes.Repeat([]byte{'x'}, 17)
			text[at] = byte(c)
			got, err := quoted([]byte("["), string(text))
			if (err == nil) != asItIs {
				t.Errorf("quoted with %q at %d: %v", rune(c), at, err)
			}
			if want := `["` + string(text) + `"`; err == nil && string(got) != want {
				t.Errorf("quoted = %q, want %q", got, want)
			}
		}
	}
}
