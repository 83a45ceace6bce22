package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// restoredAhead makes a run with two messages from a host whose clock was ahead.
func restoredAhead(t *trial, s checkpoint.Store, run string) {
	t.Helper()
	envelopes, _ := archived(t)
	ahead := time.Now().Add(time.Hour).UTC()
	_, err := archiver(t, s).Restore(t.Context(), owned(t, s, run), archive(lent(envelopes),
		checkpoint.Post{ID: "m1", Kind: "turn", At: ahead.Add(time.Minute)}, checkpoint.Post{ID: "m2", Kind: "turn", At: ahead}))
	if err != nil {
		t.Fatal(err)
	}
}

// behind checks that each message of the run but the last of these was posted before the next.
func behind(t *trial, s checkpoint.Store, run string, ids ...string) {
	t.Helper()
	at := make(map[string]time.Time)
	for _, p := range posts(t, s, run) {
		at[p.ID] = p.At
	}
	for i, id := range ids[1:] {
		if !at[id].After(at[ids[i]]) {
			t.Errorf("message %s of %v is not behind message %s of %v", id, at[id], ids[i], at[ids[i]])
		}
	}
}

// drains is an entry that drains a message and says nothing.
func drains(id string) checkpoint.Entry { return checkpoint.Entry{Kind: checkpoint.Noted, Post: id} }

// isOfNow checks that the run has one message, which was not posted later than it is.
func isOfNow(t *trial, s checkpoint.Store, run string) {
	t.Helper()
	if got := posts(t, s, run); len(got) != 1 || got[0].At.After(time.Now().Add(time.Minute)) {
		t.Errorf("the messages of run %q are %v, want one that is posted now", run, got)
	}
}

// A message is behind every one of its run that nobody has drained, also where that came from a
// host whose clock was ahead; where none is left of those, and in other runs, messages are of the
// time that it is.
func postIsBehindRestoredOnes(t *trial, s checkpoint.Store) {
	restoredAhead(t, s, "run")
	rested(t, s, "other")
	for _, id := range []string{"b", "a"} {
		post(t, s, "run", checkpoint.Post{ID: id, Kind: "turn"})
	}
	behind(t, s, "run", "m2", "m1", "b", "a")
	l := owned(t, s, "run")
	head := add(t, s, l, stat(t, s, "run").Head, drains("m1"), drains("m2"))
	post(t, s, "run", checkpoint.Post{ID: "0", Kind: "turn"})
	behind(t, s, "run", "b", "a", "0")
	head = add(t, s, l, head, drains("b"), drains("a"), drains("0"))
	post(t, s, "run", checkpoint.Post{ID: "1", Kind: "turn"})
	isOfNow(t, s, "run")
	add(t, s, l, head, done(1))
	release(t, s, l)
	post(t, s, "other", checkpoint.Post{ID: "m", Kind: "turn"})
	isOfNow(t, s, "other")
	erase(t, s, "run")
	restoredAhead(t, s, "run") // whose messages are later than those of the run that is gone
	post(t, s, "run", checkpoint.Post{ID: "a", Kind: "turn"})
	behind(t, s, "run", "m2", "m1", "a")
}

// A message is behind every one that was posted before the store was opened again and that nobody
// has drained, though the clock was set back meanwhile.
func postIsBehindThoseOfBefore(t *trial, s checkpoint.Store) {
	restoredAhead(t, s, "run")
	last := "m1"
	for _, id := range []string{"c", "b", "a"} {
		s = t.reopen(s)
		post(t, s, "run", checkpoint.Post{ID: id, Kind: "turn"})
		behind(t, s, "run", last, id)
		last = id
	}
}

// An entry that names a message with an id that none can have, however long, drains nothing: it is
// kept as it is, and appends to other runs beside it are made.
func noMessageHasABadID(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	post(t, s, "run", checkpoint.Post{ID: "post", Kind: "answer"})
	bad := []string{strings.Repeat("x", 257), strings.Repeat("x", max(257, t.size(70_000))), "a\x00", "a\n"}
	var all sync.WaitGroup
	for _, other := range []string{"a", "b", "c", "d"} {
		l, head := begun(t, s, other)
		t.beside(&all, func() {
			for n := range 10 * len(bad) {
				head = add(t, s, l, head, done(n))
			}
		})
	}
	for range 10 {
		for _, id := range bad {
			head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.Noted, Post: id})
			if got := entry(t, s, "run", head.Seq); got.Post != id {
				t.Errorf("the entry names the message %.80q, want %.80q", got.Post, id)
			}
		}
	}
	all.Wait()
	if got := posts(t, s, "run"); len(got) != 1 {
		t.Errorf("Posts = %v, want the one that nobody has drained", got)
	}
	add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.Noted, Post: bad[0]}, checkpoint.Entry{Kind: checkpoint.Noted, Post: "post"})
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("Posts = %v, want none", got)
	}
}

// Messages come in the order of the bytes of their ids, whatever a language makes of them: an
// export has them in that order, and is refused in another.
func postsAreInByteOrder(t *trial, s checkpoint.Store) {
	rested(t, s, "run")
	want := []string{"10", "9", "B", "a", "a c", "a-c", "aB", "ab", "z", "ä"}
	for i := range want { // 7 of 10 is in no order
		post(t, s, "run", checkpoint.Post{ID: want[i*7%len(want)], Kind: "turn"})
	}
	var got []string
	for _, p := range posts(t, s, "run") {
		got = append(got, p.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("Posts = %q, want %q", got, want)
	}
}

// claims is an entry that drains a message which nobody has posted.
func claims(id string) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Answered, ID: "interrupt", Post: id, Data: encode("claimed"), Claims: true}
}

// An entry claims the id of a message that nobody has posted. While one waits under it the append
// is refused, whatever the message says, and changes nothing; drained it waits no more. The lease
// comes before that, and an id that no message can have is free, as all are for the first entry of
// a run.
func claimNeedsThatNobodyHasPosted(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	same := claims("b")
	post(t, s, "run", checkpoint.Post{ID: "b", Kind: "answer", Data: same.Data})
	post(t, s, "run", checkpoint.Post{ID: "c", Kind: "turn"})
	for _, entries := range [][]checkpoint.Entry{{same}, {claims("a"), same}, {same, done(1)}, {drains("c"), claims("b")}} {
		_, err := s.Append(t.Context(), l, head, entries)
		wantErr(t, err, checkpoint.ErrConflict, "Append that claims what waits")
	}
	if got := posts(t, s, "run"); len(got) != 2 || stat(t, s, "run").Head != head {
		t.Errorf("Appends that were refused left the messages %v and the head %v, want two and %v", got, stat(t, s, "run").Head, head)
	}
	head = add(t, s, l, head, claims("a"), claims("a"), drains("c"))
	if got := entry(t, s, "run", head.Seq-1); got.Post != "a" || got.Claims {
		t.Errorf("the entry that has claimed a is %+v", got)
	}
	head = add(t, s, l, head, drains("b"))
	add(t, s, l, head, claims("b"), claims("a")) // none of them waits
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("Posts = %v, want none", got)
	}
	post(t, s, "run", checkpoint.Post{ID: "a", Kind: "answer"}) // a log that has it is no reason to refuse it
	head = stat(t, s, "run").Head
	head = add(t, s, l, head, claims(""), claims("a\n"), claims(strings.Repeat("x", 257)))
	release(t, s, l)
	_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{claims("a")})
	wantErr(t, err, checkpoint.ErrFenced, "Append that claims what waits, under a lease that was given back")
	large := claims("a")
	large.Data = t.quoted(mebibyte)
	l = owned(t, s, "run")
	_, err = s.Append(t.Context(), l, head, []checkpoint.Entry{large})
	wantErr(t, err, checkpoint.ErrConflict, "a large Append that claims what waits")
	large.Post = "b"
	head = add(t, s, l, head, large)
	if got := entry(t, s, "run", head.Seq); string(got.Data) != string(large.Data) {
		t.Errorf("the entry that claims has %d bytes, want %d", len(got.Data), len(large.Data))
	}
	add(t, s, owned(t, s, "other"), checkpoint.Head{}, checkpoint.Entry{Kind: checkpoint.Noted, Post: "a", Claims: true})
}

// Of an Append that claims an id and a Post of it that come at once, whoever has posted sees the
// entry as soon as Post has returned, or the Append is refused.
func claimBesideAPost(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for i := range 50 {
		id := fmt.Sprint("post ", i)
		var posted, appended error
		var seen, after checkpoint.Head
		t.atOnce(0,
			func() {
				if posted = s.Post(t.Context(), "run", checkpoint.Post{ID: id, Kind: "answer"}); posted == nil {
					seen = stat(t, s, "run").Head
				}
			},
			func() { after, appended = s.Append(t.Context(), l, head, []checkpoint.Entry{claims(id)}) },
		)
		switch waits := len(posts(t, s, "run")) == 1; {
		case posted != nil:
			t.Fatalf("Post beside an Append that claims its id: %v", posted)
		case appended == nil && seen != after:
			t.Fatalf("the message was posted, and then claimed: when Post had returned the head was entry %d, of the claim %d", seen.Seq, after.Seq)
		case appended == nil && !waits:
			t.Fatal("the Append came first, and the message that was posted behind it is gone")
		case appended != nil:
			wantErr(t, appended, checkpoint.ErrConflict, "Append that claims what somebody posts")
			if after = head; !waits || seen != head {
				t.Fatalf("the Append was refused; waiting: %t, entry %d", waits, seen.Seq)
			}
		}
		head = add(t, s, l, after, drains(id))
	}
}
