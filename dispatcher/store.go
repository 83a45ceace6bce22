package dispatcher

import "github.com/pawlgo/pawl/checkpoint"

// Store returns the store that d was made with: nil if its runs leave no log. Layers that
// work on the same runs compare it with their own.
func (d *Dispatcher[S]) Store() checkpoint.Store { return d.named("Store").store }
