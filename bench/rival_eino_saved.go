//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cloudwego/eino/compose"
	"github.com/dgraph-io/badger/v4"
)

// durable runs a chain of n nodes, so many times with a store, and saves after every node. Eino
// writes a checkpoint when a graph is interrupted and at no other time, so that each node is
// interrupted after it and the graph called again.
func (m einoMode) durable(n int) (func(store *bare, times int) error, error) {
	var store einoBadger
	var names []string
	for i := 1; i < n; i++ {
		names = append(names, einoNode(i))
	}
	g, err := m.line(n, einoWrite, nil,
		compose.WithCheckPointStore(&store), compose.WithInterruptAfterNodes(names))
	made := 0
	return func(b *bare, times int) error {
		store.bare = b
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range times {
			made++
			run := compose.WithCheckPointID("run-" + strconv.Itoa(made))
			p, err := g.Invoke(ctx, plain{}, run)
			for range n - 1 {
				if _, interrupted := compose.ExtractInterruptInfo(err); !interrupted {
					return fmt.Errorf("a graph should be interrupted after each node: %w", err)
				}
				p, err = g.Invoke(ctx, plain{}, run)
			}
			if err := counted(p, err, n); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// A doubt is a question's clock: it runs from when a run first asks.
type doubt struct {
	asked time.Time // zero before
	took  time.Duration
}

func (d *doubt) ask() {
	if d.asked.IsZero() {
		d.asked = time.Now()
	}
}

func (d *doubt) settle() {
	d.took += time.Since(d.asked)
	d.asked = time.Time{}
}

// einoAsk is ask for Eino, which calls it again without its input: it has to be saved.
func einoAsk(clock *doubt) einoBody {
	return func(ctx context.Context, p plain) (plain, error) {
		clock.ask()
		again, _, saved := compose.GetInterruptState[plain](ctx)
		if !again {
			return p, compose.StatefulInterrupt(ctx, "Shall I go on?", p)
		}
		if _, _, yes := compose.GetResumeContext[bool](ctx); !yes {
			return p, errors.New("the answer should be yes")
		}
		return einoStep(ctx, saved)
	}
}

// question runs a chain of n nodes, the last but one of which asks.
func (m einoMode) question(n int) (probe, error) {
	var clock doubt
	store := einoMap{}
	g, err := m.line(n, einoStep, einoAsk(&clock), compose.WithCheckPointStore(store))
	if err != nil {
		return nil, err
	}
	made := 0
	return func(times int) (time.Duration, error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		clock.took = 0
		for range times {
			made++
			id := "run-" + strconv.Itoa(made)
			_, err := g.Invoke(ctx, plain{}, compose.WithCheckPointID(id))
			info, interrupted := compose.ExtractInterruptInfo(err)
			if !interrupted {
				return 0, fmt.Errorf("a graph that asks should be interrupted: %w", err)
			}
			answer := compose.ResumeWithData(ctx, info.InterruptContexts[0].ID, true)
			p, err := g.Invoke(answer, plain{}, compose.WithCheckPointID(id))
			clock.settle()
			if err := counted(p, err, n); err != nil {
				return 0, err
			}
			delete(store, id)
		}
		return clock.took, nil
	}, nil
}

// An einoMap keeps checkpoints in memory.
type einoMap map[string][]byte

func (m einoMap) Get(_ context.Context, id string) ([]byte, bool, error) {
	data, ok := m[id]
	return data, ok, nil
}

func (m einoMap) Set(_ context.Context, id string, data []byte) error {
	m[id] = data
	return nil
}

// An einoBadger keeps each in a synced transaction of its own.
type einoBadger struct{ *bare }

func (b einoBadger) Get(_ context.Context, id string) (data []byte, ok bool, err error) {
	txn := b.db.NewTransactionAt(b.ts.Load(), false)
	defer txn.Discard()
	item, err := txn.Get([]byte(id))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	data, err = item.ValueCopy(nil)
	return data, err == nil, err
}

func (b einoBadger) Set(_ context.Context, id string, data []byte) error {
	ts := b.ts.Add(1)
	txn := b.db.NewTransactionAt(ts, true)
	defer txn.Discard()
	if err := txn.Set([]byte(id), data); err != nil {
		return err
	}
	return txn.CommitAt(ts, nil)
}
