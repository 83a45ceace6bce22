package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// archiver returns s as an Archiver, or skips the test if it is none.
func archiver(t *trial, s checkpoint.Store) checkpoint.Archiver {
	t.Helper()
	a, ok := s.(checkpoint.Archiver)
	if !ok {
		t.Skip("the store is no Archiver")
	}
	return a
}

func archive(envelopes iter.Seq2[[]byte, error], posts ...checkpoint.Post) checkpoint.Archive {
	return checkpoint.Archive{Envelopes: envelopes, Posts: posts}
}

// old is when the appends of archived were made.
var old = time.Date(2020, 2, 3, 4, 5, 6, 7e6, time.UTC)

// archived seals the log of a run of which one append is large, made under some leases.
func archived(t *trial) (envelopes [][]byte, head checkpoint.Head) {
	t.Helper()
	big := done(3)
	big.Delta = t.quoted(mebibyte)
	for i, entries := range [][]checkpoint.Entry{
		{opened("graph", map[string]string{"label": "value"}), done(1), done(2)},
		{big},
		{done(4), {Kind: checkpoint.Noted, Delta: json.RawMessage("{\n\"a\": [1]}")}},
		{{Kind: checkpoint.Waiting}},
		{{Kind: checkpoint.Noted, Post: "drained"}},
	} {
		envelope, next, err := checkpoint.Seal(nil, head, old.Add(time.Duration(i)*time.Hour), uint64(i+3), entries)
		if err != nil {
			t.Fatal(err)
		}
		envelopes, head = append(envelopes, envelope), next
	}
	return envelopes, head
}

// lent yields the envelopes in one buffer, and ruins each behind the caller.
func lent(envelopes [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, e := range envelopes {
			b := bytes.Clone(e)
			if !yield(b, nil) {
				return
			}
			ruin(b)
		}
	}
}

// envelopesOf returns the appends of a run that there is, copied.
func envelopesOf(t *trial, a checkpoint.Archiver, run string) (all [][]byte) {
	t.Helper()
	for data, err := range a.Envelopes(t.Context(), run) {
		if err != nil {
			t.Fatalf("Envelopes(%q): %v", run, err)
		}
		all = append(all, bytes.Clone(data))
	}
	if len(all) == 0 {
		t.Fatalf("Envelopes(%q) yields none", run)
	}
	return all
}

// What Envelopes yields is the log, in appends that form a chain to the head.
func envelopesAreTheLog(t *trial, s checkpoint.Store) {
	a := archiver(t, s)
	l, head := begun(t, s, "run")
	rested(t, s, "other")
	big := done(1)
	big.Delta = t.quoted(mebibyte)
	head = add(t, s, l, head, done(0), big)
	head = add(t, s, l, head, done(2))
	info := checkpoint.Info{Run: "run"}
	for data, err := range a.Envelopes(t.Context(), "run") {
		if err == nil {
			info, err = info.Sealed(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		ruin(data)
	}
	if want := stat(t, s, "run"); info.Head != head || info.Graph != want.Graph || info.Epoch != l.Epoch ||
		!info.Created.Equal(want.Created) || info.Status != want.Status {
		t.Errorf("the envelopes make %+v, the run is %+v", info, want)
	}
	for range a.Envelopes(t.Context(), "run") {
		break // a loop can be left
	}
	var err error
	for _, err = range a.Envelopes(t.Context(), "no run") {
	}
	wantErr(t, err, checkpoint.ErrNotFound, "Envelopes of no run")
	read(t, s, "run", 1, 0) // what was ruined was not the store's
}

// A run that is restored has the entries, times, digests and messages that it had, ends the
// lease, and goes on; whatever it held before is not mixed with it.
func restoreIsExact(t *trial, s checkpoint.Store) {
	a := archiver(t, s)
	rested(t, s, "run")
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	rested(t, s, "before")
	envelopes, head := archived(t)
	message := checkpoint.Post{ID: "m", Kind: "answer", Data: encode("yes"), At: old}
	l := owned(t, s, "run")
	for range 9 { // the archive has epochs up to 7
		release(t, s, l)
		l = owned(t, s, "run")
	}
	given := message
	given.Data = bytes.Clone(message.Data)
	whileKeeping := func(yield func([]byte, error) bool) { // as Import does, where an entry names a graph
		for data, err := range lent(envelopes) {
			if err := s.PutGraph(t.Context(), "meanwhile", []byte("{}")); err != nil {
				t.Error(err)
			}
			if !yield(data, err) {
				return
			}
		}
	}
	info, err := a.Restore(t.Context(), l, archive(whileKeeping, given))
	if err != nil {
		t.Fatal(err)
	}
	ruin(given.Data)
	rested(t, s, "after")
	got := stat(t, s, "run")
	if got.Head != head || info.Head != head || got.Status != checkpoint.StatusInterrupted || got.Owner != "" ||
		got.Graph != "graph" || !maps.Equal(got.Labels, map[string]string{"label": "value"}) ||
		!got.Created.Equal(old) || !got.Updated.Equal(old.Add(3*time.Hour)) || got.Epoch < 7 {
		t.Errorf("Stat = %+v", got)
	}
	if !slices.EqualFunc(envelopesOf(t, a, "run"), envelopes, bytes.Equal) {
		t.Error("the envelopes are not those that were restored")
	}
	if e := entry(t, s, "run", 4); !e.At.Equal(old.Add(time.Hour)) || string(e.Delta) != string(t.quoted(mebibyte)) {
		t.Errorf("entry 4 is of %v with %d bytes", e.At, len(e.Delta))
	}
	if p := posts(t, s, "run"); len(p) != 1 || !p[0].Says(message) || !p[0].At.Equal(old) {
		t.Errorf("Posts = %v", p)
	}
	if got := ids(t, s, checkpoint.Filter{}); fmt.Sprint(got) != "[after run before]" {
		t.Errorf("List = %v: the order is that in which runs came to be in the store", got)
	}
	_, err = s.Append(t.Context(), l, head, []checkpoint.Entry{done(9)})
	wantErr(t, err, checkpoint.ErrFenced, "Append under the lease of the Restore")
	next := owned(t, s, "run")
	if next.Epoch <= 7 || next.Epoch <= l.Epoch {
		t.Errorf("the lease after it is of epoch %d", next.Epoch)
	}
	head = add(t, s, next, head, checkpoint.Entry{Kind: checkpoint.Noted, Post: "m"})
	put(t, s, next, checkpoint.Snapshot{Head: head, Data: []byte("state")})
	if len(posts(t, s, "run")) != 0 || len(read(t, s, "run", 1, 0)) != 9 {
		t.Error("the run did not go on")
	}
}

// A Restore that is refused, or fails anywhere, leaves no run; the lease stays. Where several
// things are wrong the lease comes first, then that the run exists, then the archive.
func restoreIsAllOrNothing(t *trial, s checkpoint.Store) {
	a := archiver(t, s)
	envelopes, head := archived(t)
	broken := errors.New("broken")
	failing := func(after int) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for _, e := range envelopes[:after] {
				if !yield(bytes.Clone(e), nil) {
					return
				}
			}
			yield(nil, broken)
		}
	}
	swapped := slices.Clone(envelopes)
	swapped[2], swapped[3] = swapped[3], swapped[2]
	flipped := slices.Clone(envelopes)
	flipped[1] = bytes.Clone(flipped[1])
	flipped[1][200] ^= 1
	forged := slices.Clone(envelopes)
	forged[1] = bytes.Clone(forged[1])
	forged[1][100] ^= 1 // in its entries
	end := len(forged[1]) - crc32.Size
	binary.BigEndian.PutUint32(forged[1][end:], crc32.Checksum(forged[1][:end], crc32.MakeTable(crc32.Castagnoli)))
	l := owned(t, s, "run")
	for _, c := range []struct {
		name      string
		envelopes iter.Seq2[[]byte, error]
		posts     []checkpoint.Post
		want      error
	}{
		{"nothing", lent(nil), nil, checkpoint.ErrCorrupt},
		{"no envelopes", nil, nil, checkpoint.ErrCorrupt},
		{"a log without its beginning", lent(envelopes[1:]), nil, checkpoint.ErrCorrupt},
		{"a log without its second append", lent(slices.Delete(slices.Clone(envelopes), 1, 2)), nil, checkpoint.ErrCorrupt},
		{"appends in another order", lent(swapped), nil, checkpoint.ErrCorrupt},
		{"a changed byte", lent(flipped), nil, checkpoint.ErrCorrupt},
		{"a changed byte, with a checksum that fits", lent(forged), nil, checkpoint.ErrCorrupt},
		{"a doubled append", lent(append(slices.Clone(envelopes), envelopes[4])), nil, checkpoint.ErrCorrupt},
		{"a reader that fails at once", failing(0), nil, broken},
		{"a reader that fails late", failing(4), nil, broken},
		{"a bad message", lent(envelopes), []checkpoint.Post{{ID: ""}}, checkpoint.ErrPostID},
	} {
		_, err := a.Restore(t.Context(), l, archive(c.envelopes, c.posts...))
		wantErr(t, err, c.want, "Restore of %s", c.name)
		_, err = s.Stat(t.Context(), "run")
		wantErr(t, err, checkpoint.ErrNotFound, "Stat after a Restore of %s", c.name)
		if got := ids(t, s, checkpoint.Filter{}); len(got) != 0 {
			t.Errorf("after a Restore of %s List = %v", c.name, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := a.Restore(ctx, l, archive(func(yield func([]byte, error) bool) {
		for i, e := range envelopes {
			if i == 3 {
				cancel()
			}
			if !yield(bytes.Clone(e), nil) {
				return
			}
		}
	}))
	wantErr(t, err, context.Canceled, "Restore that is cancelled")
	nobody := checkpoint.Lease{Run: "run", Epoch: 99, Owner: "nobody"}
	for _, log := range [][][]byte{envelopes, envelopes[1:]} {
		_, err = a.Restore(t.Context(), nobody, archive(lent(log)))
		wantErr(t, err, checkpoint.ErrFenced, "Restore without the lease")
	}
	if info, err := a.Restore(t.Context(), l, archive(lent(envelopes))); err != nil || info.Head != head {
		t.Fatalf("Restore = %+v, %v", info, err)
	}
	_, err = a.Restore(t.Context(), nobody, archive(lent(envelopes)))
	wantErr(t, err, checkpoint.ErrFenced, "Restore of a run that exists, without the lease")
	l = owned(t, s, "run")
	for _, log := range [][][]byte{envelopes, envelopes[1:]} {
		_, err = a.Restore(t.Context(), l, archive(lent(log)))
		wantErr(t, err, checkpoint.ErrExists, "Restore of a run that exists")
	}
}

// A run that was restored is there when the store is opened again; one of which the Restore
// failed is not, nor does anything of it come back.
func restoredIsThereAgain(t *trial, s checkpoint.Store) {
	envelopes, head := archived(t)
	message := checkpoint.Post{ID: "m", Kind: "answer", At: old}
	a := archiver(t, s)
	_, err := a.Restore(t.Context(), owned(t, s, "run"), archive(lent(envelopes), message))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	half := owned(t, s, "half")
	_, err = a.Restore(ctx, half, archive(func(yield func([]byte, error) bool) {
		if yield(bytes.Clone(envelopes[0]), nil) && yield(bytes.Clone(envelopes[1]), nil) {
			cancel()
			yield(bytes.Clone(envelopes[2]), nil)
		}
	}))
	wantErr(t, err, context.Canceled, "Restore that is cancelled")
	cancel()
	release(t, s, half)
	for range 2 {
		s = t.reopen(s)
		info := stat(t, s, "run")
		if info.Head != head || !info.Created.Equal(old) || info.Status != checkpoint.StatusInterrupted ||
			len(read(t, s, "run", 1, 0)) != int(head.Seq) || len(posts(t, s, "run")) != 1 {
			t.Fatalf("Stat = %+v, want the head %d", info, head.Seq)
		}
		if got := ids(t, s, checkpoint.Filter{}); fmt.Sprint(got) != "[run]" {
			t.Errorf("List = %v", got)
		}
		l := owned(t, s, "run")
		if l.Epoch <= info.Epoch {
			t.Errorf("epoch %d after epoch %d", l.Epoch, info.Epoch)
		}
		head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.Noted})
		release(t, s, l)
	}
	rested(t, s, "half")
	if got := read(t, s, "half", 1, 0); len(got) != 1 {
		t.Errorf("the new run has %d entries", len(got))
	}
}
