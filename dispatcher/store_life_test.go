package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// lived is a graph with all that a log tells: two nodes side by side, one with an effect and one
// that asks, a loop, a note, and a value that is emitted.
func lived(t testing.TB) *dag.Graph[Tale] {
	b := dag.New[Tale]("lived")
	pays := dag.Step(b, "pays", func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "pay", 5, func(context.Context, int) (string, error) { return "paid", nil }, dag.Replayable)
		s.Said.Append(receipt)
		return err
	})
	asks := dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", "which?")
		s.Word.Set(word)
		return err
	})
	inner := dag.New[Tale]("again")
	dag.Step(inner, "turn", func(ctx context.Context, s *Tale) error {
		s.Said.Append(fmt.Sprint("turn ", s.Said.Len()))
		if err := dag.Emit(ctx, "said", s.Said.Len()); err != nil {
			return err
		}
		return dag.Note(ctx, "turned", s.Said.Len())
	})
	loop := dag.Loop(b, "loop", frozen(t, inner), func(s *Tale) bool { return s.Said.Len() > 2 }, 3, pays, asks)
	dag.Step(b, "ends", func(_ context.Context, s *Tale) error { s.Said.Append("end"); return nil }, loop)
	return frozen(t, b)
}

// live brings the run on as a program does that answers what it is asked, until it is completed or
// the process dies.
func live(t *testing.T, g *dag.Graph[Tale], store checkpoint.Store) (*dispatcher.Result[Tale], error) {
	d := process(t, g, store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		return res, err
	}
	if err := d.Answer(t.Context(), run, "", "yes"); err != nil && !errors.Is(err, dispatcher.ErrNotAwaited) {
		return nil, err
	}
	return d.Run(t.Context(), run, nil)
}

// imageOf is a state as JSON.
func imageOf(t *testing.T, s *Tale) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Scenario 52 of stores: the process dies before or behind any write of a run with effects, a
// question, a loop, notes and events. What is there then is what was there before that write, or
// behind it: the state is one that the run has at a checkpoint, the events are the entries without
// a gap, nothing in the store is damaged; and the run comes to the same end.
func TestLife52EveryWriteBoundary(t *testing.T) {
	g := lived(t)
	images := map[string]bool{imageOf(t, new(Tale)): true}
	var whole memory.Store
	res, err := live(t, g, &whole)
	completes(t, res, err)
	want := imageOf(t, res.State)
	d := process(t, g, &whole, dispatcher.Options{})
	for c, err := range d.History(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		then, err := d.At(t.Context(), run, c.Address())
		if err != nil {
			t.Fatal(err)
		}
		images[imageOf(t, then.State)] = true
	}
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			store := &pawltest.Mortal{Store: new(memory.Store)}
			if store.DieBefore(n); after {
				store.DieAfter(n)
			}
			_, _ = live(t, g, store)
			if !store.Died() {
				if n < 10 {
					t.Errorf("the run has %d writes only", n-1)
				}
				break
			}
			if err := store.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			agrees(t, fmt.Sprintf("death at write %d, behind it: %t", n, after), g, store, images)
			res, err := live(t, g, store)
			if completes(t, res, err); imageOf(t, res.State) != want {
				t.Errorf("death at write %d, behind it: %t: the run ends as %s, want %s", n, after, imageOf(t, res.State), want)
			}
		}
	}
}

// agrees checks that all that can be read of a run tells the same, and is one of the images.
func agrees(t *testing.T, when string, g *dag.Graph[Tale], store checkpoint.Store, images map[string]bool) {
	t.Helper()
	info, err := store.Stat(t.Context(), run)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return // it had not begun
	}
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	for f, err := range checkpoint.Verify(t.Context(), store, run) {
		t.Errorf("%s: found %v, %v", when, f, err)
	}
	d := process(t, g, store, dispatcher.Options{})
	res, err := d.State(t.Context(), run)
	if err != nil || !images[imageOf(t, res.State)] || res.Cursor.Seq != info.Head.Seq {
		t.Errorf("%s: the state at %s is %s, %v", when, res.Cursor, imageOf(t, res.State), err)
	}
	next := uint64(1)
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil || e.Seq != next {
			t.Fatalf("%s: event %d where %d is next, %v", when, e.Seq, next, err)
		}
		next++
	}
	if next != info.Head.Seq+1 {
		t.Errorf("%s: events end at %d, the log at %d", when, next-1, info.Head.Seq)
	}
}

// Scenario 53 of stores: a byte of a run's log is garbled on the disk. The store is refused as
// damaged, again and again: nobody takes the run for a new one, nothing is removed or written, and
// with the byte put right all is there.
func TestLife53GarbledIsNotNew(t *testing.T) {
	dir := t.TempDir()
	g := chainOf(t, 3, func(_ context.Context, i int, s *Tale) error { s.Said.Append(fmt.Sprint("said-by-", i)); return nil })
	open := func() (*badgerstore.Store, error) { return badgerstore.Open(t.Context(), dir, badgerstore.Options{}) }
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, func(s *Tale) { s.Word.Set("given") })
	completes(t, res, err)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	garble(t, dir, "said-by-1", "said-by-7")
	before := filesIn(t, dir)
	for range 2 {
		if _, err := open(); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Fatalf("the store is opened: %v", err)
		}
	}
	if after := filesIn(t, dir); !maps.Equal(after, before) {
		t.Error("a store that was refused has changed")
	}
	garble(t, dir, "said-by-7", "said-by-1")
	if store, err = open(); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	again, err := process(t, g, store, dispatcher.Options{}).State(t.Context(), run)
	if completes(t, again, err); imageOf(t, again.State) != imageOf(t, res.State) {
		t.Errorf("the run reads as %s, want %s", imageOf(t, again.State), imageOf(t, res.State))
	}
}

// filesIn is what the files under a directory hold, but for the lock.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// garble writes one text in place of another of its length in the files of a store.
func garble(t *testing.T, dir, text, with string) {
	t.Helper()
	changed := 0
	for path, b := range filesIn(t, dir) {
		n := strings.Count(b, text)
		if changed += n; n == 0 {
			continue
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(b, text, with)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed == 0 {
		t.Fatalf("%q stands nowhere in the store", text)
	}
}

// Scenario 56 of stores: in a store with a Cipher nothing of what a run says is in its files: no
// input, state, effect, question, answer, note, message that waits, fork or snapshot. Without one
// it is.
func TestLife56NothingIsReadable(t *testing.T) {
	const secret = "open-sesame"
	key, err := checkpoint.NewKey("first", []byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := checkpoint.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New[Tale]("tells")
	tells := dag.Step(b, "tells", func(ctx context.Context, s *Tale) error {
		said, err := dag.Effect(ctx, "tell", secret+"-input", func(context.Context, string) (string, error) {
			return secret + "-output", nil
		})
		if err != nil {
			return err
		}
		s.Said.Append(said, secret+"-state", strings.Repeat(secret, 10_000))
		return dag.Note(ctx, "told", secret+"-note")
	})
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", secret+"-question")
		s.Word.Set(word)
		return err
	}, tells)
	g := frozen(t, b)
	for name, o := range map[string]badgerstore.Options{"plain": {}, "sealed": {Cipher: keys}} {
		dir := t.TempDir()
		store, err := badgerstore.Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		d := process(t, g, store, dispatcher.Eager(dispatcher.Options{}))
		res, err := d.Run(t.Context(), run, func(s *Tale) { s.Notes.Put("note", secret+"-given") })
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		if _, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{}); err != nil {
			t.Fatal(err)
		}
		if err := d.Enqueue(t.Context(), run, func(s *Tale) { s.Word.Set(secret + "-message") }); err != nil {
			t.Fatal(err)
		}
		if err := d.Answer(t.Context(), run, "", secret+"-answer"); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"open", "closed"} {
			found := 0
			for _, b := range filesIn(t, dir) {
				found += strings.Count(b, secret)
			}
			if name == "sealed" && found > 0 || name == "plain" && found == 0 {
				t.Errorf("%s, %s: the secret stands in the files %d times", name, when, found)
			}
			if when == "open" {
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
