package dispatcher_test

import (
	"context"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A graph has a dispatcher for each store, here one for each of two tenants: runs of one name are
// two runs, and what becomes of one the other never hears of.
func TestStoreForEachTenant(t *testing.T) {
	quiet(t)
	ctx := t.Context()
	var w witness
	var hers, his memory.Store
	g := line(t, &w, func(_ context.Context, s *Tale) error {
		s.Notes.Put("b", "done for "+s.Word.Get())
		return nil
	})
	ada := process(t, g, &hers, dispatcher.Options{})
	bob := process(t, g, &his, dispatcher.Options{InterruptBefore: []string{"c"}})

	res, err := ada.Run(ctx, run, func(s *Tale) { s.Word.Set("ada") })
	completes(t, res, err)
	res, err = bob.Run(ctx, run, func(s *Tale) { s.Word.Set("bob") })
	rests(t, res, err, checkpoint.StatusInterrupted, "c")
	if err := ada.Store().Delete(ctx, run); err != nil {
		t.Fatal(err)
	}
	res, err = bob.Resume(ctx, run)
	completes(t, res, err)
	if got, _ := res.State.Notes.Get("b"); got != "done for bob" {
		t.Errorf("b was %s", got)
	}
	if page, err := ada.Store().List(ctx, checkpoint.Filter{}); err != nil || len(page) != 0 {
		t.Errorf("the other store lists %v, %v", page, err)
	}
	w.expect(t, "a", "b", "c", "a", "b", "c")
}
