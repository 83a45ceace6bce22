package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A conversation whose past is trimmed after each turn is streamed as the first one was: of all
// that is kept, and the state where that begins.
func TestStreamOfAConversationThatIsTrimmed(t *testing.T) {
	quiet(t)
	for _, states := range []bool{false, true} {
		var store memory.Store
		d := process(t, chatty(t), &store, dispatcher.Options{Retention: dispatcher.Retention{Last: 1}})
		for turn, text := range []string{"one", "two", "three"} {
			var first uint64
			if turn > 0 {
				info, err := store.Stat(t.Context(), run)
				if err != nil || info.First < 2 {
					t.Fatalf("the log begins at %d, %v", info.First, err)
				}
				first = info.First
			}
			var told, trimmed bool
			for item, err := range d.StreamTurn(t.Context(), run, word(text), dispatcher.Listen{States: states}, dispatcher.OrStart()) {
				if item.Result != nil {
					completes(t, item.Result, err)
					if item.Result.Turn != turn+1 || item.Result.State.Said.Len() != turn+1 {
						t.Errorf("turn %d ends with turn %d, %q", turn+1, item.Result.Turn, item.Result.State.Said.Slice())
					}
					break
				}
				e := item.Event
				if !told && turn > 0 && (e.Seq != first || e.Turn != turn) {
					t.Errorf("the stream begins with %s of turn %d, want entry %d of turn %d", e, e.Turn, first, turn)
				}
				told = true
				trimmed = trimmed || e.Kind == dispatcher.LogTrimmed
				if item.State != nil && item.State.Said.Len() != e.Turn {
					t.Errorf("%s shows %q", e, item.State.Said.Slice())
				}
			}
			if !told || trimmed != (turn > 0) {
				t.Errorf("turn %d: events were told: %t, that the log is trimmed: %t", turn+1, told, trimmed)
			}
		}
	}
}

// One that somebody else trims between the looks of a stream is told from where it begins by then.
func TestStreamBesideATrim(t *testing.T) {
	quiet(t)
	var w witness
	g := rewindLine(t, &w, "a", "b", "c")
	for _, states := range []bool{false, true} {
		for n, came := 1, true; came; n++ {
			came = false
			inner := new(memory.Store)
			other := process(t, g, inner, dispatcher.Options{})
			res, err := other.Run(t.Context(), run, nil)
			completes(t, res, err)
			if err := other.Trim(t.Context(), run, dispatcher.Retention{Last: 3}); err != nil {
				t.Fatal(err)
			}
			store := &tampered{Store: inner, before: func(ctx context.Context, c call) error {
				if c.method == "Read" && c.n == n {
					came = true
					if err := other.Trim(ctx, run, dispatcher.Retention{Last: 1}); err != nil && !errors.Is(err, dispatcher.ErrBusy) {
						return fmt.Errorf("the trim: %w", err)
					}
				}
				return nil
			}}
			d := process(t, g, store, dispatcher.Options{})
			_, res, err = eventsStreamed(t, d.Stream(t.Context(), run, nil, dispatcher.Listen{States: states}))
			if err != nil && !errors.Is(err, dispatcher.ErrBusy) || err == nil && res.Status != checkpoint.StatusCompleted {
				t.Errorf("Read %d beside a trim: %s, %v", n, res.Status, err)
			}
		}
	}
}
