//go:build rivals

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudwego/eino/compose"

	"github.com/pawlgo/pawl/pawltest"
)

// paidByRivals does the work of twice with Eino and with LangGraph.js.
func paidByRivals(s session) ([]row, error) {
	rows, err := paidByEino(s)
	if err != nil {
		return rows, err
	}
	more, err := paidByLangGraph(s)
	return append(rows, more...), err
}

func paidByEino(s session) ([]row, error) {
	p := payer{line: "Eino", kills: s.scale(200, 5), begin: func() worker {
		return einoWork{einoModes[0], einoMap{}}
	}}
	return p.rows(s, "twice/eino",
		"Eino v0.7.36, interrupted after each stage and called again, so that it saves a checkpoint there: "+
			"it does so at no other time, and without those would be the loop that begins again")
}

// paidByLangGraph kills less often: it takes longer.
func paidByLangGraph(s session) ([]row, error) {
	const name = "twice/langgraph"
	js, err := startLangGraph(s.dir)
	if err != nil {
		return []row{absent(name, err.Error())}, nil
	}
	works := 0
	p := payer{line: "LangGraph.js", kills: s.scale(40, 2), begin: func() worker {
		works++
		return langGraphWork{js, works}
	}}
	rows, err := p.rows(s, name, fmt.Sprintf(
		"LangGraph.js %s (node %s), durability sync, saver memory, which outlives the lives", js.there.Version, js.there.Node))
	return rows, errors.Join(err, js.close())
}

// rows measures p, for a row, or none beside an error.
func (p *payer) rows(s session, name, note string) ([]row, error) {
	if err := p.pay(s); err != nil {
		return nil, err
	}
	return []row{shown(name, series{p.ratio}, "ratio",
		"the same for %s; at most %d visits were executed again after one of %d kills", note, p.again, p.died)}, nil
}

// An einoWork is the work as Eino does it. What it has saved outlives the lives.
type einoWork struct {
	mode  einoMode // both save at the same moments
	saved einoMap
}

func (w einoWork) live(end int) (lived, error) {
	l := &life{end: end}
	g, err := w.mode.stages(l.begin, einoMortal{w.saved, l})
	if err != nil {
		return lived{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		p, err := g.Invoke(ctx, plain{}, compose.WithCheckPointID("work"))
		if l.over() {
			return lived{began: l.began}, nil
		}
		if _, interrupted := compose.ExtractInterruptInfo(err); !interrupted {
			return lived{began: l.began, done: true}, counted(p, err, visitsNeeded)
		}
	}
}

// stages is workload for Eino. Each stage but the last is interrupted after it.
func (m einoMode) stages(begin func(visit int), store compose.CheckPointStore) (einoGraph, error) {
	g := compose.NewGraph[plain, plain]()
	var errs []error
	var names []string
	last := []string{compose.START}
	for i := range stagesOfWork {
		next := make([]string, sideBySide)
		for k := range next {
			next[k] = fmt.Sprintf("stage-%d-%d", i+1, k+1)
			errs = append(errs, g.AddLambdaNode(next[k], compose.InvokableLambda(func(ctx context.Context, p plain) (plain, error) {
				begin(i*sideBySide + k)
				if k > 0 {
					p = plain{} // what was counted goes on with the first, since they are added up
				}
				return einoStep(ctx, p)
			})))
			for _, before := range last {
				errs = append(errs, g.AddEdge(before, next[k]))
			}
		}
		if last = next; i < stagesOfWork-1 {
			names = append(names, next...)
		}
	}
	for _, before := range last {
		errs = append(errs, g.AddEdge(before, compose.END))
	}
	return m.compile(g, errs, []compose.GraphCompileOption{
		compose.WithCheckPointStore(store), compose.WithInterruptAfterNodes(names),
	})
}

// An einoMortal saves nothing when the life is over.
type einoMortal struct {
	einoMap
	*life
}

func (m einoMortal) Set(ctx context.Context, id string, data []byte) error {
	if m.over() {
		return pawltest.ErrDead
	}
	return m.einoMap.Set(ctx, id, data)
}

// A langGraphWork is a work that LangGraph.js does, by its number.
type langGraphWork struct {
	*langGraph
	work int
}

func (w langGraphWork) live(end int) (lived, error) {
	type life struct {
		Work   int   `json:"work"`
		End    int   `json:"end"`
		Slow   int64 `json:"slow"` // milliseconds
		Stages int   `json:"stages"`
		Sides  int   `json:"sides"`
	}
	var a struct {
		Began []int
		Done  bool
	}
	err := w.call(struct {
		Live life `json:"live"`
	}{life{w.work, end, slowVisit.Milliseconds(), stagesOfWork, sideBySide}}, &a)
	return lived{began: a.Began, done: a.Done}, err
}
