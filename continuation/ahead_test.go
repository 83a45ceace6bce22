package continuation_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// A timer that is due is on time, though input is queued that came from a host whose clock was
// ahead.
func TestTimerBesideInputFromAhead(t *testing.T) {
	expires := afterAnHour()
	expires.OnExpire = continuation.Expire()
	for name, w := range map[string]continuation.Wait{"told": afterAnHour(), "expires": expires} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := waiting(t, w, dag.Policy{}, timed)
				p := talk(t, g)
				if err := p.d.Enqueue(t.Context(), run, func(*Talk) {}); err != nil {
					t.Fatal(err)
				}
				posts, err := p.store.Posts(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				posts[0].At = time.Now().Add(3 * time.Hour)
				from, to := p.store.(*memory.Store), &memory.Store{}
				l, err := to.Acquire(t.Context(), run, "who moves it")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := to.Restore(t.Context(), l, checkpoint.Archive{Envelopes: from.Envelopes(t.Context(), run), Posts: posts}); err != nil {
					t.Fatal(err)
				}
				p = begin(t, g, to, continuation.Options{})
				lasts(time.Hour)
				if _, err := p.rt.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
				if said := p.said(run); !slices.Contains(said, "on time") {
					t.Errorf("swept when the timer is due the run says %q", said)
				}
			})
		})
	}
}
