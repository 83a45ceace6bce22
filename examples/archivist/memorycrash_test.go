package main

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A process that answers two questions, the second one about the first, dies at any of its writes.
// The next one puts both again, and the answer is that of a process that lives: what it remembers
// is what is in the store.
func TestArchivistRemembersOverCrashes(t *testing.T) {
	t.Parallel()
	want, err := remembering(t, new(memory.Store))
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			store := &pawltest.Mortal{Store: new(memory.Store)}
			if store.DieBefore(n); after {
				store.DieAfter(n)
			}
			_, err := remembering(t, store)
			died := store.Died()
			if died != errors.Is(err, pawltest.ErrDead) {
				t.Fatalf("write %d, after it %t: died %t, and the process says %v", n, after, died, err)
			}
			if !died {
				break
			}
			if err := store.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := remembering(t, store); err != nil || got != want {
				t.Fatalf("write %d, after it %t: the answer is\n%s\n%v, want\n%s", n, after, got, err, want)
			}
		}
	}
}

// remembering is a process that asks for books and then what was asked. It returns the last answer.
func remembering(t *testing.T, store checkpoint.Store) (string, error) {
	t.Helper()
	lib := defaultLibrary(t)
	d := dispatch(t, lib, store, dispatcher.Options{})
	lib.runs = archiveOf(t, lib, d, store).completed
	answer := ""
	for _, question := range []string{"mirrors", crashQuestions[Visits]} {
		res, err := d.Run(t.Context(), question[:4], func(q *Inquiry) { q.Query.Set(question) })
		if err != nil {
			return "", err
		}
		answer = res.State.Answer.Get()
	}
	return answer, nil
}
