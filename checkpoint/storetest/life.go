package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlgo/pawl/checkpoint"
)

// Delete removes the log, the messages and the snapshots of a run. A run of the same id
// begins anew. A run that is held is ErrBusy and stays.
func deleteRemovesEverything(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	head = add(t, s, l, head, done(1))
	post(t, s, "run", checkpoint.Post{ID: "post", Kind: "cancel"})
	put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte("old state")})
	err := s.Delete(t.Context(), "run")
	wantErr(t, err, checkpoint.ErrBusy, "Delete of a run that is held")
	if len(read(t, s, "run", 1, 0)) != 2 || len(posts(t, s, "run")) != 1 {
		t.Error("Delete of a run that is held removed something")
	}
	release(t, s, l)
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, s.Delete(t.Context(), "run"), checkpoint.ErrNotFound, "Delete again")
	_, err = s.Append(t.Context(), l, head, []checkpoint.Entry{done(2)})
	wantErr(t, err, checkpoint.ErrFenced, "Append to the deleted run")
	if got := ids(t, s, checkpoint.Filter{}); len(got) != 0 {
		t.Errorf("List = %v, want none", got)
	}

	l = owned(t, s, "run")
	_, err = s.Append(t.Context(), l, head, []checkpoint.Entry{done(2)})
	wantErr(t, err, checkpoint.ErrConflict, "Append after the head of the deleted run")
	add(t, s, l, checkpoint.Head{}, opened("another graph", nil))
	if info := stat(t, s, "run"); info.Graph != "another graph" || info.Head.Seq != 1 {
		t.Errorf("the new run is %+v", info)
	}
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("the new run has the messages %v", got)
	}
	_, err = s.Snapshot(t.Context(), "run", 0)
	wantErr(t, err, checkpoint.ErrNotFound, "Snapshot of the new run")
}

// Deleting one run, however large, leaves all others as they were.
func deleteLeavesOthersAlone(t *trial, s checkpoint.Store) {
	before := rested(t, s, "before")
	l, head := begun(t, s, "run")
	for i := range 30 {
		e := done(i)
		e.Delta = t.quoted(100_000 * (i % 3))
		head = add(t, s, l, head, e)
	}
	after := rested(t, s, "after")
	release(t, s, l)
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	for run, head := range map[string]checkpoint.Head{"before": before, "after": after} {
		if info := stat(t, s, run); info.Head != head || len(read(t, s, run, 1, 0)) != 1 {
			t.Errorf("run %q is %+v", run, info)
		}
	}
	rested(t, s, "last")
	if got := ids(t, s, checkpoint.Filter{Limit: 1}); fmt.Sprint(got) != "[last after before]" {
		t.Errorf("List = %v, in the order of creation", got)
	}
}

// A graph is kept for as long as there is the store, also when the last run of it was deleted.
func graphOutlivesItsRuns(t *trial, s checkpoint.Store) {
	graphs := []string{"digest of graph", "digest of nobody's"} // rested makes runs of the first
	for _, digest := range graphs {
		if err := s.PutGraph(t.Context(), digest, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"first", "last"} {
		rested(t, s, run)
	}
	for _, run := range []string{"first", "last"} {
		erase(t, s, run)
		for _, digest := range graphs {
			if got, err := s.Graph(t.Context(), digest); err != nil || string(got) != "{}" {
				t.Errorf("when the %s run was deleted Graph(%q) = %q, %v", run, digest, got, err)
			}
		}
	}
}

// Memory given to a store is not kept, memory returned is the caller's, and memory lent may
// be ruined: none of it is the store's own.
func memoryIsNotShared(t *trial, s checkpoint.Store) {
	opening := opened("graph", map[string]string{"label": "value"})
	entry := checkpoint.Entry{
		Kind: checkpoint.Done, Delta: json.RawMessage(`{"delta":1}`),
		Outer: json.RawMessage(`{"outer":1}`), Data: json.RawMessage(`{"data":1}`),
	}
	want := entry
	want.Delta, want.Outer, want.Data = bytes.Clone(entry.Delta), bytes.Clone(entry.Outer),
		bytes.Clone(entry.Data)
	p := checkpoint.Post{ID: "post", Data: json.RawMessage(`{"post":1}`)}
	snap, graph := []byte("snapshot"), []byte(`{"graph":1}`)

	l := owned(t, s, "run")
	head := add(t, s, l, checkpoint.Head{}, opening, entry)
	post(t, s, "run", p)
	put(t, s, l, checkpoint.Snapshot{Head: head, Data: snap})
	if err := s.PutGraph(t.Context(), "digest", graph); err != nil {
		t.Fatal(err)
	}
	ruin(opening.Data, entry.Delta, entry.Outer, entry.Data, p.Data, snap, graph)

	for range 2 { // the second round finds what the first has ruined
		got := whole(t, s, "run", 2)
		same(t, got[0], opened("graph", map[string]string{"label": "value"}))
		same(t, got[1], want)
		for e, err := range s.Read(t.Context(), "run", 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			ruin(e.Delta, e.Outer, e.Data)
		}
		info := stat(t, s, "run")
		page, err := s.List(t.Context(), checkpoint.Filter{})
		if err != nil || len(page) != 1 || info.Labels["label"] != "value" || page[0].Labels["label"] != "value" {
			t.Fatalf("Stat = %v, List = %v, %v", info, page, err)
		}
		info.Labels["label"], page[0].Labels["label"] = "ruined", "ruined"
		ps := posts(t, s, "run")
		if len(ps) != 1 || string(ps[0].Data) != `{"post":1}` {
			t.Fatalf("Posts = %v", ps)
		}
		sn, err := s.Snapshot(t.Context(), "run", 0)
		if err != nil || string(sn.Data) != "snapshot" {
			t.Errorf("Snapshot = %s, %v", sn.Data, err)
		}
		g, err := s.Graph(t.Context(), "digest")
		if err != nil || string(g) != `{"graph":1}` {
			t.Errorf("Graph = %s, %v", g, err)
		}
		ruin(ps[0].Data, sn.Data, g)
	}
	add(t, s, l, head, done(1)) // the chain is what it was
	read(t, s, "run", 1, 0)
}

func ruin(all ...[]byte) {
	for _, b := range all {
		for i := range b {
			b[i] = 'X'
		}
	}
}

// With a context that has ended every method returns its error and changes nothing.
func cancelledContextChangesNothing(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := every(ctx, s, "run")
	_, errs["Append under the lease"] = s.Append(ctx, l, head, []checkpoint.Entry{done(1)})
	errs["Release of the lease"] = s.Release(ctx, l)
	errs["PutSnapshot under the lease"] = s.PutSnapshot(ctx, l, checkpoint.Snapshot{Head: head})
	_, errs["List"] = s.List(ctx, checkpoint.Filter{})
	errs["PutGraph"] = s.PutGraph(ctx, "digest", []byte("{}"))
	_, errs["Graph"] = s.Graph(ctx, "digest")
	for name, err := range errs {
		wantErr(t, err, context.Canceled, "%s", name)
	}
	if info := stat(t, s, "run"); info.Head != head || info.Owner != l.Owner {
		t.Errorf("the run is %+v", info)
	}
	if got := posts(t, s, "run"); len(got) != 0 {
		t.Errorf("Posts = %v, want none", got)
	}
	_, err := s.Graph(t.Context(), "digest")
	wantErr(t, err, checkpoint.ErrNotFound, "Graph")
	add(t, s, l, head, done(1))

	rested(t, s, "free")
	_, err = s.Acquire(ctx, "free", "nobody")
	wantErr(t, err, context.Canceled, "Acquire of a run that nobody holds")
	wantErr(t, s.Delete(ctx, "free"), context.Canceled, "Delete of a run that nobody holds")
	if info := stat(t, s, "free"); info.Owner != "" {
		t.Errorf("an Acquire that was cancelled has left the run to %q", info.Owner)
	}
	owned(t, s, "free")
	cancelledMakesNoRun(ctx, t, s)
}

// cancelledMakesNoRun checks that no run comes to be, or is handed out, with a context that has
// ended.
func cancelledMakesNoRun(ctx context.Context, t *trial, s checkpoint.Store) {
	t.Helper()
	if err := s.Fork(ctx, forkOf(small(1), "fork")); !errors.Is(err, checkpoint.ErrUnsupported) {
		wantErr(t, err, context.Canceled, "Fork")
	}
	if a, ok := s.(checkpoint.Archiver); ok {
		envelopes, _ := archived(t)
		_, err := a.Restore(ctx, owned(t, s, "restored"), archive(lent(envelopes)))
		wantErr(t, err, context.Canceled, "Restore")
		err = nil
		for _, err = range a.Envelopes(ctx, "run") {
			break
		}
		wantErr(t, err, context.Canceled, "Envelopes")
	}
	for _, run := range []string{"fork", "restored"} {
		_, err := s.Stat(t.Context(), run)
		wantErr(t, err, checkpoint.ErrNotFound, "Stat(%q)", run)
	}
}

// A store that was closed refuses everything, and can be closed again.
func closedStoreRefuses(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	closed(t, s)
	closed(t, s)
	errs := every(t.Context(), s, "run")
	_, errs["Append under the lease"] = s.Append(t.Context(), l, head, []checkpoint.Entry{done(1)})
	if a, ok := s.(checkpoint.Archiver); ok {
		envelopes, _ := archived(t)
		_, errs["Restore"] = a.Restore(t.Context(), l, archive(lent(envelopes)))
		for _, err := range a.Envelopes(t.Context(), "run") {
			errs["Envelopes"] = err
		}
	}
	if err := s.Fork(t.Context(), forkOf(small(1), "fork")); !errors.Is(err, checkpoint.ErrUnsupported) {
		errs["Fork"] = err
	}
	_, errs["List"] = s.List(t.Context(), checkpoint.Filter{})
	errs["PutGraph"] = s.PutGraph(t.Context(), "digest", []byte("{}"))
	_, errs["Graph"] = s.Graph(t.Context(), "digest")
	for name, err := range errs {
		if !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%s = %v, want ErrClosed", name, err)
		}
	}
}
