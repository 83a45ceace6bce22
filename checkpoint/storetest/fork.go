package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// forkOf is a Fork of a base into runs, each with an entry that tells it from the others.
func forkOf(base []byte, runs ...string) checkpoint.Fork {
	f := checkpoint.Fork{Base: base}
	for i, run := range runs {
		f.Runs = append(f.Runs, checkpoint.ForkedRun{
			Run: run, Entries: []checkpoint.Entry{forkOpened(base), done(i)},
		})
	}
	return f
}

func forkOpened(base []byte) checkpoint.Entry {
	return checkpoint.Entry{Kind: checkpoint.Opened, Data: encode(checkpoint.Opening{
		Graph: "graph", Digest: "digest of graph", Labels: map[string]string{"label": "value"},
		Correlation: "what belongs together",
		Origin:      originOf(base),
	})}
}

func originOf(base []byte) *checkpoint.Origin {
	return &checkpoint.Origin{
		Run: "parent", Seq: 3, Base: checkpoint.BaseDigest(base), Turn: 2, Author: "Ada", Reason: "what if",
	}
}

// fork makes forks, or skips the test if the store can't.
func fork(t *trial, s checkpoint.Store, base []byte, runs ...string) {
	t.Helper()
	made(t, s, forkOf(base, runs...))
}

func made(t *trial, s checkpoint.Store, f checkpoint.Fork) {
	t.Helper()
	err := s.Fork(t.Context(), f)
	if t.unless(err, "fork"); err != nil {
		t.Fatalf("Fork of %d runs, of which one is %q, = %v", len(f.Runs), f.Runs[0].Run, err)
	}
}

// wantBase checks that the run refers to a base and that the store has it.
func wantBase(t *trial, s checkpoint.Store, run string, base []byte) {
	t.Helper()
	got, err := s.Base(t.Context(), run, checkpoint.BaseDigest(base))
	if err != nil || !bytes.Equal(got, base) {
		t.Errorf("Base of %q = %d bytes, %v, want %d bytes", run, len(got), err, len(base))
	}
}

// noBase checks that the run does not have a base of that digest.
func noBase(t *trial, s checkpoint.Store, run string, base []byte) {
	t.Helper()
	_, err := s.Base(t.Context(), run, checkpoint.BaseDigest(base))
	wantErr(t, err, checkpoint.ErrNotFound, "Base of %q", run)
}

// wantVerified checks that nothing is wrong with the runs of the store.
func wantVerified(t *trial, s checkpoint.Store) {
	t.Helper()
	for _, run := range ids(t, s, checkpoint.Filter{Limit: 1 << 20}) {
		for f, err := range checkpoint.Verify(t.Context(), s, run) {
			t.Errorf("Verify(%q) finds %v, %v", run, f, err)
		}
	}
}

func erase(t *trial, s checkpoint.Store, run string) {
	t.Helper()
	if err := s.Delete(t.Context(), run); err != nil {
		t.Fatalf("Delete(%q) = %v", run, err)
	}
}

// large is a base that no store keeps in one piece; small differs from it.
func (t *trial) large(n int) []byte {
	return fmt.Appendf(nil, "{\"n\":%d,\"text\":%s}", n, t.quoted(mebibyte))
}

func small(n int) []byte { return []byte(fmt.Sprintf("{\"n\":%d}", n)) }

// A fork is a run like any other, which goes on with entries of its own; nobody has its lease,
// and what is known of it says where it comes from.
func forkIsARun(t *trial, s checkpoint.Store) {
	rested(t, s, "parent")
	base := t.large(1)
	var before checkpoint.Lease // of a run that was not there
	for range 3 {
		before = owned(t, s, "a")
		release(t, s, before)
	}
	fork(t, s, base, "a", "b")
	if _, err := s.Append(t.Context(), before, stat(t, s, "a").Head, []checkpoint.Entry{done(1)}); !errors.Is(err, checkpoint.ErrFenced) {
		t.Errorf("Append under a lease from before the Fork = %v, want ErrFenced", err)
	}
	if got := ids(t, s, checkpoint.Filter{Labels: map[string]string{"label": "value"}}); fmt.Sprint(got) != "[b a]" {
		t.Errorf("List = %v", got)
	}
	for i, run := range []string{"a", "b"} {
		info := stat(t, s, run)
		if info.Head.Seq != 2 || info.First != 1 || info.Owner != "" || info.Status != checkpoint.StatusRunning ||
			info.Base != checkpoint.BaseDigest(base) || info.Origin == nil || *info.Origin != *originOf(base) ||
			info.Correlation != "what belongs together" || info.Turn != 2 || info.Created.IsZero() {
			t.Fatalf("Stat(%q) = %+v", run, info)
		}
		info.Origin.Run = "ruined"
		got := whole(t, s, run, 2)
		same(t, got[0], forkOpened(base))
		same(t, got[1], done(i))
		ruined, err := s.Base(t.Context(), run, info.Base)
		if err != nil {
			t.Fatal(err)
		}
		ruin(ruined)
		wantBase(t, s, run, base)
		l := owned(t, s, run)
		if run == before.Run && l.Epoch <= before.Epoch {
			t.Errorf("epoch %d after the Fork, and %d before", l.Epoch, before.Epoch)
		}
		head := add(t, s, l, info.Head, done(7))
		put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte("state")})
		release(t, s, l)
	}
	if got := stat(t, s, "a").Origin; got == nil || got.Run != "parent" {
		t.Errorf("the origin is %+v", got)
	}
	noBase(t, s, "parent", base)
	noBase(t, s, "a", small(1))
	_, err := s.Base(t.Context(), "no run", checkpoint.BaseDigest(base))
	wantErr(t, err, checkpoint.ErrNotFound, "Base of no run")
	ruin(base)
	wantVerified(t, s)
}

// A Fork that is refused makes no run, and leaves those that are there as they were.
func forkIsAllOrNothing(t *trial, s checkpoint.Store) {
	rested(t, s, "there")
	held := owned(t, s, "held")
	base := small(1)
	fork(t, s, base, "fork")
	origin := func(e ...checkpoint.Entry) checkpoint.Fork {
		return checkpoint.Fork{Base: base, Runs: append(forkOf(base, "new").Runs, checkpoint.ForkedRun{Run: "other", Entries: e})}
	}
	unknown := done(1)
	unknown.Kind = 200
	var bad *checkpoint.ArgumentError
	for name, c := range map[string]struct {
		fork checkpoint.Fork
		want error
	}{
		"a run that exists":           {forkOf(base, "new", "there"), checkpoint.ErrExists},
		"a fork that exists":          {forkOf(base, "new", "fork"), checkpoint.ErrExists},
		"a run that is held":          {forkOf(base, "new", "held"), checkpoint.ErrBusy},
		"a bad id":                    {forkOf(base, "new", ""), checkpoint.ErrRunID},
		"one id twice":                {forkOf(base, "new", "new"), nil},
		"no runs":                     {forkOf(base), nil},
		"no base":                     {forkOf(nil, "new"), nil},
		"no entries":                  {origin(), nil},
		"entries without an opening":  {origin(done(1)), nil},
		"an opening without origin":   {origin(opened("graph", nil)), nil},
		"an opening of another base":  {origin(forkOpened(small(2))), nil},
		"two openings":                {origin(forkOpened(base), forkOpened(base)), nil},
		"an entry of an unknown kind": {origin(forkOpened(base), unknown), nil},
		"bad data":                    {origin(forkOpened(base), checkpoint.Entry{Kind: checkpoint.Noted, Data: json.RawMessage(`{"a":`)}), nil},
		"a migration that is none":    {origin(forkOpened(base), checkpoint.Entry{Kind: checkpoint.Migrated, Data: json.RawMessage(`[]`)}), nil},
		"both, before a run that exists": {checkpoint.Fork{Base: base, Runs: append(
			origin(forkOpened(base), unknown).Runs, forkOf(base, "there").Runs...)}, checkpoint.ErrExists},
	} {
		err := s.Fork(t.Context(), c.fork)
		switch {
		case c.want == nil && !errors.As(err, &bad):
			t.Errorf("Fork with %s = %v", name, err)
		case c.want != nil:
			wantErr(t, err, c.want, "Fork with %s", name)
		}
		if got := ids(t, s, checkpoint.Filter{}); fmt.Sprint(got) != "[fork there]" {
			t.Fatalf("after a Fork with %s List = %v", name, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, s.Fork(ctx, forkOf(t.large(1), "new")), context.Canceled, "Fork that is cancelled")
	_, err := s.Append(t.Context(), held, checkpoint.Head{}, []checkpoint.Entry{forkOpened(base)})
	if !errors.As(err, &bad) {
		t.Errorf("Append of the opening of a fork = %v", err)
	}
	fork(t, s, base, "new", "other")
	wantVerified(t, s)
}

// A Fork makes as many runs as it is told to.
func forkOfManyRuns(t *trial, s checkpoint.Store) {
	var runs []string
	for i := range 150 {
		runs = append(runs, fmt.Sprintf("fork %d", i))
	}
	fork(t, s, small(1), runs...)
	if got := ids(t, s, checkpoint.Filter{Limit: 1000}); len(got) != len(runs) {
		t.Errorf("a Fork into %d runs has made %d", len(runs), len(got))
	}
	for i, run := range runs {
		same(t, entry(t, s, run, 2), done(i))
		wantBase(t, s, run, small(1))
	}
}

// The base is there as long as one run refers to it, in whatever order the parent and its forks are
// deleted, and whether they came of one Fork or of several; Verify finds nothing after each.
func baseLivesWithItsRuns(t *trial, s checkpoint.Store) {
	fork(t, s, small(99), "bystander")
	for n, order := range orders("parent", "a", "b", "c") {
		base := small(n)
		if n%8 == 0 {
			base = t.large(n)
		}
		rested(t, s, "parent")
		fork(t, s, base, "a", "b")
		fork(t, s, base, "c")
		for i, run := range order {
			erase(t, s, run)
			for _, left := range order[i+1:] {
				if left != "parent" {
					wantBase(t, s, left, base)
				}
			}
			_, err := s.Base(t.Context(), run, checkpoint.BaseDigest(base))
			wantErr(t, err, checkpoint.ErrNotFound, "Base of %q, deleted in the order %v", run, order)
			wantVerified(t, s)
		}
		wantBase(t, s, "bystander", small(99))
	}
}

// orders returns every order of the runs.
func orders(runs ...string) (all [][]string) {
	if len(runs) < 2 {
		return [][]string{runs}
	}
	for i := range runs {
		rest := slices.Delete(slices.Clone(runs), i, i+1)
		for _, order := range orders(rest...) {
			all = append(all, append([]string{runs[i]}, order...))
		}
	}
	return all
}

// Forks of one base and deletions at once: each run has the base as long as it is there.
func forksAtOnce(t *trial, s checkpoint.Store) {
	fork(t, s, small(0), "first")
	t.together(4, func(w int) {
		for round := range 6 {
			base := small(round / 3)
			if round%3 == 2 {
				base = t.large(1)
			}
			run := fmt.Sprintf("run %d of %d", round, w)
			if err := s.Fork(t.Context(), forkOf(base, run)); err != nil {
				t.Errorf("Fork(%q) = %v", run, err)
				return
			}
			wantBase(t, s, run, base)
			if round%4 != 0 {
				if err := s.Delete(t.Context(), run); err != nil {
					t.Errorf("Delete(%q) = %v", run, err)
				}
			}
		}
	})
	wantVerified(t, s)
}

// Forks, their bases, and what was trimmed, with its pins, are there again; what was deleted is
// not.
func forksAreThereAgain(t *trial, s checkpoint.Store) {
	bases := [][]byte{small(1), t.large(1)}
	for i, base := range bases {
		fork(t, s, base, fmt.Sprintf("kept %d", i), fmt.Sprintf("deleted %d", i))
		fork(t, s, append(slices.Clone(base), ' '), fmt.Sprintf("alone %d", i))
		erase(t, s, fmt.Sprintf("deleted %d", i))
		erase(t, s, fmt.Sprintf("alone %d", i))
	}
	long(t, s, "trimmed")
	trim(t, s, "trimmed", 8, t.large(8), 3, 5)
	before := stat(t, s, "trimmed")
	for range 2 {
		s = t.reopen(s)
		if info := stat(t, s, "trimmed"); len(info.Pins) != 2 || !slices.Equal(info.Pins, before.Pins) {
			t.Errorf("the pins of what was trimmed are %v, want %v", info.Pins, before.Pins)
		}
		wantBase(t, s, "trimmed", small(3))
		wantBase(t, s, "trimmed", small(5))
		for i, base := range bases {
			run := fmt.Sprintf("kept %d", i)
			wantBase(t, s, run, base)
			if info := stat(t, s, run); info.Origin == nil || *info.Origin != *originOf(base) ||
				info.First != 1 || info.Turn != 2 || info.Head.Seq != 2 || len(info.Pins) != 0 {
				t.Errorf("Stat(%q) = %+v", run, info)
			}
		}
		wantBase(t, s, "trimmed", t.large(8))
		if info := stat(t, s, "trimmed"); info.First != 8 || info.Base != before.Base || info.Head.Seq < before.Head.Seq ||
			!info.Created.Equal(before.Created) || info.Graph != before.Graph {
			t.Errorf("Stat of what was trimmed = %+v, want %+v", info, before)
		}
		_, err := collect(s.Read(t.Context(), "trimmed", 7, 0))
		wantErr(t, err, checkpoint.ErrTrimmed, "Read of what was trimmed")
		if got := ids(t, s, checkpoint.Filter{}); fmt.Sprint(got) != "[trimmed kept 1 kept 0]" {
			t.Errorf("List = %v", got)
		}
		wantVerified(t, s)
		l := owned(t, s, "trimmed")
		add(t, s, l, stat(t, s, "trimmed").Head, done(1))
		release(t, s, l)
	}
	for i := range bases {
		erase(t, s, fmt.Sprintf("kept %d", i))
	}
}
