package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// hardIDs are ids that a careless store mixes up, misreads or lets out of its directory.
var hardIDs = []string{
	"a", "A", "ä", "a\u0308", "a/b", "a//b", "a/", "/a", "..", "../a", ".", "a.b", "a\\b",
	" ", " a", "a ", "a b", "a\u00a0b", "a\u200bb", "\u202ea", "a@1", "a@1 b,c", "a,b", "a=b",
	"'a'", "\"a\"", "`a`", "'; DROP TABLE runs; --", "%00", "a%2Fb", "*", "a*", "?", "[a]", "{a}",
	"$a", "#a", "~", "-", "--a", "0", "00", "1e9", "-1", "null", "true", "l", "r", "i", "mstore",
	"!badger!", "run", "日本語", "🪓", "🪓🪓", "<a href=x>", "&amp;", "a:b", "C:\\a", "nul",
	"0198c0de-0000-7000-8000-000000000000", strings.Repeat("x", 255), strings.Repeat("x", 256),
	strings.Repeat("日", 85), "\U0010ffff", "\ufffd", "a\u2028b",
}

// Runs are isolated whatever their ids: nothing of one is seen through another.
func runIDsThatAreHard(t *trial, s checkpoint.Store) {
	for i, run := range hardIDs {
		l := owned(t, s, run)
		head := add(t, s, l, checkpoint.Head{}, opened("graph", map[string]string{"i": fmt.Sprint(i)}))
		head = add(t, s, l, head, done(i))
		post(t, s, run, checkpoint.Post{ID: run, Kind: fmt.Sprint(i)})
		put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte(run)})
		release(t, s, l)
	}
	want := slices.Clone(hardIDs)
	slices.Reverse(want)
	for limit := 1; limit <= 100; limit += 33 {
		if got := ids(t, s, checkpoint.Filter{Limit: limit}); !slices.Equal(got, want) {
			t.Fatalf("List = %q, want %q", got, want)
		}
	}
	check := func(i int, run string) {
		info := stat(t, s, run)
		if info.Run != run || info.Labels["i"] != fmt.Sprint(i) || info.Head.Seq != 2 {
			t.Errorf("Stat(%q) = %+v", run, info)
		}
		got := read(t, s, run, 1, 0)
		if len(got) != 2 {
			t.Fatalf("run %q has %d entries", run, len(got))
		}
		same(t, got[1], done(i))
		if p := posts(t, s, run); len(p) != 1 || p[0].ID != run || p[0].Kind != fmt.Sprint(i) {
			t.Errorf("Posts(%q) = %v", run, p)
		}
		snap, err := s.Snapshot(t.Context(), run, 0)
		if err != nil || string(snap.Data) != run {
			t.Errorf("Snapshot(%q) = %q, %v", run, snap.Data, err)
		}
	}
	for i, run := range hardIDs {
		check(i, run)
	}
	for i, run := range hardIDs {
		if i%2 == 0 {
			if err := s.Delete(t.Context(), run); err != nil {
				t.Errorf("Delete(%q) = %v", run, err)
			}
		}
	}
	for i, run := range hardIDs {
		if i%2 == 1 {
			check(i, run)
			continue
		}
		_, err := s.Stat(t.Context(), run)
		wantErr(t, err, checkpoint.ErrNotFound, "Stat of the deleted %q", run)
	}
}

// An id that can't name a run is ErrRunID for every method, and the error is safe to print.
func runIDsThatAreRefused(t *trial, s checkpoint.Store) {
	for _, run := range []string{
		"", strings.Repeat("x", 257), "a\x00", "\n", "a\tb", "\x1b[31m", "\x7f", "\u0085", "\xff", "a\xc3",
	} {
		for name, err := range every(t.Context(), s, run) {
			wantErr(t, err, checkpoint.ErrRunID, "%s(%.20q)", name, run)
			if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Errorf("the error of %s(%.20q) has control characters: %q", name, run, err)
			}
		}
		if run != "" { // which is the beginning of a listing
			_, err := s.List(t.Context(), checkpoint.Filter{After: run})
			wantErr(t, err, checkpoint.ErrRunID, "List after %.20q", run)
		}
	}
}

// What is asked of a run that is not there is ErrNotFound, and what needs its lease
// ErrFenced. Nothing comes into being by asking.
func nothingIsFoundOfNoRun(t *trial, s checkpoint.Store) {
	rested(t, s, "another run")
	for name, err := range every(t.Context(), s, "run") {
		switch name {
		case "Acquire", "Release":
			if err != nil {
				t.Errorf("%s = %v", name, err)
			}
		case "Renew", "Append", "PutSnapshot", "Trim":
			wantErr(t, err, checkpoint.ErrFenced, "%s", name)
		default:
			wantErr(t, err, checkpoint.ErrNotFound, "%s", name)
		}
	}
	if got := ids(t, s, checkpoint.Filter{}); !slices.Equal(got, []string{"another run"}) {
		t.Errorf("List = %v", got)
	}
}

// Runs whose ids begin alike, or make the same text with the ids of their messages, are others.
func runIDsThatBeginAlike(t *trial, s checkpoint.Store) {
	runs := []string{
		"a", "ab", "abc", "a-1", "a-10", "a-11", strings.Repeat("x", 254), strings.Repeat("x", 255),
		strings.Repeat("x", 256), "ä", "ä\u0308",
	}
	for i, run := range runs {
		l := owned(t, s, run)
		head := add(t, s, l, checkpoint.Head{}, opened("graph", nil))
		for n := range i + 1 {
			head = add(t, s, l, head, done(n))
		}
		put(t, s, l, checkpoint.Snapshot{Head: head, Data: []byte(run)})
		release(t, s, l)
	}
	for _, p := range []struct{ run, id string }{{"a", "bcd"}, {"ab", "cd"}, {"abc", "d"}, {"a-1", "00"}, {"a-10", "0"}} {
		post(t, s, p.run, checkpoint.Post{ID: p.id, Kind: p.run})
	}
	for i, run := range slices.Backward(runs) {
		if got := read(t, s, run, 1, 0); len(got) != i+2 {
			t.Errorf("run %.20q has %d entries, want %d", run, len(got), i+2)
		}
		for _, p := range posts(t, s, run) {
			if p.Kind != run {
				t.Errorf("run %.20q has the message %q of run %q", run, p.ID, p.Kind)
			}
		}
		if snap, err := s.Snapshot(t.Context(), run, 0); err != nil || string(snap.Data) != run {
			t.Errorf("Snapshot(%.20q) = %.20q, %v", run, snap.Data, err)
		}
		erase(t, s, run)
		if got, want := ids(t, s, checkpoint.Filter{}), i; len(got) != want {
			t.Errorf("run %.20q was deleted, and %d runs are left, want %d", run, len(got), want)
		}
	}
}
