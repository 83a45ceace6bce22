package dag

import (
	"fmt"
	"strings"
)

// DOT draws the graph in the language of Graphviz, as [Graph.Mermaid] does in Mermaid's.
// Nested graphs are clusters.
func (g *Graph[S]) DOT() string {
	p := g.built("DOT")
	var s strings.Builder
	fmt.Fprintf(&s, "digraph %s {\n", dotText(p.Name))
	s.WriteString("    compound=true;\n    node [shape=box, style=rounded];\n")
	draw(p.doc, "").dot(&s, "    ")
	s.WriteString("}\n")
	return s.String()
}

// looks are the attributes of each shape. A step looks as nodes do by default.
var looks = map[string]string{
	"route":  ", shape=diamond, style=solid",
	"each":   ", peripheries=2",
	"choose": ", shape=hexagon, style=solid",
	"fail":   ", shape=doubleoctagon, style=solid",
	"end":    ", shape=doublecircle, style=solid",
	"all":    ", shape=circle, style=solid, fontsize=10, margin=0",
	"any":    ", shape=circle, style=solid, fontsize=10, margin=0",
}

func (p *drawing) dot(s *strings.Builder, indent string) {
	for _, f := range p.figures {
		if f.inner == nil {
			fmt.Fprintf(s, "%s%s [label=%s%s];\n", indent, f.id, dotText(f.label), looks[f.shape])
			continue
		}
		fmt.Fprintf(s, "%ssubgraph cluster_%s {\n", indent, f.id)
		fmt.Fprintf(s, "%s    label=%s;\n", indent, dotText(f.label))
		f.inner.dot(s, indent+"    ")
		fmt.Fprintf(s, "%s}\n", indent)
	}
	for _, l := range p.lines {
		from, to := p.figures[l.from], p.figures[l.to]
		var attributes []string
		if l.failure {
			attributes = append(attributes, "style=dotted", `label="failed"`)
		} else if l.label != "" {
			attributes = append(attributes, "label="+dotText(l.label))
		}
		if from.inner != nil {
			attributes = append(attributes, "ltail=cluster_"+from.id)
		}
		if to.inner != nil {
			attributes = append(attributes, "lhead=cluster_"+to.id)
		}
		fmt.Fprintf(s, "%s%s -> %s", indent, from.last(), to.first())
		if len(attributes) > 0 {
			fmt.Fprintf(s, " [%s]", strings.Join(attributes, ", "))
		}
		s.WriteString(";\n")
	}
}

// first and last are the figures at which lines to and from f are anchored: Graphviz
// draws lines between nodes only, and cuts them at the border of a cluster.
func (f figure) first() string {
	if f.inner == nil {
		return f.id
	}
	return f.inner.figures[0].first()
}

func (f figure) last() string {
	if f.inner == nil {
		return f.id
	}
	return f.inner.figures[len(f.inner.figures)-1].last()
}

// dotText quotes text. Graphviz reads backslashes and HTML's entities in quoted strings.
func dotText(text string) string {
	return `"` + strings.NewReplacer(
		`\`, `\\`, `"`, `\"`, "&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", `\n`,
	).Replace(text) + `"`
}
