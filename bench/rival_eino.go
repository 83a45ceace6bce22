//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
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
	return each(func(ctx context.Context) error {
		p, err := g.Invoke(ctx, plain{})
		return counted(p, err, count)
	})
}

func counted(p plain, err error, want int) error {
	if err == nil && p.Count != want {
		err = fmt.Errorf("a graph should count to %d, not to %d", want, p.Count)
	}
	return err
}
