package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
)

// Messages of a run are apart whatever their ids, and say what they said: their kinds too, which
// need not be those of this library.
func messageIDsThatAreHard(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	ids := append(slices.Clone(hardIDs), strings.Repeat("x", 254)+"y", strings.Repeat("x", 255)+"y", strings.Repeat("x", 64))
	kind := func(i int) string { return fmt.Sprintf(" Kind\u00fc%d ", i) }
	for i, id := range ids {
		post(t, s, "run", checkpoint.Post{ID: id, Kind: kind(i)})
	}
	check := func(from int) {
		t.Helper()
		got := posts(t, s, "run")
		if len(got) != len(ids)-from {
			t.Errorf("there are %d messages, want %d", len(got), len(ids)-from)
		}
		for _, p := range got {
			if i := slices.Index(ids, p.ID); i < from || p.Kind != kind(i) {
				t.Errorf("there is a message %.80q of the kind %q", p.ID, p.Kind)
			}
		}
	}
	check(0)
	for i, id := range ids {
		err := s.Post(t.Context(), "run", checkpoint.Post{ID: id, Kind: strings.ToLower(kind(i))})
		wantErr(t, err, checkpoint.ErrConflict, "Post(%.80q) of another kind", id)
	}
	for i, id := range ids {
		head = add(t, s, l, head, drains(id))
		check(i + 1)
	}
}

// However many messages a run has, Posts returns all of them, and one append may drain them.
func manyMessages(t *trial, s checkpoint.Store) {
	const writers, each = 10, 30
	l, head := begun(t, s, "run")
	t.together(writers, func(w int) {
		for n := range each {
			if err := s.Post(t.Context(), "run", checkpoint.Post{ID: fmt.Sprintf("%d of %d", n, w), Kind: "turn"}); err != nil {
				t.Errorf("Post = %v", err)
				return
			}
		}
	})
	got := posts(t, s, "run")
	if len(got) != writers*each {
		t.Fatalf("Posts = %d messages, want %d", len(got), writers*each)
	}
	var entries []checkpoint.Entry
	for i, p := range got {
		if i > 0 && p.ID <= got[i-1].ID {
			t.Fatalf("Posts = %q behind %q", p.ID, got[i-1].ID)
		}
		entries = append(entries, drains(p.ID))
	}
	last := got[len(got)-1].ID
	head = add(t, s, l, head, entries[:len(entries)-1]...)
	if got := posts(t, s, "run"); len(got) != 1 || got[0].ID != last {
		t.Errorf("with all drained but the last Posts = %d messages", len(got))
	}
	add(t, s, l, head, drains(last))
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("with all drained Posts = %d messages", len(got))
	}
}

// A message that is posted beside an append which drains others is there when Post has returned,
// and when the append has.
func postBesideADrain(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	for round := range 30 {
		old, fresh := fmt.Sprint("old ", round), fmt.Sprint("new ", round)
		post(t, s, "run", checkpoint.Post{ID: old, Kind: "turn"})
		var posted, appended error
		after := head
		t.atOnce(round,
			func() { posted = s.Post(t.Context(), "run", checkpoint.Post{ID: fresh, Kind: "turn"}) },
			func() { after, appended = s.Append(t.Context(), l, head, []checkpoint.Entry{drains(old)}) },
		)
		if posted != nil || appended != nil {
			t.Fatalf("Post = %v, beside an Append that drains another message: %v", posted, appended)
		}
		if got := posts(t, s, "run"); len(got) != 1 || got[0].ID != fresh {
			t.Fatalf("Posts = %v, want the message that nobody has drained: it was posted beside an append that has drained another", got)
		}
		head = add(t, s, l, after, drains(fresh))
	}
}

// A watcher that looks at the messages whenever it is told sees every one, also if it is told while
// others are posted.
func watchersMissNoMessage(t *trial, s checkpoint.Store) {
	w, ok := s.(checkpoint.Watcher)
	if !ok {
		t.Skip("the store is no Watcher")
	}
	const messages = 50
	rested(t, s, "run")
	posted, stop := w.Watch("run")
	defer stop()
	var failed error
	var writer sync.WaitGroup
	t.beside(&writer, func() {
		for i := 0; i < messages && failed == nil; i++ {
			failed = s.Post(t.Context(), "run", checkpoint.Post{ID: fmt.Sprint(i), Kind: "turn"})
		}
	})
	defer writer.Wait()
	for len(posts(t, s, "run")) < messages {
		wakes(t, posted, "a message while others are posted")
	}
	if writer.Wait(); failed != nil {
		t.Errorf("Post = %v", failed)
	}
}
