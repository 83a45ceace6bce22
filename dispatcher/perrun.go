package dispatcher

import (
	"slices"
	"sync"
)

// A perRun is a list for each run that has one, of few values and seldom changed. Nobody ever waits
// in it.
type perRun[T comparable] struct {
	lists sync.Map // run id → *[]T, which is not empty and never changes
}

// of returns the list of a run. It must not be changed.
func (p *perRun[T]) of(run string) []T {
	if list, ok := p.lists.Load(run); ok {
		return *list.(*[]T)
	}
	return nil
}

func (p *perRun[T]) add(run string, v T) {
	for {
		old, there := p.lists.LoadOrStore(run, &[]T{v})
		if !there {
			return
		}
		more := append(slices.Clone(*old.(*[]T)), v)
		if p.lists.CompareAndSwap(run, old, &more) {
			return
		}
	}
}

// remove takes v out of the list of a run, and reports whether it was there.
func (p *perRun[T]) remove(run string, v T) bool {
	for {
		old, there := p.lists.Load(run)
		if !there || !slices.Contains(*old.(*[]T), v) {
			return false
		}
		others := slices.DeleteFunc(slices.Clone(*old.(*[]T)), func(o T) bool { return o == v })
		if len(others) == 0 && p.lists.CompareAndDelete(run, old) ||
			len(others) > 0 && p.lists.CompareAndSwap(run, old, &others) {
			return true
		}
	}
}
