package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// ten are ten runs, run 9 the newest, of which the even ones have a label.
func ten(t *testing.T, s checkpoint.Store) {
	t.Helper()
	for i := range 10 {
		run := fmt.Sprintf("run %d", i)
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil {
			t.Fatal(err)
		}
		opening := fmt.Appendf(nil, `{"graph":"g","labels":{"odd":"%d"}}`, i%2)
		if _, err := s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}}); err != nil {
			t.Fatal(err)
		}
	}
}

// listed are the runs that a loop yields, those that can't be told of in brackets, and the error
// that it ends with.
func listed(t *testing.T, s checkpoint.Store, f checkpoint.Filter) (runs []string, end error) {
	t.Helper()
	for info, err := range checkpoint.Runs(t.Context(), s, f) {
		var damaged *checkpoint.CorruptError
		switch {
		case end != nil:
			t.Fatalf("behind the error %v comes %+v, %v", end, info, err)
		case len(runs) > 100:
			t.Fatalf("the loop does not end: %q", runs)
		case err == nil:
			runs = append(runs, info.Run)
		case info.Run == "":
			end = err
		case errors.As(err, &damaged) && damaged.Run == info.Run:
			runs = append(runs, "["+info.Run+"]")
		default:
			t.Fatalf("of run %q comes %v, want a CorruptError that names it", info.Run, err)
		}
	}
	return runs, end
}

// numbered are runs by their numbers, damaged ones negative.
func numbered(numbers ...int) (runs []string) {
	for _, n := range numbers {
		run := fmt.Sprintf("run %d", max(n, -n))
		if n < 0 {
			run = "[" + run + "]"
		}
		runs = append(runs, run)
	}
	return runs
}

// Damaged runs are told of, each once, and hide no other, wherever in a page they stand.
func TestRunsGoesOnBehindDamagedRuns(t *testing.T) {
	var s memory.Faulty
	ten(t, &s)
	for _, hurt := range []int{9, 7, 6, 3, 1} {
		s.Spoil(fmt.Sprintf("run %d", hurt), checkpoint.PartInfo)
	}
	for limit := range 12 {
		runs, err := listed(t, &s, checkpoint.Filter{Limit: limit})
		if want := numbered(-9, 8, -7, -6, 5, 4, -3, 2, -1, 0); err != nil || !slices.Equal(runs, want) {
			t.Errorf("in pages of %d: %q, %v, want %q", limit, runs, err, want)
		}
		runs, err = listed(t, &s, checkpoint.Filter{Limit: limit, Labels: map[string]string{"odd": "0"}, After: "run 4"})
		if want := numbered(2, 0); err != nil || !slices.Equal(runs, want) {
			t.Errorf("selected, in pages of %d: %q, %v, want %q", limit, runs, err, want)
		}
	}
	for info, err := range checkpoint.Runs(t.Context(), &s, checkpoint.Filter{Limit: 2}) {
		if info.Run == "run 7" && err != nil {
			break
		}
	}
}

// lister is a store that lists by that function.
type lister struct {
	checkpoint.Store
	list func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error)
}

func (s lister) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	return s.list(ctx, f)
}

// Who deletes each run that it is told of comes to the end: all runs come, once.
func TestRunsThatAreDeletedAsTheyCome(t *testing.T) {
	var s memory.Store
	const n = 300
	for i := range n {
		run := fmt.Sprint("run ", i)
		l, err := s.Acquire(t.Context(), run, "owner")
		if err == nil {
			_, err = s.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Data: []byte(`{"graph":"g"}`)}})
		}
		if err = errors.Join(err, s.Release(t.Context(), l)); err != nil {
			t.Fatal(err)
		}
	}
	came := 0
	for info, err := range checkpoint.Runs(t.Context(), &s, checkpoint.Filter{Limit: 2}) {
		if err == nil {
			err = s.Delete(t.Context(), info.Run)
		}
		if err != nil {
			t.Fatalf("behind %d runs: %v", came, err)
		}
		came++
	}
	if came != n {
		t.Errorf("%d of %d runs came", came, n)
	}
}

// A listing that begins again does so where it was told to, and damaged runs that it passes again
// hide no other.
func TestRunsBeginAgainBehindTheirStart(t *testing.T) {
	var s memory.Faulty
	ten(t, &s)
	s.Spoil("run 7", checkpoint.PartInfo)
	gone := false
	once := lister{&s, func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
		if f.After == "run 5" && !gone {
			gone = true
			return nil, checkpoint.NotFound("run 5")
		}
		return s.List(ctx, f)
	}}
	runs, err := listed(t, once, checkpoint.Filter{Limit: 1, After: "run 8"})
	if want := numbered(-7, 6, 5, 4, 3, 2, 1, 0); err != nil || !gone || !slices.Equal(runs, want) {
		t.Errorf("%q, %v, want %q", runs, err, want)
	}
	if _, err := listed(t, &s, checkpoint.Filter{After: "nobody"}); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("behind a run that is not there: %v", err)
	}
}

// A store that lists a run behind itself does not keep the loop from ending.
func TestRunsOfAStoreThatTurnsRound(t *testing.T) {
	var s memory.Store
	ten(t, &s)
	turns := lister{&s, func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
		if f.After == "run 7" {
			f.After = ""
		}
		return s.List(ctx, f)
	}}
	runs, err := listed(t, turns, checkpoint.Filter{Limit: 1})
	var damaged *checkpoint.CorruptError
	if want := numbered(9, 8, 7); !errors.As(err, &damaged) || !slices.Equal(runs, want) {
		t.Errorf("%q, %v, want %q and a CorruptError", runs, err, want)
	}
}

// A run behind which the listing was to go on, and that is made anew, has it begin at the front:
// none comes twice.
func TestRunsWhileARunIsMadeAnew(t *testing.T) {
	var s memory.Store
	ten(t, &s)
	done := false
	moves := lister{&s, func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
		if f.After == "run 5" && !done {
			done = true
			info, err := s.Stat(ctx, "run 5")
			if err == nil {
				err = s.Release(ctx, checkpoint.Lease{Run: "run 5", Epoch: info.Epoch, Owner: info.Owner})
			}
			if err = errors.Join(err, s.Delete(ctx, "run 5")); err != nil {
				return nil, err
			}
			l, err := s.Acquire(ctx, "run 5", "owner")
			if err != nil {
				return nil, err
			}
			if _, err := s.Append(ctx, l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened, Data: []byte(`{"graph":"g"}`)}}); err != nil {
				return nil, err
			}
		}
		return s.List(ctx, f)
	}}
	runs, err := listed(t, moves, checkpoint.Filter{Limit: 1})
	if want := numbered(9, 8, 7, 6, 5, 4, 3, 2, 1, 0); err != nil || !done || !slices.Equal(runs, want) {
		t.Errorf("%q, %v, want %q", runs, err, want)
	}
}

// A run that this program or these keys can't read comes with its id and its error, which names it
// once, and hides no other.
func TestRunsBesideOnesThatCannotBeRead(t *testing.T) {
	for _, reason := range []error{checkpoint.ErrKey, checkpoint.ErrVersion, checkpoint.ErrPlaintext} {
		var s memory.Store
		ten(t, &s)
		sealed := map[string]bool{"run 9": true, "run 6": true, "run 5": true, "run 0": true}
		beside := lister{&s, func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
			page, err := s.List(ctx, f)
			for i, info := range page {
				if sealed[info.Run] {
					deep := checkpoint.Corrupt(info.Run, 3, fmt.Errorf("read: %w", reason))
					return page[:i], checkpoint.Corrupt(info.Run, 0, fmt.Errorf("listed: %w", deep))
				}
			}
			return page, err
		}}
		for _, limit := range []int{0, 1, 2} {
			var runs []string
			for info, err := range checkpoint.Runs(t.Context(), beside, checkpoint.Filter{Limit: limit}) {
				switch {
				case err == nil:
					runs = append(runs, info.Run)
				case !errors.Is(err, reason) || strings.Count(err.Error(), strconv.Quote(info.Run)) != 1:
					t.Errorf("of %q comes %v", info.Run, err)
				default:
					runs = append(runs, "["+info.Run+"]")
				}
			}
			if want := []string{"[run 9]", "run 8", "run 7", "[run 6]", "[run 5]", "run 4", "run 3", "run 2", "run 1", "[run 0]"}; !slices.Equal(runs, want) {
				t.Errorf("in pages of %d: %q, want %q", limit, runs, want)
			}
		}
		nobody := lister{&s, func(context.Context, checkpoint.Filter) ([]checkpoint.Info, error) {
			return nil, checkpoint.Corrupt("", 0, reason)
		}}
		if runs, err := listed(t, nobody, checkpoint.Filter{}); !errors.Is(err, reason) || len(runs) > 0 {
			t.Errorf("of a run that nobody can name: %q, %v", runs, err)
		}
	}
}

// Runs that are deleted behind the listing hide no others, and none comes twice.
func TestRunsWhileRunsAreDeleted(t *testing.T) {
	var s memory.Faulty
	ten(t, &s)
	s.Spoil("run 8", checkpoint.PartInfo)
	deleted := 0
	shrinks := lister{&s, func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
		page, err := s.List(ctx, f)
		if deleted < 2 && len(page) == 2 {
			deleted++
			run := page[1].Run
			l := checkpoint.Lease{Run: run, Epoch: page[1].Epoch, Owner: page[1].Owner}
			err = errors.Join(err, s.Release(ctx, l), s.Delete(ctx, run))
		}
		return page, err
	}}
	runs, err := listed(t, shrinks, checkpoint.Filter{Limit: 2})
	if want := numbered(9, -8, 7, 6, 5, 4, 3, 2, 1, 0); err != nil || deleted != 2 || !slices.Equal(runs, want) {
		t.Errorf("%q, %v, want %q", runs, err, want)
	}
}

// What is no damage of one run ends the loop, and so does a store whose listing gets no further.
func TestRunsEndsWithTheErrorOfTheListing(t *testing.T) {
	broken := errors.New("broken")
	var s memory.Store
	ten(t, &s)
	behind := func(then func(f checkpoint.Filter) error) lister {
		return lister{&s, func(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
			if f.After != "" {
				return nil, then(f)
			}
			return s.List(ctx, f)
		}}
	}
	corrupt := func(run string) error { return &checkpoint.CorruptError{Run: run, Reason: "a test"} }
	for name, test := range map[string]struct {
		then func(f checkpoint.Filter) error
		runs []string
		want error
	}{
		"an error":       {func(checkpoint.Filter) error { return broken }, numbered(9, 8), broken},
		"damage of none": {func(checkpoint.Filter) error { return corrupt("") }, numbered(9, 8), checkpoint.ErrCorrupt},
		"the same damage": {
			func(checkpoint.Filter) error { return corrupt("run 7") }, numbered(9, 8, -7), checkpoint.ErrCorrupt,
		},
		"damage by turns": {func(f checkpoint.Filter) error {
			if f.After == "run 7" {
				return corrupt("run 6")
			}
			return corrupt("run 7")
		}, numbered(9, 8, -7, -6), checkpoint.ErrCorrupt},
		"never found": {func(f checkpoint.Filter) error { return checkpoint.NotFound(f.After) }, numbered(9, 8), checkpoint.ErrNotFound},
	} {
		runs, err := listed(t, behind(test.then), checkpoint.Filter{Limit: 2})
		if !errors.Is(err, test.want) || !slices.Equal(runs, test.runs) {
			t.Errorf("%s: %q, %v, want %q, %v", name, runs, err, test.runs, test.want)
		}
	}
	if runs, err := listed(t, &s, checkpoint.Filter{After: "nobody"}); !errors.Is(err, checkpoint.ErrNotFound) || len(runs) > 0 {
		t.Errorf("behind a run that there is not: %q, %v, want ErrNotFound", runs, err)
	}
	var e *checkpoint.ArgumentError
	if _, err := listed(t, nil, checkpoint.Filter{}); !errors.As(err, &e) || e.Call != "Runs" || e.Argument != "store" {
		t.Errorf("of no store: %v", err)
	}
}
