package badgerstore

import (
	"context"
	"errors"
	"iter"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Progress says how far a [Store.Verify] has come.
type Progress struct {
	Run  string // that was verified last
	Done int    // runs that were verified
	Of   int    // runs there were when it began
}

// Verify reads the whole store and yields what is wrong with it: first with what tells which runs
// there are and who refers to what, of all of them as of one moment, then with each run, as
// checkpoint.Verify does. It changes nothing, takes no lease and keeps nobody waiting. progress is
// told of every run, by the goroutine of the loop; it may be nil.
//
// A run that this program or these keys can't read comes with its error, which wraps ErrVersion,
// ErrKey or ErrPlaintext, and of its Finding the id alone is known: the loop goes on behind it. Any
// other error comes with the zero Finding, ends the loop, and is not about what one run has stored:
// ErrClosed, ctx's, or a version that this program does not know of what tells which runs there
// are. Verify holds the ids of all runs in memory.
func (s *Store) Verify(ctx context.Context, progress func(Progress)) iter.Seq2[checkpoint.Finding, error] {
	return func(yield func(checkpoint.Finding, error) bool) {
		runs, ok := s.audit(ctx, yield)
		for i, run := range runs {
			if !ok {
				return
			}
			for f, err := range checkpoint.Verify(ctx, s, run) {
				if errors.Is(err, checkpoint.ErrNotFound) || errors.Is(err, checkpoint.ErrTrimmed) {
					break // it was deleted or trimmed meanwhile
				}
				if unread(err) {
					ok = yield(checkpoint.Finding{Run: run}, err)
					break
				}
				if ok = yield(f, err) && err == nil; !ok {
					return
				}
			}
			if progress != nil {
				progress(Progress{run, i + 1, len(runs)})
			}
		}
	}
}

// unread reports whether an error says that this program, or its keys, can't read what may be
// sound.
func unread(err error) bool {
	return errors.Is(err, checkpoint.ErrVersion) || errors.Is(err, checkpoint.ErrKey) || errors.Is(err, checkpoint.ErrPlaintext)
}
