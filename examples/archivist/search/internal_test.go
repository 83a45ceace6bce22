package search

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// Terms leaves nothing to quote, so this second line of defence is only visible from within.
func TestMatchQuotes(t *testing.T) {
	const want = `"maze" OR "OR" OR "a""b*"`
	if got := match([]string{"maze", "OR", `a"b*`}); got != want {
		t.Errorf("match = %s, want %s", got, want)
	}
}

// Only from within can a test hold the one connection.
func TestALookupStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, err := New(t.Context(), []catalogue.Book{{Title: "Mazes"}})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		busy, err := x.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Close()

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := x.FullText(ctx, "maze", 1)
			done <- err
		}()
		synctest.Wait() // until the lookup waits for the connection
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("FullText = %v, want %v", err, context.Canceled)
		}
	})
}
