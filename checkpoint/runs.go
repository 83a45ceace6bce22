package checkpoint

import (
	"context"
	"errors"
	"iter"
)

// Runs yields the runs that f selects, newest first and each once, in pages of f.Limit. A run that is too damaged
// to be told of comes with its [*CorruptError], and of its Info the id alone is known: not even whether f would
// select it. The loop goes on behind it. Any other error comes with an Info that has no id, and ends the loop.
//
// Runs that begin or are deleted meanwhile are among them or not; all others are.
func Runs(ctx context.Context, s Store, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := needs(ctx, "Runs", s, "store", s); err != nil {
			yield(Info{}, err)
			return
		}
		l := listing{from: f.After, seen: map[string]bool{}, hurt: map[string]bool{}}
		for {
			page, err := s.List(ctx, f)
			for _, info := range page {
				if f.After = info.Run; l.first(info.Run) && !yield(info, nil) {
					return
				}
			}
			damaged, on := l.behind(&f, err)
			switch {
			case !on:
				yield(Info{}, err)
				return
			case damaged != "" && l.first(damaged) && !yield(Info{Run: damaged}, err):
				return
			case err == nil && len(page) < f.Page():
				return
			}
		}
	}
}

// A listing is how far Runs has come.
type listing struct {
	from  string          // behind which it began
	seen  map[string]bool // the runs that were yielded
	hurt  map[string]bool // the damaged ones since it began, or began again
	again int             // how often it began again
}

// first reports whether a run has not been yielded before.
func (l *listing) first(run string) bool {
	known := l.seen[run]
	l.seen[run] = true
	return !known
}

// behind has f go on behind what a page ended with, and reports whether there is a way: behind a damaged
// run, which it returns, or, because the run behind which it was to go on was deleted, from the beginning.
// Neither is tried for ever.
func (l *listing) behind(f *Filter, err error) (damaged string, on bool) {
	var known *CorruptError
	switch {
	case err == nil:
		return "", true
	case errors.As(err, &known) && known.Run != "" && !l.hurt[known.Run]:
		l.hurt[known.Run] = true
		f.After = known.Run
		return known.Run, true
	case errors.Is(err, ErrNotFound) && f.After != l.from && l.again < 100:
		l.again++
		f.After = l.from
		clear(l.hurt)
		return "", true
	}
	return "", false
}
