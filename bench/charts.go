package main

import (
	"os"
	"path/filepath"
	"slices"
)

// charts collect what is drawn, while it is measured.
type charts struct {
	chain, durable, stored, resume, twice chart
}

// A chart is lines over two axes.
type chart struct {
	lines []line
}

// A line is points, in the order in which they were measured.
type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// point adds one to the line of that name. The first line is the one that a chart is about.
func (c *chart) point(name string, x, y float64) {
	i := slices.IndexFunc(c.lines, func(l line) bool { return l.name == name })
	if i < 0 {
		i = len(c.lines)
		c.lines = append(c.lines, line{name: name})
	}
	c.lines[i].points = append(c.lines[i].points, point{x, y})
}

// draw writes the charts that have points into dir.
func (c *charts) draw(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		about look
		chart
	}{
		{"chain.svg", look{
			title: "What a further node costs, without a store", x: "nodes in the chain", y: "nanoseconds per node",
			logX: true, logY: true,
		}, c.chain},
		{"durable.svg", look{
			title: "Durable supersteps of 1 KB a second", x: "runs at once", y: "supersteps per second",
			logX: true, logY: true,
		}, c.durable},
		{"stored.svg", look{
			title: "What is stored of a run that collects 1 KB in each superstep", x: "supersteps", y: "MB stored",
			logX: true, logY: true,
		}, c.stored},
		{"resume.svg", look{
			title: "To answer a question and go on, with a memory store", x: "nodes before the question", y: "microseconds",
			logX: true, logY: true,
		}, c.resume},
		{"twice.svg", look{
			title: "Work paid twice", x: "kills in the time that the work takes", y: "visits executed ÷ visits needed",
			logY: true,
		}, c.twice},
	} {
		if len(f.within(f.about).lines) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), f.svg(f.about), 0o666); err != nil {
			return err
		}
	}
	return nil
}
