package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// A readingStore reads what it was given once more when an append of the run "hangs" is let go. If
// it leaves, such an append fails at once, and is at work still.
type readingStore struct {
	checkpoint.Store
	t      *testing.T
	leaves bool
	free   chan struct{}
}

func (s *readingStore) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	if l.Run == "hangs" && after.Seq > 0 {
		was, read := said(s.t, entries), make(chan struct{})
		go func() { // ends when the test lets it
			defer close(read)
			<-s.free
			if is := said(s.t, entries); is != was {
				s.t.Errorf("an append was given %s, which has become %s", was, is)
			}
		}()
		if s.leaves {
			return checkpoint.Head{}, checkpoint.ErrCommitUnknown
		}
		<-read
	}
	return s.Store.Append(ctx, l, after, entries)
}

func said(t *testing.T, what any) string {
	text, err := json.Marshal(what)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// What a call has given to a store that does not return stays as it is, whatever other calls do
// meanwhile, and however far the run itself goes on ahead of it.
func TestAppendThatHangsKeepsWhatItWasGiven(t *testing.T) {
	for lag := range 4 {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("lag=%d/leaves=%t", lag, leaves), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { appendHangs(t, lag, leaves) })
			})
		}
	}
}

func appendHangs(t *testing.T, lag int, leaves bool) {
	store := &readingStore{Store: new(memory.Store), t: t, leaves: leaves, free: make(chan struct{})}
	b := dag.New[Tale]("given")
	last := dag.Step(b, "a", noted("a"))
	for _, name := range []string{"b", "c", "d"} {
		last = dag.Step(b, name, noted(name), last)
	}
	d := callsDispatcher(t, frozen(t, b), store, dispatcher.Options{Lag: lag})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	want := dispatcher.ErrStuck
	if leaves {
		want = checkpoint.ErrCommitUnknown
	}
	if _, err := d.Run(ctx, "hangs", nil); !errors.Is(err, want) {
		t.Errorf("over a store that hangs the run returned %v, want %v", err, want)
	}
	for i := range 8 {
		run := fmt.Sprintf("beside-%d", i)
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Said.Append(run) })
		completes(t, res, err)
		says(t, res.State, run, "a", "b", "c", "d")
	}
	close(store.free)
	synctest.Wait()
}

func noted(name string) func(context.Context, *Tale) error {
	return func(_ context.Context, s *Tale) error {
		s.Said.Append(name)
		return nil
	}
}

// What a call has on its desk is gone for the next one, also if there was more than a desk has room
// for: the log of a run is the same whichever runs there were before it.
func TestLogIsTheSameBehindOtherRuns(t *testing.T) {
	t.Parallel()
	pair := func(b *dag.Builder[Tale]) *dag.Graph[Tale] {
		first := dag.Step(b, "first", noted("first"))
		dag.Step(b, "last", noted("last"), dag.Step(b, "left", counted, first), dag.Step(b, "right", counted, first))
		return frozen(t, b)
	}(dag.New[Tale]("pair"))
	crowd := func(b *dag.Builder[Tale]) *dag.Graph[Tale] {
		inner := dag.New[Tale]("inner")
		dag.Step(inner, "only", noted("only"))
		dive := frozen(t, inner)
		tell := func(from, to *Tale) { to.Said.Append("told by an inner graph") }
		last := dag.Embed(b, "dive-1", dive, func(*Tale, *Tale) {}, tell)
		last = dag.Embed(b, "dive-2", dive, func(*Tale, *Tale) {}, tell, last)
		for i := range 80 {
			dag.Step(b, fmt.Sprintf("side-%d", i), counted, last)
		}
		return frozen(t, b)
	}(dag.New[Tale]("crowd"))
	store := new(memory.Store)
	log := func(d *dispatcher.Dispatcher[Tale], run string) string {
		res, err := d.Run(t.Context(), run, nil, dispatcher.Correlation("one of all"))
		completes(t, res, err)
		lines := []string{said(t, res.State)}
		for e, err := range store.Read(t.Context(), run, 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			e.Seq, e.At = 0, time.Time{}
			lines = append(lines, said(t, e))
		}
		slices.Sort(lines[1:]) // of left and right either may be the first
		return strings.Join(lines, "\n")
	}
	pairs := callsDispatcher(t, pair, store, dispatcher.Options{})
	want := log(pairs, "before")
	for i := range 20 {
		log(callsDispatcher(t, crowd, store, dispatcher.Options{}), fmt.Sprintf("crowd-%d", i))
		for k := range 4 {
			if got := log(pairs, fmt.Sprintf("pair-%d-%d", i, k)); got != want {
				t.Fatalf("the state and the log of a run behind others are\n%s, want\n%s", got, want)
			}
		}
	}
}

// More answers than a desk has room for reach a run at work in one append: each is that of its
// question, also in the log, and nothing of them is in the log of the run behind it.
func TestManyAnswersInOneAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asks = 9
		var goOn chan struct{}
		b := dag.New[Tale]("many")
		for i := range asks {
			name := fmt.Sprintf("asks-%d", i)
			dag.Step(b, name, func(ctx context.Context, s *Tale) error {
				answer, err := dag.Ask[string](ctx, "what", "What?")
				s.Said.Append(answer)
				return err
			})
		}
		dag.Step(b, "holds", func(context.Context, *Tale) error {
			<-goOn
			return nil
		})
		store := new(memory.Store)
		d := callsDispatcher(t, frozen(t, b), store, dispatcher.Options{})
		for i := range 5 {
			run, ended := fmt.Sprintf("run-%d", i), make(chan struct{})
			goOn = make(chan struct{})
			go func() { // waited for below
				defer close(ended)
				res, err := d.Start(t.Context(), run, nil)
				completes(t, res, err)
				var want []string
				for k := range asks {
					want = append(want, fmt.Sprintf("answer %d", k))
				}
				says(t, res.State, want...)
			}()
			synctest.Wait()
			res, err := d.State(t.Context(), run)
			if err != nil || len(res.Interrupts) != asks {
				t.Fatalf("%d questions wait, %v, want %d", len(res.Interrupts), err, asks)
			}
			values := map[string]any{}
			for k, p := range res.Interrupts {
				values[p.ID] = fmt.Sprintf("answer %d", k)
			}
			if err := d.Answers(t.Context(), run, values); err != nil {
				t.Fatal(err)
			}
			close(goOn)
			<-ended
			answered := map[string]any{}
			for e, err := range store.Read(t.Context(), run, 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == checkpoint.Opened && e.ID+e.Post != "" {
					t.Errorf("%s was opened with %q of another run", run, e.ID+e.Post)
				}
				if e.Kind == checkpoint.Answered {
					var a checkpoint.Answer
					if err := json.Unmarshal(e.Data, &a); err != nil {
						t.Fatal(err)
					}
					var text string
					if err := json.Unmarshal(a.Value, &text); err != nil {
						t.Fatal(err)
					}
					answered[e.ID] = text
				}
			}
			if !maps.Equal(answered, values) {
				t.Errorf("the log has the answers %v, want %v", answered, values)
			}
		}
	})
}

// What is said of a run at rest, by an edit or an answer, is in its log and in no other: a run that
// begins behind it is opened as any other, and hears its own answer.
func TestRunsBehindEditsAndAnswers(t *testing.T) {
	t.Parallel()
	b := dag.New[Tale]("edited")
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		answer, err := dag.Ask[string](ctx, "what", "What?")
		s.Said.Append(answer)
		return err
	})
	g, store := frozen(t, b), new(memory.Store)
	for i := range 30 {
		d := callsDispatcher(t, g, store, dispatcher.Options{Lag: i % 3})
		begin := func(run string) {
			res, err := d.Start(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "asks")
			for e, err := range store.Read(t.Context(), run, 1, 1) {
				if err != nil || e.ID+e.Post != "" || e.Delta != nil || e.Outer != nil {
					t.Errorf("the run is opened with %+v, %v", e, err)
				}
			}
		}
		answer := func(run string) {
			if err := d.Answer(t.Context(), run, "", "answer to "+run); err != nil {
				t.Fatal(err)
			}
		}
		first, second, third := fmt.Sprint("first-", i), fmt.Sprint("second-", i), fmt.Sprint("third-", i)
		begin(first)
		if err := d.Edit(t.Context(), first, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{Reason: "too few"}); err != nil {
			t.Fatal(err)
		}
		begin(second)
		answer(first)
		begin(third)
		answer(second)
		answer(third)
		for run, count := range map[string]int{first: 1, second: 0, third: 0} {
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			says(t, res.State, "answer to "+run)
			if n := res.State.Count.Get(); n != count {
				t.Errorf("the run counts %d, want %d", n, count)
			}
		}
	}
}

func counted(_ context.Context, s *Tale) error {
	s.Count.Add(1)
	return nil
}
