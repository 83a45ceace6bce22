package storetest

import (
	"errors"

	"github.com/pawlgo/pawl/checkpoint"
)

// A run that is made under the id of one that was deleted has nothing of that, however long its log
// becomes, and whether an append makes it, a Fork or a Restore: no message and no snapshot; and a
// lease of the first run is none of the next.
func nothingIsLeftForTheNext(t *trial, s checkpoint.Store) {
	for way, begin := range map[string]func(run string) error{
		"an append": func(run string) error { rested(t, s, run); return nil },
		"a fork":    func(run string) error { return s.Fork(t.Context(), forkOf(small(1), run)) },
		"a restore": func(run string) error {
			a, ok := s.(checkpoint.Archiver)
			if !ok {
				return checkpoint.ErrUnsupported
			}
			envelopes, _ := archived(t)
			_, err := a.Restore(t.Context(), owned(t, s, run), archive(lent(envelopes)))
			return err
		},
	} {
		run := "made by " + way
		first, end := begun(t, s, run)
		for i := range 12 {
			end = add(t, s, first, end, done(i))
		}
		post(t, s, run, checkpoint.Post{ID: "post", Kind: checkpoint.PostCancel})
		put(t, s, first, checkpoint.Snapshot{Head: end, Data: []byte("state of the first")})
		release(t, s, first)
		erase(t, s, run)
		if err := begin(run); errors.Is(err, checkpoint.ErrUnsupported) {
			continue
		} else if err != nil {
			t.Fatalf("%s of a run that was deleted: %v", way, err)
		}
		if got := posts(t, s, run); len(got) != 0 {
			t.Errorf("the next run, %s, has the messages %v", run, got)
		}
		next := owned(t, s, run)
		head := stat(t, s, run).Head
		_, err := s.Append(t.Context(), first, head, []checkpoint.Entry{done(1)})
		wantErr(t, err, checkpoint.ErrFenced, "Append to the next run, %s, under a lease of the first", run)
		for head.Seq <= end.Seq {
			head = add(t, s, next, head, done(int(head.Seq)))
		}
		for _, upTo := range []uint64{0, end.Seq, head.Seq} {
			_, err := s.Snapshot(t.Context(), run, upTo)
			wantErr(t, err, checkpoint.ErrNotFound, "Snapshot of the next run, %s, up to entry %d", run, upTo)
		}
	}
}
