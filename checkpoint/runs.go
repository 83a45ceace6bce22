package checkpoint

import (
	"context"
	"errors"
	"iter"
)

// Runs yields the runs that f selects, newest first and each once, in pages of f.Limit. Runs that
// begin or are deleted meanwhile may be among them; all others are.
//
// A run that is too damaged to be told of comes with its [*CorruptError]. One that this program or
// these keys can't read comes with the error that [Corrupt] makes of [ErrVersion], [ErrKey] or
// [ErrPlaintext]. Of the Info of such a run only the id is known, not even whether f would select
// it. The loop goes on behind it. Any other error comes with an Info that has no id, and ends the
// loop.
func Runs(ctx context.Context, s Store, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := needs(ctx, "Runs", s, "store", s); err != nil {
			yield(Info{}, err)
			return
		}
		l := listing{from: f.After, seen: map[string]int{}, hurt: map[string]bool{}}
		for {
			page, err := s.List(ctx, f)
			for _, info := range page {
				if l.turns(info.Run) {
					yield(Info{}, &CorruptError{Run: info.Run, Reason: "it is listed again and again"})
					return
				}
				if f.After = info.Run; l.first(info.Run) && !yield(info, nil) {
					return
				}
			}
			untold, on := l.behind(&f, err)
			switch {
			case !on:
				yield(Info{}, err)
				return
			case untold != "" && l.first(untold) && !yield(Info{Run: untold}, err):
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
	seen  map[string]int  // the runs that were passed, and again when they were
	hurt  map[string]bool // those that can't be told of since it began, or began again
	again int             // how often it began again
	vain  int             // how often since it came to a run for the first time
}

// mostVain is how often a listing begins again and comes to no other run: it does so when a run
// behind which it was to go on was deleted, or deleted and made anew, which moves it to the front.
const mostVain = 100

// first reports whether the listing comes to a run for the first time.
func (l *listing) first(run string) bool {
	_, known := l.seen[run]
	if l.seen[run] = l.again; !known {
		l.vain = 0
	}
	return !known
}

// turns reports whether the listing turns round among the same runs, as it never does in a sound
// store.
func (l *listing) turns(run string) bool {
	if when, known := l.seen[run]; known && when == l.again {
		l.begin()
	}
	return l.vain > mostVain
}

// begin has all runs be passed once more.
func (l *listing) begin() {
	l.again++
	l.vain++
	clear(l.hurt)
}

// behind has f go on behind what a page ended with, and reports whether there is a way: behind a
// run that can't be told of, which it returns, or, because the run behind which it was to go on was
// deleted, from the beginning. Neither is tried for ever.
func (l *listing) behind(f *Filter, err error) (untold string, on bool) {
	untold = about(err)
	switch {
	case err == nil:
		return "", true
	case untold != "" && !l.hurt[untold]:
		l.hurt[untold] = true
		f.After = untold
		return untold, true
	case errors.Is(err, ErrNotFound) && f.After != l.from && l.vain < mostVain:
		l.begin()
		f.After = l.from
		return "", true
	}
	return "", false
}

// about returns the run that an error says can't be told of, "" if it names none.
func about(err error) string {
	var known *CorruptError
	var sealed *unreadError
	switch {
	case errors.As(err, &known):
		return known.Run
	case errors.As(err, &sealed):
		return sealed.run
	}
	return ""
}
