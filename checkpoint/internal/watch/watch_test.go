package watch_test

import (
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint/internal/watch"
)

func woken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestBoard(t *testing.T) {
	var b watch.Board
	b.Tell("nobody watches")
	first, stopFirst := b.Watch("run")
	second, stopSecond := b.Watch("run")
	other, stopOther := b.Watch("other")
	b.Tell("run")
	b.Tell("run") // coalesces, and does not block
	if !woken(first) || woken(first) || !woken(second) || woken(other) {
		t.Error("a watcher was not woken once")
	}
	stopFirst()
	stopFirst()
	b.Tell("run")
	if woken(first) || !woken(second) {
		t.Error("stopping one watch ended another, or did not end it")
	}
	stopSecond()
	b.Tell("other")
	if woken(second) || !woken(other) {
		t.Error("stopping one watch ended another, or did not end it")
	}
	stopOther()
}

func TestTellAll(t *testing.T) {
	var b watch.Board
	b.TellAll()
	first, stopFirst := b.Watch("run")
	other, stopOther := b.Watch("other")
	b.TellAll()
	if !woken(first) || !woken(other) {
		t.Error("a watcher was not woken")
	}
	stopFirst()
	stopFirst() // counts once
	b.Tell("other")
	if woken(first) || !woken(other) {
		t.Error("stopping one watch ended another, or did not end it")
	}
	stopOther()
}

// Messages are told apart by their times, however fast they come and whoever posts them.
func TestNowRises(t *testing.T) {
	var b watch.Board
	var all sync.WaitGroup
	times := make([][]time.Time, 4)
	for i := range times {
		all.Go(func() {
			for range 1000 {
				times[i] = append(times[i], b.Now())
			}
		})
	}
	all.Wait()
	seen := map[time.Time]bool{}
	for _, mine := range times {
		for k, now := range mine {
			if seen[now] || k > 0 && !mine[k-1].Before(now) {
				t.Fatalf("%v comes again", now)
			}
			seen[now] = true
		}
	}
}
