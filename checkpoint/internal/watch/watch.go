// Package watch tells live runs of messages that were posted to them.
package watch

import "sync"

// A Board knows who waits for messages to which run. The zero Board is ready for use.
type Board struct {
	mu    sync.Mutex
	waits map[string]map[chan struct{}]bool
}

// Watch returns a channel that receives after a [Board.Tell] of run, and the function that
// ends that. Several of them may coalesce into one.
func (b *Board) Watch(run string) (told <-chan struct{}, stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waits == nil {
		b.waits = make(map[string]map[chan struct{}]bool)
	}
	if b.waits[run] == nil {
		b.waits[run] = make(map[chan struct{}]bool)
	}
	c := make(chan struct{}, 1)
	b.waits[run][c] = true
	return c, func() { b.stop(run, c) }
}

func (b *Board) stop(run string, c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits[run], c)
	if len(b.waits[run]) == 0 {
		delete(b.waits, run)
	}
}

// Tell wakes whoever watches run. It never blocks.
func (b *Board) Tell(run string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.waits[run] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
