package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// unchanged checks that what f does leaves a store as it was, as far as a run is concerned:
// what Stat tells, every entry and every post. The run need not exist. A call that had to
// look at the run under its lease has raised the epoch, which is no part of the run.
func unchanged(t testing.TB, store checkpoint.Store, run string, f func()) {
	t.Helper()
	before := kept(t, store, run)
	f()
	if after := kept(t, store, run); !slices.Equal(before, after) {
		t.Errorf("the store has changed: it held\n%s\nand holds\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// kept is what a store holds of a run, as text to compare.
func kept(t testing.TB, store checkpoint.Store, run string) []string {
	t.Helper()
	ctx := context.Background()
	info, err := store.Stat(ctx, run)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	info.Epoch = 0
	lines := []string{asJSON(t, info)}
	if info.Head.Seq > 0 {
		for e, err := range store.Read(ctx, run, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprint(e.Seq, e.At, asJSON(t, e)))
		}
	}
	posts, err := store.Posts(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range posts {
		lines = append(lines, asJSON(t, p))
	}
	return lines
}
