package dispatcher_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// rejectPost is a message that answers interrupts, as a dispatcher that did not know better has
// left it in a store.
func rejectPost(t testing.TB, number int, by string, pairs ...string) checkpoint.Post {
	t.Helper()
	var replies []map[string]string
	for i := 0; i < len(pairs); i += 2 {
		replies = append(replies, map[string]string{"interrupt": pairs[i], "how": checkpoint.AnswerGiven, "value": pairs[i+1]})
	}
	data, err := json.Marshal(map[string]any{"replies": replies, "by": by})
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.Post{ID: fmt.Sprintf("answer:%012d", number), Kind: "answer", Data: data}
}

// rejectLeft are messages that a store may hold of a run whose visit a rejected: none but the
// rejection can count, and a message whose own replies exclude each other does not count at all.
func rejectLeft(t testing.TB, a, b string) map[string][]checkpoint.Post {
	const approve, reject = string(dispatcher.Approve), string(dispatcher.Reject)
	return map[string][]checkpoint.Post{
		"an approval behind":   {rejectPost(t, 1, "Ada", a, reject), rejectPost(t, 2, "Bob", b, approve)},
		"a rejection behind":   {rejectPost(t, 1, "Ada", a, reject), rejectPost(t, 2, "Bob", b, reject)},
		"both in one":          {rejectPost(t, 1, "Ada", a, reject, b, reject), rejectPost(t, 2, "Ada", a, reject)},
		"the approval in one":  {rejectPost(t, 1, "Ada", a, reject, b, approve), rejectPost(t, 2, "Ada", a, reject)},
		"one behind the other": {rejectPost(t, 1, "Ada", a, reject), rejectPost(t, 2, "Bob", b, approve, a, approve)},
	}
}

// A run whose store holds such messages already goes on: those that can't count are drained.
func TestRejectLeftInTheStore(t *testing.T) {
	for name := range rejectLeft(t, "a", "b") {
		for _, sorted := range []bool{false, true} {
			for _, paranoid := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %t, paranoid=%t", name, sorted, paranoid), func(t *testing.T) {
					rejectFound(t, new(memory.Store), name, sorted, paranoid)
				})
			}
		}
	}
	t.Run("badger", func(t *testing.T) {
		store, err := badgerstore.Open(t.Context(), t.TempDir(), badgerstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rejectFound(t, store, "both in one", true, true)
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

func rejectFound(t *testing.T, store checkpoint.Store, left string, sorted, paranoid bool) {
	var w witness
	o := rejectWays()["two interceptors"]
	o.Paranoid = paranoid
	d, err := dispatcher.New(rejectPair(t, &w, closedChan()), store, o)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = d.Run(t.Context(), run, nil)
	w.expect(t, "works")
	a, b := rejectWaits(t, d, sorted)
	for _, p := range rejectLeft(t, a, b)[left] {
		if err := store.Post(t.Context(), run, p); err != nil {
			t.Fatal(err)
		}
	}
	_, err = d.Run(t.Context(), run, nil)
	rejectEnded(t, store, err, 1)
	if got := kinds(readLog(t, store), checkpoint.Noted); len(got) != 1 {
		t.Errorf("noted %q, want the one message that does not count", got)
	}
	w.expect(t)
}

// Somebody who answers a run at rest whose store holds such messages drains them as well.
func TestRejectLeftIsDrainedByAnAnswer(t *testing.T) {
	var w witness
	store := new(memory.Store)
	d := process(t, rejectPair(t, &w, closedChan()), store, rejectWays()["a gate as well"])
	_, _ = d.Run(t.Context(), run, nil)
	a, b := rejectWaits(t, d, true)
	if err := store.Post(t.Context(), run, rejectPost(t, 1, "Ada", a, "reject", b, "reject")); err != nil {
		t.Fatal(err)
	}
	if err := d.Answer(t.Context(), run, b, dispatcher.Reject); err != nil {
		t.Fatal(err)
	}
	_, err := d.Run(t.Context(), run, nil)
	rejectEnded(t, store, err, 1)
}

// Whatever append the process dies at: the visit is rejected, once, and nobody's message stays.
func TestRejectSurvivesCrashes(t *testing.T) {
	for left := range maps.Keys(rejectLeft(t, "a", "b")) {
		for _, written := range []bool{false, true} {
			for life := 1; rejectCrash(t, left, life, written); life++ {
				if t.Failed() || life > 30 {
					t.Fatalf("%s: crash at append %d, written=%t", left, life, written)
				}
			}
		}
	}
}

// rejectCrash reports whether the process came to its death.
func rejectCrash(t *testing.T, left string, life int, written bool) (died bool) {
	t.Helper()
	var w witness
	store := new(mortal)
	g, o := rejectPair(t, &w, closedChan()), rejectWays()["two interceptors"]
	posted := false
	for range 10 {
		if err := store.revive(t.Context(), life, written); err != nil {
			t.Fatal(err)
		}
		_, err := process(t, g, store, o).Run(t.Context(), run, nil)
		if store.died() {
			died, life = true, 0
			if rejectFailed(readLogIf(t, &store.Store)) { // the next Run would ask anew
				return died
			}
			continue
		}
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			rejectEnded(t, &store.Store, err, 1)
			return died
		}
		if posted {
			t.Fatalf("%s: the run waits, although it was answered: %v", left, err)
		}
		life = store.process().Left()
		a, b := rejectWaits(t, process(t, g, &store.Store, o), true)
		for _, p := range rejectLeft(t, a, b)[left] {
			if err := store.Store.Post(t.Context(), run, p); err != nil {
				t.Fatal(err)
			}
		}
		posted = true
	}
	t.Error("the run does not come to its end")
	return false
}

// rejectFailed reports whether the run rests, with held rejected once.
func rejectFailed(log []checkpoint.Entry) bool {
	return len(log) > 0 && log[len(log)-1].Kind == checkpoint.Failed && len(kinds(log, checkpoint.Answered)) == 1
}
