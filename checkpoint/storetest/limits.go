package storetest

import (
	"errors"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// An append that is too large for the store is ErrTooLarge, changes nothing, and does not stop
// the run: the next one is made.
func tooLargeChangesNothing(t *trial, s checkpoint.Store) {
	most := t.f.Limits.Append
	if most == 0 {
		t.Skip("not checked: Factory.Limits.Append is zero, so nobody knows what is too large")
	}
	l, head := begun(t, s, "run")
	post(t, s, "run", checkpoint.Post{ID: "post"})
	big := done(1)
	big.Delta = encode(strings.Repeat("x", most))
	_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Answered, Post: "post"}, big})
	wantErr(t, err, checkpoint.ErrTooLarge, "Append of more than %d bytes", most)
	untouched(t, s, l, head)
}

// A store without room refuses what needs some with ErrFull, which changes nothing. What it holds
// can be read, and when there is room again it goes on.
func fullChangesNothing(t *trial, s checkpoint.Store) {
	if t.f.Fill == nil {
		t.Skip("not checked: Factory.Fill is nil, so nobody knows what a store without room does")
	}
	l, head := begun(t, s, "run")
	post(t, s, "run", checkpoint.Post{ID: "post"})
	free := t.f.Fill(t.TB, t.dir, s)
	_, err := s.Append(t.Context(), l, head, []checkpoint.Entry{done(1)})
	wantErr(t, err, checkpoint.ErrFull, "Append without room")
	wantErr(t, s.Post(t.Context(), "run", checkpoint.Post{ID: "other"}), checkpoint.ErrFull, "Post without room")
	if err = s.Fork(t.Context(), forkOf(small(1), "fork")); !errors.Is(err, checkpoint.ErrUnsupported) {
		wantErr(t, err, checkpoint.ErrFull, "Fork without room")
	}
	if _, err = s.Trim(t.Context(), l, head, trimming(2, small(1)), small(1)); !errors.Is(err, checkpoint.ErrUnsupported) {
		wantErr(t, err, checkpoint.ErrFull, "Trim without room")
	}
	wantErr(t, s.PutGraph(t.Context(), "digest", []byte("{}")), checkpoint.ErrFull, "PutGraph without room")
	if a, ok := s.(checkpoint.Archiver); ok {
		envelopes, _ := archived(t)
		_, err = a.Restore(t.Context(), owned(t, s, "restored"), archive(lent(envelopes)))
		wantErr(t, err, checkpoint.ErrFull, "Restore without room")
	}
	if info := stat(t, s, "run"); info.Head != head || len(read(t, s, "run", 1, 0)) != 1 {
		t.Errorf("without room the run is %+v", info)
	}
	free()
	untouched(t, s, l, head)
}

// untouched checks that the run has one entry and one message, and goes on.
func untouched(t *trial, s checkpoint.Store, l checkpoint.Lease, head checkpoint.Head) {
	t.Helper()
	if info := stat(t, s, "run"); info.Head != head || info.Owner != l.Owner {
		t.Errorf("after an append that was refused the run is %+v", info)
	}
	if got := posts(t, s, "run"); len(got) != 1 {
		t.Errorf("after an append that was refused there are %d messages, want 1", len(got))
	}
	add(t, s, l, head, done(1))
	if got := read(t, s, "run", 1, 0); len(got) != 2 {
		t.Errorf("read %d entries, want 2", len(got))
	}
}
