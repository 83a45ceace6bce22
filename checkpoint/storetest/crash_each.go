package storetest

import (
	"bytes"
	"errors"

	"github.com/pawlgo/pawl/checkpoint"
)

// Whatever was acknowledged last is there after a crash, though nothing that is durable came behind
// it: a message, a graph, an append, a fork, a trim, a deletion, and what was restored.
func eachWriteSurvivesACrash(t *trial, s checkpoint.Store) {
	l, head := begun(t, s, "run")
	long(t, s, "deleted")
	envelopes, restored := archived(t)
	for _, c := range []struct {
		write string
		do    func() error // ErrUnsupported if the store can't
		there func() bool
	}{
		{"Post", func() error { return s.Post(t.Context(), "run", checkpoint.Post{ID: "post", Kind: "turn"}) },
			func() bool { return len(posts(t, s, "run")) == 1 }},
		{"PutGraph", func() error { return s.PutGraph(t.Context(), "digest", []byte("{}")) },
			func() bool {
				graph, err := s.Graph(t.Context(), "digest")
				return err == nil && string(graph) == "{}"
			}},
		{"Append", func() error {
			var err error
			head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{done(1)})
			return err
		}, func() bool { return stat(t, s, "run").Head == head }},
		{"Append that drains a message", func() error {
			var err error
			head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{drains("post")})
			return err
		}, func() bool { return len(posts(t, s, "run")) == 0 }},
		{"Fork", func() error { return s.Fork(t.Context(), forkOf(small(1), "fork")) },
			func() bool {
				base, err := s.Base(t.Context(), "fork", checkpoint.BaseDigest(small(1)))
				return err == nil && bytes.Equal(base, small(1))
			}},
		{"Trim", func() error {
			after, err := s.Trim(t.Context(), l, head, trimming(2, small(2)), small(2))
			if err == nil {
				head = after
			}
			return err
		}, func() bool { return stat(t, s, "run").First == 2 }},
		{"Delete", func() error { return s.Delete(t.Context(), "deleted") },
			func() bool {
				_, err := s.Stat(t.Context(), "deleted")
				return errors.Is(err, checkpoint.ErrNotFound)
			}},
		{"Restore", func() error {
			a, ok := s.(checkpoint.Archiver)
			if !ok {
				return checkpoint.ErrUnsupported
			}
			_, err := a.Restore(t.Context(), owned(t, s, "restored"), archive(lent(envelopes), checkpoint.Post{ID: "m", Kind: "turn", At: old}))
			return err
		}, func() bool {
			info, err := s.Stat(t.Context(), "restored")
			return err == nil && info.Head == restored && len(posts(t, s, "restored")) == 1
		}},
	} {
		if err := c.do(); errors.Is(err, checkpoint.ErrUnsupported) {
			continue
		} else if err != nil {
			t.Fatalf("%s = %v", c.write, err)
		}
		s = t.crash(s)
		if !c.there() {
			t.Errorf("%s was acknowledged, and what it did is not there after a crash", c.write)
		}
		wantVerified(t, s)
		l = inherited(t, s, l)
		head = add(t, s, l, head, done(1))
	}
}
