//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/dgraph-io/badger/v4"
)

// An einoMode is one of the two ways in which Eino runs a graph.
type einoMode struct {
	name, note string
	trigger    compose.NodeTriggerMode
}

var einoModes = []einoMode{
	{"eino-pregel", "Eino v0.7.36, any predecessor", compose.AnyPredecessor},
	{"eino-dag", "Eino v0.7.36, all predecessors", compose.AllPredecessor},
}

// registerPlain tells Eino how to save what nodes hand over, and how to join it.
var registerPlain = func() func() {
	done := false
	return func() {
		if done {
			return
		}
		done = true
		schema.RegisterName[plain]("pawl_bench_plain")
		compose.RegisterValuesMergeFunc(func(sides []plain) (plain, error) {
			var sum plain
			for _, p := range sides {
				sum.Count += p.Count
			}
			return sum, nil
		})
	}
}()

type einoBody = func(context.Context, plain) (plain, error)

func einoStep(ctx context.Context, p plain) (plain, error) {
	err := plainStep(ctx, &p)
	return p, err
}

func einoWrite(ctx context.Context, p plain) (plain, error) {
	p.Title = text
	return einoStep(ctx, p)
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

// line makes a chain of n nodes and tells their names. The last node but one does what
// special says, if it is not nil.
func (m einoMode) line(n int, f, special einoBody, options ...compose.GraphCompileOption) (einoGraph, error) {
	g := compose.NewGraph[plain, plain]()
	last := compose.START
	var errs []error
	for i := 1; i <= n; i++ {
		name, body := einoNode(i), f
		if special != nil && i == n-1 {
			body = special
		}
		errs = append(errs, g.AddLambdaNode(name, compose.InvokableLambda(body)), g.AddEdge(last, name))
		last = name
	}
	errs = append(errs, g.AddEdge(last, compose.END))
	return m.compile(g, errs, options)
}

func einoNode(i int) string { return "node-" + strconv.Itoa(i) }

type einoGraph = compose.Runnable[plain, plain]

func (m einoMode) compile(g *compose.Graph[plain, plain], errs []error, options []compose.GraphCompileOption) (einoGraph, error) {
	registerPlain()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return g.Compile(context.Background(), append(slices.Clone(options), compose.WithNodeTriggerMode(m.trigger))...)
}

func (m einoMode) chain(n int) (contender, error) {
	g, err := m.line(n, einoStep, nil)
	return einoRuns(g, n), err
}

// fan is a first node, so many that follow it, and a last one. What the sides return is
// added up before the last one.
func (m einoMode) fan(width int) (contender, error) {
	g := compose.NewGraph[plain, plain]()
	errs := []error{
		g.AddLambdaNode("first", compose.InvokableLambda(einoStep)), g.AddEdge(compose.START, "first"),
		g.AddLambdaNode("last", compose.InvokableLambda(einoStep)), g.AddEdge("last", compose.END),
	}
	for i := 1; i <= width; i++ {
		name := "side-" + strconv.Itoa(i)
		body := func(ctx context.Context, _ plain) (plain, error) { return einoStep(ctx, plain{}) }
		errs = append(errs, g.AddLambdaNode(name, compose.InvokableLambda(body)),
			g.AddEdge("first", name), g.AddEdge(name, "last"))
	}
	r, err := m.compile(g, errs, nil)
	return einoRuns(r, width+1), err
}

// einoRuns calls g under a context that can be cancelled, and checks what it returns.
func einoRuns(g einoGraph, count int) contender {
	return func(times int) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range times {
			p, err := g.Invoke(ctx, plain{})
			if err := counted(p, err, count); err != nil {
				return err
			}
		}
		return nil
	}
}

func counted(p plain, err error, want int) error {
	if err == nil && p.Count != want {
		err = fmt.Errorf("a graph should count to %d, not to %d", want, p.Count)
	}
	return err
}

// durable saves after every node. Eino writes a checkpoint when a graph is interrupted and
// at no other time, so that each node is interrupted after it and the graph called again.
func (m einoMode) durable(n int, store *bare) (contender, error) {
	var names []string
	for i := 1; i < n; i++ {
		names = append(names, einoNode(i))
	}
	g, err := m.line(n, einoWrite, nil,
		compose.WithCheckPointStore(einoBadger{store}), compose.WithInterruptAfterNodes(names))
	made := 0
	return func(times int) error {
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
