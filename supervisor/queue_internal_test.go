package supervisor

import "testing"

// A key that was passed over, since as many of its runs as may are at work, keeps its place before
// the keys behind it.
func TestAKeyThatWasPassedOverKeepsItsPlace(t *testing.T) {
	var q queue
	for _, run := range []string{"a-1", "a-2", "b-1", "c-1"} {
		q.push(&ticket{run: run, key: run[:1]})
	}
	pops := func(want string) {
		t.Helper()
		if next := q.pop(1); next == nil || next.run != want {
			t.Fatalf("it is the turn of %+v, want %s", next, want)
		}
	}
	pops("a-1")
	q.push(&ticket{run: "d-1", key: "d"})
	pops("b-1")
	pops("c-1")
	q.push(&ticket{run: "e-1", key: "e"})
	pops("d-1") // a is before d and e, and passed over
	q.over("a")
	pops("a-2")
	pops("e-1")
}

// A queue keeps nothing of keys of which nobody waits or is at work: there may be one for each run.
// What has left it does not wait.
func TestAQueueKeepsNothingOfWhatHasLeftIt(t *testing.T) {
	var q queue
	begun, removed := &ticket{run: "a", key: "a"}, &ticket{run: "b", key: "b"}
	q.push(begun)
	q.push(removed)
	if q.pop(1) != begun || !q.remove(removed) {
		t.Fatal("they did not wait")
	}
	if begun.waits || removed.waits {
		t.Error("one says that it waits")
	}
	if q.over("a"); len(q.waits)+len(q.turns)+len(q.atWork)+q.size != 0 {
		t.Errorf("%+v is left", q)
	}
}
