package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// owned returns the lease of a run that nobody holds.
func owned(t *trial, s checkpoint.Store, run string) checkpoint.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), run, "owner of "+run)
	if err != nil {
		t.Fatalf("Acquire(%q) = %v", run, err)
	}
	return l
}

func release(t *trial, s checkpoint.Store, l checkpoint.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), l); err != nil {
		t.Fatalf("Release(%q) = %v", l.Run, err)
	}
}

// add appends entries and returns the new head, which must count them.
func add(
	t *trial, s checkpoint.Store, l checkpoint.Lease, after checkpoint.Head,
	entries ...checkpoint.Entry,
) checkpoint.Head {
	t.Helper()
	head, err := s.Append(t.Context(), l, after, entries)
	if err != nil {
		t.Fatalf("Append(%q, %d) = %v", l.Run, after.Seq, err)
	}
	if want := after.Seq + uint64(len(entries)); head.Seq != want {
		t.Fatalf("Append(%q, %d) = head at %d, want %d", l.Run, after.Seq, head.Seq, want)
	}
	return head
}

// begun makes a run with one entry, and returns its lease, which is held, and its head.
func begun(
	t *trial, s checkpoint.Store, run string,
) (checkpoint.Lease, checkpoint.Head) {
	t.Helper()
	l := owned(t, s, run)
	return l, add(t, s, l, checkpoint.Head{}, opened("graph", nil))
}

// rested makes a run with one entry that nobody holds.
func rested(t *trial, s checkpoint.Store, run string) checkpoint.Head {
	t.Helper()
	l, head := begun(t, s, run)
	release(t, s, l)
	return head
}

func opened(graph string, labels map[string]string) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Opened, Data: encode(checkpoint.Opening{
		Graph: graph, Digest: "digest of " + graph, Labels: labels,
		Correlation: "what belongs to " + graph,
	})}
}

func done(n int) checkpoint.Entry {
	return checkpoint.Entry{
		Kind: checkpoint.Done, Path: fmt.Sprintf("node-%d", n), Step: n + 1,
		Delta: encode(map[string]int{"n": n}),
	}
}

// read returns the entries of a range, copied.
func read(t *trial, s checkpoint.Store, run string, from, to uint64) []checkpoint.Entry {
	t.Helper()
	entries, err := collect(s.Read(t.Context(), run, from, to))
	if err != nil {
		t.Fatalf("Read(%q, %d, %d): %v", run, from, to, err)
	}
	return entries
}

// entry returns an entry of a run, copied.
func entry(t *trial, s checkpoint.Store, run string, seq uint64) checkpoint.Entry {
	t.Helper()
	got := read(t, s, run, seq, seq)
	if len(got) != 1 {
		t.Fatalf("Read(%q, %d, %d) yields %d entries, want 1", run, seq, seq, len(got))
	}
	return got[0]
}

// whole returns the entries of a run from the first that is kept, of which there are n, copied.
func whole(t *trial, s checkpoint.Store, run string, n int) []checkpoint.Entry {
	t.Helper()
	got := read(t, s, run, 0, 0)
	if len(got) != n {
		t.Fatalf("Read(%q, 0, 0) yields %d entries, want %d", run, len(got), n)
	}
	return got
}

func collect(
	entries iter.Seq2[checkpoint.Entry, error],
) (read []checkpoint.Entry, err error) {
	for e, err := range entries {
		if err != nil {
			return read, err
		}
		e.Delta, e.Outer, e.Data = slices.Clone(e.Delta), slices.Clone(e.Outer), slices.Clone(e.Data)
		read = append(read, e)
	}
	return read, nil
}

func stat(t *trial, s checkpoint.Store, run string) checkpoint.Info {
	t.Helper()
	info, err := s.Stat(t.Context(), run)
	if err != nil {
		t.Fatalf("Stat(%q) = %v", run, err)
	}
	return info
}

// wantErr checks that err is one of the errors, and says what was done.
func wantErr(t *trial, err, want error, format string, args ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", fmt.Sprintf(format, args...), err, want)
	}
}

// same checks that two entries say the same, but for Seq and At.
func same(t *trial, got, want checkpoint.Entry) {
	t.Helper()
	if got.Kind != want.Kind || got.Path != want.Path || got.Step != want.Step ||
		got.Attempt != want.Attempt || got.Outcome != want.Outcome || got.ID != want.ID ||
		got.Post != want.Post || string(got.Delta) != string(want.Delta) ||
		string(got.Outer) != string(want.Outer) || string(got.Data) != string(want.Data) {
		t.Errorf("entry %d = %+v, want %+v", got.Seq, got, want)
	}
}

// unless skips the test if the store can't do what err is of.
func (t *trial) unless(err error, does string) {
	t.Helper()
	if errors.Is(err, checkpoint.ErrUnsupported) {
		t.Skipf("the store does not %s", does)
	}
}

// every calls each method that names a run with it, and passes on the errors by name.
func every(ctx context.Context, s checkpoint.Store, run string) map[string]error {
	l := checkpoint.Lease{Run: run, Epoch: 1, Owner: "nobody"}
	errs := make(map[string]error)
	_, errs["Acquire"] = s.Acquire(ctx, run, "somebody")
	_, errs["Renew"] = s.Renew(ctx, l)
	errs["Release"] = s.Release(ctx, l)
	_, errs["Append"] = s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{done(1)})
	_, errs["Read"] = collect(s.Read(ctx, run, 1, 0))
	_, errs["Stat"] = s.Stat(ctx, run)
	errs["Post"] = s.Post(ctx, run, checkpoint.Post{ID: "post", Kind: "cancel"})
	_, errs["Posts"] = s.Posts(ctx, run)
	errs["PutSnapshot"] = s.PutSnapshot(ctx, l, checkpoint.Snapshot{})
	_, errs["Snapshot"] = s.Snapshot(ctx, run, 0)
	_, errs["Base"] = s.Base(ctx, run, "digest")
	_, errs["Trim"] = s.Trim(ctx, l, checkpoint.Head{}, trimming(2, small(1)), small(1))
	errs["Delete"] = s.Delete(ctx, run)
	maps.DeleteFunc(errs, func(_ string, err error) bool { return errors.Is(err, checkpoint.ErrUnsupported) })
	return errs
}

// closed closes s, or skips the test if it can't be closed.
func closed(t *trial, s checkpoint.Store) {
	t.Helper()
	c, ok := s.(io.Closer)
	if !ok {
		t.Skip("the store has no Close")
	}
	if err := c.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
}
