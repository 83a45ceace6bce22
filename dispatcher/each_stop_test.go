package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// eachTimed is the body of items that say how long they take and whether they fail then:
// "3 bad" fails after three seconds.
func eachTimed(w *witness) func(context.Context, *Tale, string) error {
	return func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		s.Said.Append(item)
		lasts(time.Duration(item[0]-'0') * time.Second)
		if strings.HasSuffix(item, "bad") {
			return errors.New(item + " page")
		}
		return nil
	}
}

// An eachFailure is a list of items some of which fail, and what comes of it.
type eachFailure struct {
	rule   string
	policy dag.Policy
	items  []string
	began  string   // numbers of the items that begin
	failed string   // the item whose failure is the Each's
	said   []string // in the state if the failure is followed
	told   []string // paths of failures that what follows is told of
}

var eachFailures = []eachFailure{
	{"after a failure none begins, and what has begun finishes", dag.Policy{Parallel: 2},
		[]string{"1", "3", "1 bad", "1", "1"}, "123", "3", []string{"1", "3"}, []string{"3"}},
	{"what stands behind the first failed item counts not, though it finished", dag.Policy{Parallel: 3},
		[]string{"1", "3 bad", "1", "4", "5", "1"}, "12345", "2", []string{"1"}, []string{"2"}},
	{"the first failed item in order is the one, whichever failed first", dag.Policy{Parallel: 4},
		[]string{"1", "3 bad", "2 bad", "5", "1"}, "12345", "2", []string{"1"}, []string{"2"}},
	{"all have begun at once", dag.Policy{},
		[]string{"2 bad", "1", "3", "1 bad"}, "1234", "1", nil, []string{"1"}},
	{"one after the other", dag.Policy{Parallel: 1},
		[]string{"1", "1", "1 bad", "1"}, "123", "3", []string{"1", "1"}, []string{"3"}},
	{"attempts are made before an item fails", dag.Policy{Parallel: 1, Attempts: 2},
		[]string{"1 bad", "1"}, "11", "1", nil, []string{"1"}},
	{"failures that are collected stop nothing", dag.Policy{Parallel: 2, Errors: dag.Collect},
		[]string{"1 bad", "3", "2 bad", "1", "1"}, "12345", "", []string{"3", "1", "1"}, []string{"1", "3"}},
	{"all failures are collected", dag.Policy{Errors: dag.Collect},
		[]string{"3 bad", "1 bad"}, "12", "", nil, []string{"1", "2"}},
}

// graph has an Each of the items, whose failure is followed or not.
func (f *eachFailure) graph(t testing.TB, w *witness, followed bool, told *[]dag.Failure) *dag.Graph[Tale] {
	b := dag.New[Tale]("tale")
	review := dag.Each(b, "review", eachList(f.items...), eachTimed(w)).With(f.policy)
	tells := func(ctx context.Context, _ *Tale) error {
		*told = dag.Failures(ctx)
		return nil
	}
	dag.Step(b, "well", tells, review)
	if followed {
		dag.Step(b, "rescue", tells, review.Failed())
	}
	return frozen(t, b)
}

// Which items begin when one fails, what of them counts, and what is told of them.
func TestEachFailures(t *testing.T) {
	for _, f := range eachFailures {
		t.Run(f.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var told []dag.Failure
				g, store := f.graph(t, &w, true, &told), new(memory.Store)
				res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
				completes(t, res, err)
				says(t, res.State, f.said...)
				if began := eachNumbers(w.took()); began != f.began {
					t.Errorf("items %s began, want %s", began, f.began)
				}
				var paths []string
				for _, failure := range told {
					paths = append(paths, strings.TrimPrefix(failure.Path, "review/"))
					if failure.Kind != dag.FailedError || failure.Attempts != max(f.policy.Attempts, 1) || !strings.HasSuffix(failure.Message, " page") {
						t.Errorf("told %+v", failure)
					}
				}
				if !slices.Equal(paths, f.told) {
					t.Errorf("told of the failures of %q, want %q", paths, f.told)
				}
			})
		})
	}
}

// eachNumbers are the numbers of the items among bodies that began.
func eachNumbers(began []string) string {
	var numbers []string
	for _, v := range began {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "review/"), "#")
		numbers = append(numbers, v)
	}
	slices.Sort(numbers)
	return strings.Join(numbers, "")
}

// A failure that nobody follows is the run's: the first in the order of the items. What is
// done stays done, and a resume runs the rest.
func TestEachFailureOfTheRun(t *testing.T) {
	for _, f := range eachFailures {
		if f.failed == "" {
			continue
		}
		t.Run(f.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w witness
				var told []dag.Failure
				g, store := f.graph(t, &w, false, &told), new(memory.Store)
				res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
				if res.Status != checkpoint.StatusFailed {
					t.Fatalf("the run is %s: %v", res.Status, err)
				}
				var failed *dispatcher.NodeError
				if !errors.As(err, &failed) || failed.Path != "review/"+f.failed {
					t.Errorf("the run failed with %v, want the failure of item %s", err, f.failed)
				}
				var left []string
				for i := range f.items {
					if path := fmt.Sprintf("review/%d", i+1); !slices.Contains(res.Finished, path) {
						left = append(left, path)
					}
				}
				if !slices.Equal(res.Cursor.Visits, left) {
					t.Errorf("the cursor is %q, want all but the finished: %q", res.Cursor.Visits, left)
				}
				if began := eachNumbers(w.took()); began != f.began {
					t.Errorf("items %s began, want %s", began, f.began)
				}
				read, err := process(t, g, store, dispatcher.Options{}).State(t.Context(), run)
				if err != nil || !slices.Equal(read.Cursor.Visits, left) || !slices.Equal(read.Finished, res.Finished) {
					t.Errorf("read, the run stands at %q and has finished %q: %v", read.Cursor.Visits, read.Finished, err)
				}
				again, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
				if again.Status != checkpoint.StatusFailed {
					t.Fatalf("resumed, the run is %s: %v", again.Status, err)
				}
				for _, v := range w.took() {
					if path, _, _ := strings.Cut(v, "#"); slices.Contains(res.Finished, path) {
						t.Errorf("%s is finished, and ran again", path)
					}
				}
			})
		})
	}
}

// After a failure none begins of those either that were ready and waited for one of
// Options.Parallel, nor of those that a person is asked about.
func TestEachFailureSparesWhatIsReady(t *testing.T) {
	for _, o := range []dispatcher.Options{
		{Parallel: 1},
		{InterruptBefore: []string{"review/3"}},
		{InterruptIf: func(b dispatcher.Boundary) bool { return strings.HasSuffix(b.Path, "/3") && !b.After }},
	} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var told []dag.Failure
			f := eachFailure{items: []string{"1", "2 bad", "1", "1"}, policy: dag.Policy{Parallel: 2}}
			if o.Parallel > 0 {
				f.policy.Parallel = 0
			}
			g := f.graph(t, &w, true, &told)
			res, err := process(t, g, new(memory.Store), o).Run(t.Context(), run, nil)
			completes(t, res, err)
			began := eachNumbers(w.took())
			if want := map[bool]string{true: "12", false: "124"}[o.Parallel > 0]; began != want {
				t.Errorf("items %s began, want %s", began, want)
			}
			says(t, res.State, "1")
		})
	}
}

// What waits for a person when another item fails has begun: it is waited for, and may be
// the one whose failure counts.
func TestEachFailureWaitsForWhatAsks(t *testing.T) {
	t.Parallel()
	var w witness
	var told []dag.Failure
	b := dag.New[Tale]("tale")
	review := dag.Each(b, "review", eachList("a", "ask", "bad", "b"), func(ctx context.Context, s *Tale, item string) error {
		w.note(ctx)
		s.Said.Append(item)
		switch item {
		case "bad":
			return errors.New("bad page")
		case "ask":
			answer, err := dag.Ask[string](ctx, "why", "?")
			if err != nil {
				return err
			}
			if answer != "" {
				return errors.New(answer)
			}
		}
		return nil
	}).With(dag.Policy{Parallel: 1})
	dag.Step(b, "rescue", func(ctx context.Context, _ *Tale) error {
		told = dag.Failures(ctx)
		return nil
	}, review.Failed())
	g := frozen(t, b)
	for _, answer := range []string{"", "no such page"} {
		store := new(memory.Store)
		d := process(t, g, store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "review/2", "review/3")
		if began := eachNumbers(w.took()); began != "123" {
			t.Errorf("items %s began, want 123", began)
		}
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, answer); err != nil {
			t.Fatal(err)
		}
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "review/2")
		if answer == "" {
			says(t, res.State, "a", "ask")
			if len(told) != 1 || told[0].Path != "review/3" {
				t.Errorf("told %+v", told)
			}
			continue
		}
		says(t, res.State, "a")
		if len(told) != 1 || told[0].Path != "review/2" || told[0].Message != answer {
			t.Errorf("told %+v", told)
		}
	}
}

// What stands behind an item that failed, and had asked before that, has begun: answered, it
// finishes, though it does not count.
func TestEachFailureBeforeWhatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w witness
		b := dag.New[Tale]("tale")
		review := dag.Each(b, "review", eachList("bad", "ask", "c"), func(ctx context.Context, s *Tale, item string) error {
			w.note(ctx)
			s.Said.Append(item)
			if item == "ask" {
				_, err := dag.Ask[string](ctx, "why", "?")
				return err
			}
			lasts(time.Second)
			return errors.New("torn page")
		}).With(dag.Policy{Parallel: 2})
		dag.Step(b, "rescue", w.sees(nil), review.Failed())
		g, store := frozen(t, b), new(memory.Store)
		d := process(t, g, store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "review/1", "review/2", "review/3")
		w.expect(t, "review/1", "review/2", "review/3")
		if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, "so"); err != nil {
			t.Fatal(err)
		}
		res, err = process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
		completes(t, res, err)
		w.expect(t, "review/2", "rescue")
		says(t, res.State, "rescue")
	})
}

// Of several items that have failed the first may come to have not: a Loop inside it is voided, and
// it goes on. Then what stands behind it, before the next one that failed, may begin as well, and
// counts.
func TestEachFailureThatIsVoided(t *testing.T) {
	right := false
	again, body, b := dag.New[Tale]("again"), dag.New[Tale]("body"), dag.New[Tale]("tale")
	dag.Step(again, "second", func(ctx context.Context, s *Tale) error {
		switch item := s.Word.Get(); {
		case item == "asks":
			_, err := dag.Ask[string](ctx, "go on", "?")
			return err
		case item == "bad" || item == "wrong" && !right:
			return errWeather
		}
		return nil
	})
	dag.Loop(body, "again", frozen(t, again), func(*Tale) bool { return true }, 1)
	review := dag.EachGraph(b, "review", eachList("wrong", "held", "bad", "asks"), frozen(t, body),
		func(_ *Tale, item string, to *Tale) { to.Word.Set(item) },
		func(_ *Tale, item string, to *Tale) { to.Said.Append(item) })
	dag.Step(b, "rescue", func(context.Context, *Tale) error { return nil }, review.Failed())
	dag.End(b, review)
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{InterruptBefore: []string{"review/2"}})
	res, err := d.Run(t.Context(), run, nil)
	if at := res.Cursor.Visits; !slices.Contains(at, "review/4/again/1/second") || slices.Contains(at, "review/2") {
		t.Fatalf("the run is %s at %q: %v", res.Status, at, err)
	}
	if err := d.Edit(t.Context(), run, func(*Tale) {}, dispatcher.EditOptions{Void: []string{"review/1/again"}}); err != nil {
		t.Fatal(err)
	}
	sameMachine(t, d, run)
	res, err = d.State(t.Context(), run)
	if at := res.Cursor.Visits; err != nil || !slices.Contains(at, "review/1/again") || !slices.Contains(at, "review/2") {
		t.Errorf("once the first failure is voided it is at %q: %v", at, err)
	}
	if err := d.Answer(t.Context(), run, "", "yes"); err != nil {
		t.Fatal(err)
	}
	right = true
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	says(t, res.State, "wrong", "held")
}
