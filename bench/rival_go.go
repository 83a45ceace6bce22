//go:build rivals

package main

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// errgroups runs n bodies one after the other, each in an errgroup of its own.
func errgroups(n int) contender {
	return each(func(ctx context.Context) error {
		var p plain
		for range n {
			g, inner := errgroup.WithContext(ctx)
			g.Go(func() error { return plainStep(inner, &p) })
			if err := g.Wait(); err != nil {
				return err
			}
		}
		return nil
	})
}
