package dispatcher

import (
	"context"

	"github.com/pawlgo/pawl/internal/misuse"
)

// inside is the core of d, nil if d is nil or was not made by New: each call refuses that by
// called before it does anything.
func (d *Dispatcher[S]) inside() *core {
	if d == nil {
		return nil
	}
	return d.core
}

// named is inside, for a call that has no error to return.
func (d *Dispatcher[S]) named(call string) *core {
	c := d.inside()
	if c == nil {
		panic("dispatcher: " + call + ": the Dispatcher is nil: make one with New")
	}
	return c
}

// called refuses what no call can do without.
func (c *core) called(ctx context.Context) error {
	switch {
	case c == nil:
		return &OptionError{"Dispatcher", "is nil: make one with New"}
	case ctx == nil:
		return &OptionError{"context", misuse.NoContext}
	}
	return nil
}
