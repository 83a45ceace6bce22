package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

func post(t *trial, s checkpoint.Store, run string, p checkpoint.Post) {
	t.Helper()
	if err := s.Post(t.Context(), run, p); err != nil {
		t.Fatalf("Post(%q, %q) = %v", run, p.ID, err)
	}
}

func posts(t *trial, s checkpoint.Store, run string) []checkpoint.Post {
	t.Helper()
	all, err := s.Posts(t.Context(), run)
	if err != nil {
		t.Fatalf("Posts(%q) = %v", run, err)
	}
	return all
}

// A message can be posted to a run that somebody else holds, and again without effect; the same id
// with another content is ErrConflict, and one whose Data is no JSON of UTF-8 is refused. Messages
// come in the order of their ids, and their times tell the order in which they were posted.
func postIsIdempotent(t *trial, s checkpoint.Store) {
	begun(t, s, "run")
	messages := []checkpoint.Post{
		{ID: "b", Kind: "answer", Data: json.RawMessage(`{"approved": true, "\u0000": "\u0000"}`)},
		{ID: "a", Kind: "cancel"},
		{ID: "c/\"ü\" 1", Kind: "answer", Data: t.quoted(mebibyte)},
	}
	for _, p := range messages {
		post(t, s, "run", p)
	}
	before := posts(t, s, "run")
	for _, p := range messages {
		post(t, s, "run", p)
	}
	for _, other := range []checkpoint.Post{
		{ID: "b", Kind: "answer", Data: json.RawMessage(`{"approved": false}`)},
		{ID: "b", Kind: "cancel", Data: messages[0].Data},
		{ID: "b", Kind: "answer"},
	} {
		err := s.Post(t.Context(), "run", other)
		wantErr(t, err, checkpoint.ErrConflict, "Post of another content")
	}
	for _, bad := range []checkpoint.Post{
		{Kind: "no id"}, {ID: "a\nb"}, {ID: strings.Repeat("x", 257)}, {ID: "\xff"},
	} {
		wantErr(t, s.Post(t.Context(), "run", bad), checkpoint.ErrPostID, "Post(%.40q)", bad.ID)
	}
	for _, data := range []string{"{", "{\"a\":\"\xff\"}"} { // the second an append could not drain
		if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "no JSON", Data: json.RawMessage(data)}); err == nil {
			t.Errorf("Post of %q, which is no JSON of UTF-8, = nil", data)
		}
	}
	if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "no kind", Kind: "\xff"}); err == nil {
		t.Error("Post of a kind that is not UTF-8 = nil: an export would tell another one")
	}
	got := posts(t, s, "run")
	if len(got) != 3 {
		t.Fatalf("Posts = %d messages, want 3", len(got))
	}
	if !got[1].At.Before(got[0].At) || !got[0].At.Before(got[2].At) {
		t.Errorf("b, a and c were posted in this order, at %v, %v and %v", got[1].At, got[0].At, got[2].At)
	}
	for i, want := range []checkpoint.Post{messages[1], messages[0], messages[2]} {
		if got[i].ID != want.ID || !got[i].Says(want) || got[i].At.IsZero() {
			t.Errorf("message %d is %.100q", i, fmt.Sprint(got[i]))
		}
		if !got[i].At.Equal(before[i].At) {
			t.Errorf("message %q, posted again, is of %v and was of %v", want.ID, got[i].At, before[i].At)
		}
	}
}

// A message is there until an append drains it, and an append that is refused drains none.
func postsAreDrainedWithAnAppend(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for i := range 4 {
		post(t, s, "run", checkpoint.Post{ID: fmt.Sprint(i), Kind: "answer"})
	}
	drain := func(id string) checkpoint.Entry {
		return checkpoint.Entry{Kind: checkpoint.Answered, ID: "interrupt", Post: id}
	}
	_, err := s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{drain("0")})
	wantErr(t, err, checkpoint.ErrConflict, "Append after another head")
	if got := posts(t, s, "run"); len(got) != 4 {
		t.Errorf("an append that was refused left %d of 4 messages", len(got))
	}
	head = add(t, s, l, head, drain("1"), done(1), drain("3"), drain("unknown"))
	if got := posts(t, s, "run"); len(got) != 2 || got[0].ID != "0" || got[1].ID != "2" {
		t.Errorf("Posts = %v, want 0 and 2", got)
	}
	add(t, s, l, head, drain("0"), drain("2"))
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("Posts = %v, want none", got)
	}
	if got := entry(t, s, "run", 2); got.Post != "1" {
		t.Errorf("the entry that drained 1 says %q", got.Post)
	}
}

// Who watches a run is told of a post to it before that returns, and of none to another run, until
// the watch is stopped. A run can be watched before it is there.
func postWakesWatchers(t *trial, s checkpoint.Store) {
	w, ok := s.(checkpoint.Watcher)
	if !ok {
		t.Skip("the store is no Watcher")
	}
	early, stopEarly := w.Watch("run")
	defer stopEarly()
	rested(t, s, "run")
	rested(t, s, "other")
	posted, stop := w.Watch("run")
	second, stopSecond := w.Watch("run")
	other, stopOther := w.Watch("other")
	for _, stop := range []func(){stop, stopSecond, stopOther} {
		defer stop() // also if it was stopped before
	}
	for i := range 3 { // several may be told as one
		post(t, s, "run", checkpoint.Post{ID: fmt.Sprint(i)})
	}
	told(t, posted, "a message")
	told(t, second, "a message")
	told(t, early, "a message to a run that was not there yet when he began to watch it")
	stopSecond()
	forget(second)
	forget(posted)
	post(t, s, "run", checkpoint.Post{ID: "last"})
	told(t, posted, "a message, when another had stopped")
	stop()
	stop()
	forget(posted)
	post(t, s, "run", checkpoint.Post{ID: "behind the last"})
	sleeps(t, second, "when it had stopped")
	sleeps(t, posted, "when it had stopped")
	sleeps(t, other, "by a message to another run")
}

// told checks that a watcher has been told.
func told(t *trial, posted <-chan struct{}, of string) {
	t.Helper()
	select {
	case <-posted:
	default:
		t.Fatalf("who watches had not been told of %s when Post returned", of)
	}
}

// Of many messages of one id and different content posted at once, one is kept.
func postOfOneIDAtOnce(t *trial, s checkpoint.Store) {
	rested(t, s, "run")
	const many = 8
	errs := make([]error, many)
	t.together(many, func(i int) {
		errs[i] = s.Post(t.Context(), "run", checkpoint.Post{ID: "one", Data: encode(i)})
	})
	got := posts(t, s, "run")
	if len(got) != 1 {
		t.Fatalf("Posts = %v, want one", got)
	}
	for i, err := range errs {
		kept := string(got[0].Data) == fmt.Sprint(i)
		if kept != (err == nil) || !kept && !errors.Is(err, checkpoint.ErrConflict) {
			t.Errorf("Post of %d = %v, but %s was kept", i, err, got[0].Data)
		}
	}
}

// Snapshot returns the newest at or before a position, of those that are kept: the newest of all
// always is, whatever is put behind it. Of the older ones it may find another, or none, and never
// one that was not put there.
func snapshotIsTheNewestUpTo(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	_, err := s.Snapshot(t.Context(), "run", 0)
	wantErr(t, err, checkpoint.ErrNotFound, "Snapshot of a run without one")
	kept := make(map[checkpoint.Head]string)
	keep := func(at checkpoint.Head, data string) {
		t.Helper()
		put(t, s, l, checkpoint.Snapshot{Head: at, Data: []byte(data)})
		kept[at] = data
	}
	newest := func(upTo uint64) {
		t.Helper()
		if snap, err := s.Snapshot(t.Context(), "run", upTo); err != nil || snap.Head != head || string(snap.Data) != kept[head] {
			t.Errorf("Snapshot up to %d = entry %d, %q, %v, want %d, %q", upTo, snap.Head.Seq, snap.Data, err, head.Seq, kept[head])
		}
	}
	var first checkpoint.Head
	for i := range 6 {
		if head = add(t, s, l, head, done(i), done(i)); i == 0 {
			first = head
		}
		if i%2 == 1 {
			keep(head, fmt.Sprintf("state %d \x00\xff\n", i)) // is bytes, and no text
			newest(0)
		}
	}
	keep(first, "late") // is older than the others
	older := func() {
		t.Helper()
		for upTo := uint64(1); upTo < head.Seq; upTo++ {
			snap, err := s.Snapshot(t.Context(), "run", upTo)
			if data, ok := kept[snap.Head]; !errors.Is(err, checkpoint.ErrNotFound) &&
				(err != nil || !ok || string(snap.Data) != data || snap.Head.Seq > upTo) {
				t.Errorf("Snapshot up to %d = entry %d, %q, %v, want what was put there or before", upTo, snap.Head.Seq, snap.Data, err)
			}
		}
	}
	older()
	newest(0)
	newest(head.Seq)
	newest(head.Seq + 9)
	keep(head, "") // in the place of another
	older()
	newest(0)
}

func put(t *trial, s checkpoint.Store, l checkpoint.Lease, snap checkpoint.Snapshot) {
	t.Helper()
	if err := s.PutSnapshot(t.Context(), l, snap); err != nil {
		t.Fatalf("PutSnapshot at %d = %v", snap.Head.Seq, err)
	}
}

// A snapshot is put under the lease, and of a position at which the run has stood.
func snapshotNeedsLeaseAndPosition(t *trial, s checkpoint.Store) {
	l, first := begun(t, s, "run")
	head := add(t, s, l, first, done(1), done(2))
	stale, forged := l, head
	stale.Epoch--
	forged.Digest[31] ^= 1
	err := s.PutSnapshot(t.Context(), stale, checkpoint.Snapshot{Head: head})
	wantErr(t, err, checkpoint.ErrFenced, "PutSnapshot under a stale lease")
	for name, at := range map[string]checkpoint.Head{
		"the beginning": {}, "a head to come": {Seq: head.Seq + 1}, "a forged head": forged,
		"the inside of an append": {Seq: 2, Digest: head.Digest},
	} {
		err := s.PutSnapshot(t.Context(), l, checkpoint.Snapshot{Head: at})
		wantErr(t, err, checkpoint.ErrConflict, "PutSnapshot of %s", name)
	}
	put(t, s, l, checkpoint.Snapshot{Head: first, Data: []byte("old")})
	if snap, err := s.Snapshot(t.Context(), "run", 0); err != nil || snap.Head != first {
		t.Errorf("Snapshot = %+v, %v", snap, err)
	}
}

// A snapshot of 12 MiB is like any other.
func snapshotOfManyMegabytes(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	states := []string{t.noise(mebibyte), t.noise(2 * mebibyte), t.noise(mostLarge)}
	for i, state := range states {
		head = add(t, s, l, head, done(i))
		put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte(state)})
		if snap, err := s.Snapshot(t.Context(), "run", 0); err != nil || snap.Head != head || string(snap.Data) != state {
			t.Errorf("Snapshot = %d bytes of entry %d, %v, want %d of %d", len(snap.Data), snap.Head.Seq, err, len(state), head.Seq)
		}
	}
}

// A graph is kept by its digest, once; another one of the same digest is ErrConflict.
func graphIsKeptOnce(t *trial, s checkpoint.Store) {
	_, err := s.Graph(t.Context(), "digest")
	wantErr(t, err, checkpoint.ErrNotFound, "Graph of an unknown digest")
	big := t.quoted(mebibyte)
	for _, g := range []struct {
		digest string
		graph  []byte
	}{{"digest", []byte(`{"z": ["ü\u0000", 1.0], "nodes":[]}`)}, {"digest of a big one", big}} {
		for range 2 {
			if err := s.PutGraph(t.Context(), g.digest, g.graph); err != nil {
				t.Fatalf("PutGraph = %v", err)
			}
		}
		got, err := s.Graph(t.Context(), g.digest)
		if err != nil || !bytes.Equal(got, g.graph) {
			t.Errorf("Graph = %d bytes, %v, want %d bytes", len(got), err, len(g.graph))
		}
	}
	err = s.PutGraph(t.Context(), "digest", []byte(`{}`))
	wantErr(t, err, checkpoint.ErrConflict, "PutGraph of another graph")
	if err := s.PutGraph(t.Context(), "", []byte(`{}`)); err == nil {
		t.Error("PutGraph without a digest = nil")
	}
}
