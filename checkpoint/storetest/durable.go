package storetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// What was acknowledged is there when the store is opened again, and the run goes on.
func everythingIsThereAgain(t *trial, s checkpoint.Store) {
	labels := map[string]string{"label": "value"}
	l := owned(t, s, "run")
	head := add(t, s, l, checkpoint.Head{}, opened("graph", labels), done(0))
	put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte(t.noise(mebibyte))})
	snapped := head
	big := done(1)
	big.Delta = t.quoted(mebibyte)
	head = add(t, s, l, head, big)
	head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.Waiting})
	head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.TurnBegun}, checkpoint.Entry{Kind: checkpoint.Waiting})
	head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.Noted})
	post(t, s, "run", checkpoint.Post{ID: "post", Kind: "answer"})
	if err := s.PutGraph(t.Context(), "digest", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	release(t, s, l) // or it may last longer than the store is open
	before := stat(t, s, "run")
	for round := range 3 {
		s = t.reopen(s)
		info := stat(t, s, "run")
		if info.Head != head || info.Owner != "" || info.Status != before.Status ||
			info.Graph != "graph" || !maps.Equal(info.Labels, labels) || info.Correlation != before.Correlation || info.Turn != before.Turn ||
			!info.Created.Equal(before.Created) || !info.Updated.Equal(before.Updated) {
			t.Fatalf("round %d: Stat = %+v, want %+v", round, info, before)
		}
		got := read(t, s, "run", 1, 0)
		if len(got) != int(head.Seq) {
			t.Fatalf("round %d: read %d entries, want %d", round, len(got), head.Seq)
		}
		same(t, got[2], big)
		if p := posts(t, s, "run"); len(p) != 1 || p[0].Kind != "answer" {
			t.Errorf("round %d: Posts = %v", round, p)
		}
		snap, err := s.Snapshot(t.Context(), "run", 0)
		if err != nil || snap.Head != snapped || string(snap.Data) != t.noise(mebibyte) {
			t.Errorf("round %d: Snapshot = %d bytes, %v", round, len(snap.Data), err)
		}
		if g, err := s.Graph(t.Context(), "digest"); err != nil || string(g) != "{}" {
			t.Errorf("round %d: Graph = %s, %v", round, g, err)
		}
		l := owned(t, s, "run")
		head = add(t, s, l, head, checkpoint.Entry{Kind: checkpoint.Noted})
		release(t, s, l)
	}
}

// The graph that a run goes on with is there again too, whether or not its status changed.
func theGraphOfNowIsThereAgain(t *trial, s checkpoint.Store) {
	l := owned(t, s, "run")
	head := add(t, s, l, checkpoint.Head{}, opened("graph", nil), done(0))
	head = add(t, s, l, head, migrated("second"), checkpoint.Entry{Kind: checkpoint.Resumed})
	add(t, s, l, head, migrated("third"), checkpoint.Entry{Kind: checkpoint.Resumed}, migrated("fourth"), done(1))
	s = t.reopen(s)
	if info := stat(t, s, "run"); info.Graph != "fourth" || info.Digest != "digest of fourth" {
		t.Errorf("Stat = %+v, want the fourth graph", info)
	}
}

// No lease outlives a store that has no leases with an end; epochs rise over reopening as
// far as anything was appended under them.
func leasesEndWithTheStore(t *trial, s checkpoint.Store) {
	old, head := begun(t, s, "run")
	if !old.Until.IsZero() {
		t.Skip("leases of this store end by themselves")
	}
	for range 3 {
		s = t.reopen(s)
		if info := stat(t, s, "run"); info.Owner != "" || info.Epoch != old.Epoch {
			t.Errorf("Stat tells epoch %d of %q, want %d of nobody", info.Epoch, info.Owner, old.Epoch)
		}
		_, err := s.Append(t.Context(), old, head, []checkpoint.Entry{done(1)})
		wantErr(t, err, checkpoint.ErrFenced, "Append under a lease from before")
		l := owned(t, s, "run")
		if l.Epoch <= old.Epoch {
			t.Fatalf("epoch %d after epoch %d", l.Epoch, old.Epoch)
		}
		_, err = s.Append(t.Context(), old, head, []checkpoint.Entry{done(1)})
		wantErr(t, err, checkpoint.ErrFenced, "Append under a lease from before")
		head = add(t, s, l, head, done(1))
		old = l
	}
}

// A run that was deleted does not come back, nor does anything of it in a new one.
func deletedStaysDeleted(t *trial, s checkpoint.Store) {
	deletedStays(t, s, t.reopen)
}

func deletedStays(t *trial, s checkpoint.Store, again func(checkpoint.Store) checkpoint.Store) {
	rested(t, s, "first")
	l, head := begun(t, s, "run")
	head = add(t, s, l, head, done(1))
	post(t, s, "run", checkpoint.Post{ID: "post"})
	put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte(t.noise(mebibyte))})
	release(t, s, l)
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	s = again(s)
	_, err := s.Stat(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrNotFound, "Stat")
	if got := ids(t, s, checkpoint.Filter{}); fmt.Sprint(got) != "[first]" {
		t.Errorf("List = %v", got)
	}
	rested(t, s, "run")
	s = again(s)
	if got := read(t, s, "run", 1, 0); len(got) != 1 {
		t.Errorf("the new run has %d entries", len(got))
	}
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("the new run has the messages %v", got)
	}
	l = owned(t, s, "run")
	add(t, s, l, stat(t, s, "run").Head, done(1), done(2)) // it is as long as the first
	_, err = s.Snapshot(t.Context(), "run", 0)
	wantErr(t, err, checkpoint.ErrNotFound, "Snapshot of the new run")
}

// The order of a listing is that of creation, over reopening.
func orderSurvives(t *trial, s checkpoint.Store) {
	var want []string
	for round := range 3 {
		for i := range 5 {
			run := fmt.Sprintf("%d of %d", 9-i, round)
			rested(t, s, run)
			want = append(want, run)
		}
		// The last one is deleted: its place is not given again.
		if err := s.Delete(t.Context(), want[len(want)-1]); err != nil {
			t.Fatal(err)
		}
		want = want[:len(want)-1]
		s = t.reopen(s)
	}
	slices.Reverse(want)
	if got := ids(t, s, checkpoint.Filter{Limit: 4}); !slices.Equal(got, want) {
		t.Errorf("List = %v, want %v", got, want)
	}
}
