package watch_test

import (
	"testing"

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
