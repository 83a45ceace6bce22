package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// leastAtomic has a store make as little atomic as one can.
var leastAtomic = badgerstore.Options{MemTableSize: 4 << 20}

// postNotes posts n notes to the run, as calls of Note would that nobody drains, and returns what
// the log is to say of them.
func postNotes(t *testing.T, store checkpoint.Store, n int) (want []string) {
	t.Helper()
	for i := range n {
		p := checkpoint.Post{
			ID: fmt.Sprintf("note:%d-%s", n-i, strings.Repeat("m", 200)), Kind: "note", // ids have another order
			Data: fmt.Appendf(nil, `{"note":"shop.n","value":%d}`, i),
		}
		if err := store.Post(t.Context(), run, p); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s shop.n %d", p.ID[len("note:"):], i))
	}
	return want
}

// nothingIsPosted checks that everything is drained.
func nothingIsPosted(t *testing.T, store checkpoint.Store) {
	t.Helper()
	if posts, err := store.Posts(t.Context(), run); err != nil || len(posts) > 0 {
		t.Errorf("%d posts are left, %v", len(posts), err)
	}
}

// A heldRun is a line that runs beside a test, whose b waits for the gate.
type heldRun struct {
	*dispatcher.Dispatcher[Tale]
	ctx   context.Context // of b
	gate  chan struct{}
	ended chan ending
}

// beginHeld returns when b is there.
func beginHeld(t *testing.T, w *witness, store checkpoint.Store) *heldRun {
	in := make(chan context.Context, 1)
	h := &heldRun{gate: make(chan struct{}), ended: make(chan ending, 1)}
	h.Dispatcher = process(t, line(t, w, func(ctx context.Context, _ *Tale) error {
		in <- ctx
		<-h.gate
		return nil
	}), store, dispatcher.Options{})
	go func() {
		res, err := h.Run(t.Context(), run, nil)
		h.ended <- ending{res: res, err: err}
	}()
	h.ctx = <-in
	return h
}

// notesFrom are the notes in the log that postNotes has left.
func notesFrom(t *testing.T, store checkpoint.Store) []string {
	t.Helper()
	return slices.DeleteFunc(notesOf(t, store), func(s string) bool { return !strings.Contains(s, " shop.n ") })
}

// However many messages a live run is left, it takes all of them, in their order, and ends.
func TestManyPostsOfALiveRun(t *testing.T) {
	var w witness
	store := openUnsyncedWith(t, leastAtomic)
	h := beginHeld(t, &w, store)
	want := postNotes(t, store, 2500)
	close(h.gate)
	e := <-h.ended
	completes(t, e.res, e.err)
	told := notesFrom(t, store)
	if !slices.Equal(told, want) {
		t.Errorf("the log has %d notes, want %d in the order of their posting", len(told), len(want))
	}
	nothingIsPosted(t, store)
}

// So does a run that is completed and goes on with input that waits among them, whether or not it
// may be ahead of the disk; turns begin in the order of their posting.
func TestManyPostsBesideTurns(t *testing.T) {
	for lag := range 2 {
		var w witness
		store := openUnsyncedWith(t, leastAtomic)
		d := process(t, line(t, &w, nil), store, dispatcher.Options{Lag: 3 * lag})
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		want := postNotes(t, store, 1200)
		for _, word := range []string{"first", "second"} {
			if err := d.Enqueue(t.Context(), run, func(s *Tale) { s.Said.Append(word) }); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1200 {
			if err := store.Post(t.Context(), run, checkpoint.Post{ID: fmt.Sprintf("%s-%d", strings.Repeat("o", 200), i), Kind: "other"}); err != nil {
				t.Fatal(err)
			}
		}
		res, err = d.Resume(t.Context(), run)
		completes(t, res, err)
		says(t, res.State, "a", "b", "c", "first", "2/a", "2/b", "2/c", "second", "3/a", "3/b", "3/c")
		if told := notesFrom(t, store); !slices.Equal(told, want) {
			t.Errorf("the log has %d notes, want %d in the order of their posting", len(told), len(want))
		}
		nothingIsPosted(t, store)
	}
}

// Messages that a process has left with a run are drained by whoever comes next, be it a call that
// goes on or one that only leaves another message, and the run goes on.
func TestManyPostsOfARunAtRest(t *testing.T) {
	for name, next := range map[string]func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error{
		"Note": func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error {
			return d.Note(ctx, run, "shop.last", nil)
		},
		"Tag":    func(ctx context.Context, d *dispatcher.Dispatcher[Tale]) error { return d.Tag(ctx, run, "", "here") },
		"Resume": func(context.Context, *dispatcher.Dispatcher[Tale]) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var w witness
			store := openUnsyncedWith(t, leastAtomic)
			d := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptBefore: []string{"b"}})
			res, err := d.Run(t.Context(), run, nil)
			rests(t, res, err, checkpoint.StatusInterrupted, "b")
			want := postNotes(t, store, 2500)
			if err := next(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			res, err = d.Resume(t.Context(), run)
			completes(t, res, err)
			told := notesFrom(t, store)
			if !slices.Equal(told, want) {
				t.Errorf("the log has %d notes, want %d in the order of their posting", len(told), len(want))
			}
			nothingIsPosted(t, store)
		})
	}
}

// Messages that are large together, each of which was accepted, are taken by a live run and by one
// at rest.
func TestLargePosts(t *testing.T) {
	large := strings.Repeat("n", 15<<20)
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprintf("live=%t", live), func(t *testing.T) {
			var w witness
			store := openUnsynced(t)
			h := beginHeld(t, &w, store)
			for i := range 5 {
				if err := h.Note(t.Context(), run, fmt.Sprintf("shop.n%d", i), large); err != nil {
					t.Fatal(err)
				}
			}
			close(h.gate)
			e := <-h.ended
			completes(t, e.res, e.err)
			nothingIsPosted(t, store)
			if live {
				return
			}
			for i := range 5 { // as a process leaves them that dies before it drains them
				p := checkpoint.Post{ID: fmt.Sprint("note-", i), Kind: "note", Data: fmt.Appendf(nil, `{"note":"shop.n","value":%q}`, large)}
				if err := store.Post(t.Context(), run, p); err != nil {
					t.Fatal(err)
				}
			}
			if err := h.Note(t.Context(), run, "shop.last", nil); err != nil {
				t.Fatal(err)
			}
			nothingIsPosted(t, store)
		})
	}
}

// portions counts the messages that each append to a store drains.
func portions(inner checkpoint.Store) (*tampered, *[]int) {
	var drained []int
	return &tampered{Store: inner, before: func(_ context.Context, c call) error {
		ids := map[string]bool{}
		for _, e := range c.entries {
			if e.Post != "" {
				ids[e.Post] = true
			}
		}
		if len(ids) > 0 {
			drained = append(drained, len(ids))
		}
		return nil
	}}, &drained
}

// A cancel behind thousands of other messages is heard before them: nothing more begins, and none
// of them is lost.
func TestCancelAmongManyPosts(t *testing.T) {
	var w witness
	var inner memory.Store
	store, drained := portions(&inner)
	h := beginHeld(t, &w, store)
	want := postNotes(t, &inner, 2500)
	for range 3 {
		if err := h.Cancel(t.Context(), run, errors.New("enough"), dispatcher.Author("Ada")); err != nil {
			t.Fatal(err)
		}
	}
	<-h.ctx.Done()
	close(h.gate)
	e := <-h.ended
	rests(t, e.res, e.err, checkpoint.StatusCancelled, "c")
	w.expect(t, "a", "b")
	var rest *dispatcher.Rest
	if !errors.As(e.err, &rest) || rest.By != "Ada" {
		t.Errorf("the call returned %v, want it to name who cancelled it", e.err)
	}
	nothingIsPosted(t, &inner)
	if notes := len(notesFrom(t, &inner)); notes != len(want) {
		t.Errorf("the log has %d notes, want %d", notes, len(want))
	}
	if slices.Max(*drained) > 503 || len(*drained) > 7 {
		t.Errorf("the appends drain %v messages", *drained)
	}
}

// crowd is a graph with an Each of n items that all ask.
func crowd(t *testing.T, n int) *dag.Graph[Tale] {
	b := dag.New[Tale]("crowd")
	dag.Each(b, "item", func(*Tale) []int { return make([]int, n) }, func(ctx context.Context, s *Tale, _ int) error {
		_, err := dag.Ask[string](ctx, "k", "?")
		return err
	})
	return frozen(t, b)
}

// postAnswers posts an answer to each question, as calls of Answer would that nobody drains.
func postAnswers(t *testing.T, store checkpoint.Store, all []dispatcher.Interrupt) {
	t.Helper()
	for i, q := range all {
		data, err := json.Marshal(map[string]any{"replies": []any{map[string]any{"interrupt": q.ID, "how": checkpoint.AnswerGiven, "value": "yes"}}})
		if err != nil {
			t.Fatal(err)
		}
		p := checkpoint.Post{ID: fmt.Sprintf("answer:%012d", i+1), Kind: "answer", Data: data}
		if err := store.Post(t.Context(), run, p); err != nil {
			t.Fatal(err)
		}
	}
}

// Answers that were posted and never drained are all drained by the call that goes on, before it
// does, each as a whole.
func TestManyAnswersLeft(t *testing.T) {
	const items = 1300
	var inner memory.Store
	store, drained := portions(&inner)
	d := process(t, crowd(t, items), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, res.Cursor.Visits...)
	postAnswers(t, &inner, res.Interrupts)
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	nothingIsPosted(t, &inner)
	if !slices.Equal(*drained, []int{500, 500, 300}) {
		t.Errorf("the appends drain %v messages", *drained)
	}
}

// One message may answer more questions than a store can drain messages at once.
func TestOneMessageOfManyAnswers(t *testing.T) {
	const items = 6500
	d := process(t, crowd(t, items), openUnsyncedWith(t, leastAtomic), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, res.Cursor.Visits...)
	answers := map[string]any{}
	for _, q := range res.Interrupts {
		answers[q.ID] = "yes"
	}
	if err := d.Answers(t.Context(), run, answers); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
}
