package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// timeLine is a run of three steps, which is completed.
func timeLine(t *testing.T, store checkpoint.Store, o dispatcher.Options) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	var w witness
	d := callsDispatcher(t, line(t, &w, nil), store, o)
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("given") })
	completes(t, res, err)
	return d
}

// timeAt is what was said at an address.
func timeAt(t *testing.T, d *dispatcher.Dispatcher[Tale], address string) string {
	t.Helper()
	res, err := d.At(t.Context(), run, address)
	if err != nil {
		t.Fatalf("at %q: %v", address, err)
	}
	return fmt.Sprint(res.State.Said.Slice())
}

// timeReplayed checks that the newest snapshot of the run is what a replay comes to.
func timeReplayed[S any](t *testing.T, d *dispatcher.Dispatcher[S], store checkpoint.Store) {
	t.Helper()
	snap, err := store.Snapshot(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := dispatcher.Replayed(t.Context(), d, run, snap.Head.Seq)
	if err != nil || string(snap.Data) != string(want) {
		t.Errorf("the snapshot at %d is\n%s\nand a replay, %v, comes to\n%s", snap.Head.Seq, snap.Data, err, want)
	}
}

// Scenario 48: a tag that is used again stays where it was. What would be odd in a path or in
// a file is a name as any other.
func TestLife48TagsStay(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := timeLine(t, store, o)
		for i, name := range []string{"draft", "a/b", "..", "../../etc", "tag:draft", "0", "7", strings.Repeat("n", 128)} {
			at := fmt.Sprint(i%3 + 1)
			if err := d.Tag(t.Context(), run, at, name, dispatcher.Author("Ada")); err != nil {
				t.Fatal(err)
			}
			if got, want := timeAt(t, d, "tag:"+name), timeAt(t, d, at); got != want {
				t.Errorf("tag %q is at %s, want %s", name, got, want)
			}
		}
		unchanged(t, store, run, func() {
			err := d.Tag(t.Context(), run, "3", "draft")
			var taken *dispatcher.TagError
			if !errors.As(err, &taken) || taken.Run != run || taken.Name != "draft" || taken.Seq == 0 {
				t.Fatalf("the tag was given again: %v", err)
			}
			if got := timeAt(t, d, fmt.Sprint(run, "@", taken.Seq)); got != "[a]" {
				t.Errorf("the error says that the tag is at %s", got)
			}
			for _, address := range []string{"1", "@1", "tag:draft", fmt.Sprint(run, "@", taken.Seq)} {
				if err := d.Tag(t.Context(), run, address, "draft", dispatcher.Author("Bob")); err != nil {
					t.Errorf("the same tag again, at %s: %v", address, err)
				}
			}
		})
		if got := timeAt(t, d, "tag:draft"); got != "[a]" {
			t.Errorf("the first checkpoint is no longer found: %s", got)
		}
	})
}

// Scenario 48: names that nobody could read, or that could be another address, are refused.
// So are checkpoints that do not exist. Nothing changes.
func TestLife48TagsRefused(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := timeLine(t, &store, dispatcher.Options{})
	none, err := dispatcher.New(callsGraph(t, nothing[Tale]), nil, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	unchanged(t, &store, run, func() {
		for _, name := range []string{"", strings.Repeat("n", 1024), strings.Repeat("n", 129), "a\nb", "\xff", "b@1", "@"} {
			var refused *dispatcher.OptionError
			if err := d.Tag(ctx, run, "1", name); !errors.As(err, &refused) {
				t.Errorf("tag %q: %v", name, err)
			}
		}
		var secret *dispatcher.SecretError
		if err := d.Tag(ctx, run, "1", "sk-proj-"+strings.Repeat("aB3", 16)); !errors.As(err, &secret) {
			t.Errorf("a secret: %v", err)
		}
		for _, address := range []string{"9", "tag:", "tag:none", "x@0", run + "@0", run + "@99", "tag:a@1"} {
			if err := d.Tag(ctx, run, address, "x"); !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("address %q: %v", address, err)
			}
			if _, err := d.At(ctx, run, address); !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("At %q: %v", address, err)
			}
		}
		if err := d.Tag(ctx, "nobody", "1", "x"); !errors.Is(err, dispatcher.ErrNotFound) {
			t.Errorf("no run: %v", err)
		}
		if err := d.Tag(ctx, "", "1", "x"); !errors.Is(err, dispatcher.ErrRunID) {
			t.Errorf("no id: %v", err)
		}
		if err := d.Tag(ctx, run, "1", "x", dispatcher.Message("m")); err == nil {
			t.Error("an option of another call was taken")
		}
	})
	if err := none.Tag(ctx, run, "1", "x"); !errors.Is(err, dispatcher.ErrNoStore) {
		t.Errorf("no store: %v", err)
	}
}

// The state as a run was opened has an address, and can have a name.
func TestTimeOpenedHasAnAddress(t *testing.T) {
	var store memory.Store
	d := timeLine(t, &store, dispatcher.Options{})
	if err := d.Tag(t.Context(), run, "0", "input"); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"0", "@0", run + "@1", "tag:input"} {
		res, err := d.At(t.Context(), run, address)
		if err != nil {
			t.Fatalf("%q: %v", address, err)
		}
		if res.State.Word.Get() != "given" || res.State.Said.Len() != 0 || res.Superstep != 0 || res.Status != checkpoint.StatusPending {
			t.Errorf("at %q the run is %s at superstep %d: %s", address, res.Status, res.Superstep, asJSON(t, res.State))
		}
	}
}

// A live run is given tags too: they are found at once, and are in its log when it rests, with
// who gave them.
func TestTimeTagOfALiveRun(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		var w witness
		var d *dispatcher.Dispatcher[Tale]
		g := line(t, &w, func(ctx context.Context, s *Tale) error {
			ctx = context.WithoutCancel(ctx)
			if err := d.Tag(ctx, run, "1", "first", dispatcher.Author("Ada")); err != nil {
				return err
			}
			if err := d.Tag(ctx, run, "1", "first"); err != nil {
				return fmt.Errorf("again: %w", err)
			}
			var taken *dispatcher.TagError
			if err := d.Tag(ctx, run, "0", "first"); !errors.As(err, &taken) {
				return fmt.Errorf("at another checkpoint: %w", err)
			}
			res, err := d.At(ctx, run, "tag:first")
			if err == nil {
				s.Word.Set(fmt.Sprint(res.State.Said.Slice()))
			}
			return err
		})
		d = callsDispatcher(t, g, store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if got := res.State.Word.Get(); got != "[a]" {
			t.Errorf("the tag was found at %s", got)
		}
		if err := d.Tag(t.Context(), run, "2", "second"); err != nil { // and completed ones
			t.Fatal(err)
		}
		told := map[string]string{}
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == dispatcher.CheckpointTagged {
				told[e.Name] = e.By
			}
		}
		if want := map[string]string{"first": "Ada", "second": ""}; fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("the log tells the tags %v, want %v", told, want)
		}
		if posts, err := store.Posts(t.Context(), run); len(posts) > 0 {
			t.Errorf("posts that are left: %v, %v", posts, err)
		}
	})
}

// Of many that give one name to different checkpoints at once one succeeds, and it is there
// that the name is.
func TestTimeTagGivenByMany(t *testing.T) {
	quiet(t)
	var store memory.Store
	d := timeLine(t, &store, dispatcher.Options{})
	var all sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		all.Go(func() { errs[i] = d.Tag(t.Context(), run, fmt.Sprint(i%4), "it") })
	}
	all.Wait()
	at, err := d.At(t.Context(), run, "tag:it")
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		var taken *dispatcher.TagError
		if is := i%4 == at.Superstep; is != (err == nil) || !is && !errors.As(err, &taken) {
			t.Errorf("the tag is at superstep %d, and who gave it to %d was told %v", at.Superstep, i%4, err)
		}
	}
	if tagged := kinds(readLog(t, &store), checkpoint.Tagged); len(tagged) != 1 {
		t.Errorf("the log has the tags %q", tagged)
	}
}

// A tag that was begun by a process that died, before or behind the append, is given when it
// is given again; and a snapshot knows it as a replay does.
func TestTimeTagSurvivesCrashes(t *testing.T) {
	for _, written := range []bool{false, true} {
		store := new(mortal)
		d := timeLine(t, store, dispatcher.Options{})
		if err := store.revive(t.Context(), 1, written); err != nil {
			t.Fatal(err)
		}
		if err := d.Tag(t.Context(), run, "2", "it"); !errors.Is(err, errDead) {
			t.Fatalf("the process died: %v", err)
		}
		if err := store.revive(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
		if got := timeAt(t, d, "tag:it"); got != "[a b]" {
			t.Errorf("the tag is at %s before it is given again", got)
		}
		if err := d.Tag(t.Context(), run, "2", "it"); err != nil {
			t.Fatal(err)
		}
		var w witness
		d = callsDispatcher(t, line(t, &w, nil), store, dispatcher.Eager(dispatcher.Options{}))
		res, err := d.Turn(t.Context(), run, nil)
		completes(t, res, err)
		if got := timeAt(t, d, "tag:it"); got != "[a b]" {
			t.Errorf("the tag is at %s in the next turn", got)
		}
		if tagged := kinds(readLog(t, store), checkpoint.Tagged); len(tagged) != 1 {
			t.Errorf("the log has the tags %q", tagged)
		}
		timeReplayed(t, d, store)
	}
}
