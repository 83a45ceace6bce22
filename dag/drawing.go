package dag

import (
	"fmt"
	"strings"
)

// A drawing is a graph as figures and lines, before it is written in the words of a
// renderer. Figures have ids that are safe everywhere; labels are as the user gave them.
type drawing struct {
	figures []figure
	lines   []line
}

type figure struct {
	id    string
	label string
	shape string   // a kind of node, "end", "all" or "any"
	inner *drawing // of a node that has a graph
}

type line struct {
	from, to int // indexes of figures of the same drawing
	label    string
	failure  bool
}

// draw makes the drawing of d. Its ids begin with prefix.
func draw(d *document, prefix string) *drawing {
	p := &drawing{}
	at := make(map[string]int, len(d.Nodes))
	for i, n := range d.Nodes {
		f := figure{id: fmt.Sprintf("%sn%d", prefix, i), label: n.Name, shape: n.Kind}
		if n.Graph != nil {
			f.label += " (" + n.Kind + ")"
			f.inner = draw(n.Graph, f.id+"_")
		}
		at[n.Name] = i
		p.figures = append(p.figures, f)
	}
	for i, n := range d.Nodes {
		if n.Follows != nil {
			p.connect(*n.Follows, i, "all", at)
		}
	}
	if len(d.Ends) > 0 {
		end := p.add(figure{id: prefix + "stop", label: "end", shape: "end"})
		for _, e := range d.Ends {
			p.connect(e, end, "any", at)
		}
	}
	return p
}

func (p *drawing) add(f figure) int {
	p.figures = append(p.figures, f)
	return len(p.figures) - 1
}

// connect draws the lines of e to figure to. A figure joins its lines in one way, a node
// as all: where e joins in the other, a figure for the join is put between.
func (p *drawing) connect(e docExpr, to int, joins string, at map[string]int) {
	of, word := e.All, "all"
	if e.Any != nil {
		of, word = e.Any, "any"
	}
	if of == nil {
		p.lines = append(p.lines, line{at[e.Node], to, strings.Join(e.On, ", "), e.Failed})
		return
	}
	if word != joins {
		id := fmt.Sprintf("%s_join%d", p.figures[to].id, len(p.figures))
		join := p.add(figure{id: id, label: word, shape: word})
		p.lines = append(p.lines, line{from: join, to: to})
		to = join
	}
	for _, member := range of {
		p.connect(member, to, word, at)
	}
}
