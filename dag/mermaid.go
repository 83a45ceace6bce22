package dag

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid draws the graph as a flowchart of Mermaid. Nested graphs are subgraphs, lines
// carry outcomes, the lines of failures are dotted, and a circle stands where any or all
// of several edges are asked for in words.
func (g *Graph[S]) Mermaid() string {
	var s strings.Builder
	s.WriteString("flowchart TD\n")
	draw(g.built("Mermaid").doc, "").mermaid(&s, "    ")
	return s.String()
}

// brackets are what Mermaid writes round a label for each shape.
var brackets = map[string][2]string{
	"step":   {"[", "]"},
	"route":  {"{", "}"},
	"each":   {"[[", "]]"},
	"choose": {"{{", "}}"},
	"fail":   {"(((", ")))"},
	"end":    {"([", "])"},
	"all":    {"((", "))"},
	"any":    {"((", "))"},
}

func (p *drawing) mermaid(s *strings.Builder, indent string) {
	for _, f := range p.figures {
		label := `"` + mermaidText(f.label) + `"`
		if f.inner == nil {
			round := brackets[f.shape]
			fmt.Fprintf(s, "%s%s%s%s%s\n", indent, f.id, round[0], label, round[1])
			continue
		}
		fmt.Fprintf(s, "%ssubgraph %s[%s]\n", indent, f.id, label)
		f.inner.mermaid(s, indent+"    ")
		fmt.Fprintf(s, "%send\n", indent)
	}
	for _, l := range p.lines {
		arrow, label := "-->", l.label
		if l.failure {
			arrow, label = "-.->", "failed"
		}
		if label != "" {
			arrow += `|"` + mermaidText(label) + `"|`
		}
		fmt.Fprintf(s, "%s%s %s %s\n", indent, p.figures[l.from].id, arrow, p.figures[l.to].id)
	}
}

// mermaidText writes text so that it can stand between quotes in a label. Mermaid has no
// escapes but its entities, and reads some punctuation even there; so every character is
// written as its number unless it is known to be harmless. Newer versions read labels as Markdown,
// in which _x_ is slanted and "1. x" and "- x" are lists, that they don't draw.
func mermaidText(text string) string {
	var s strings.Builder
	all := []rune(text)
	word := func(i int) bool { return i >= 0 && i < len(all) && inWord(all[i]) }
	opened := false
	for i, r := range all {
		switch {
		case word(i), i > 0 && strings.ContainsRune(" -,(", r), r == ')' && opened, r == '_' && word(i-1) && word(i+1):
			s.WriteRune(r)
		default:
			fmt.Fprintf(&s, "#%d;", r)
		}
		opened = opened || r == '('
	}
	return s.String()
}

// inWord reports whether r is a letter, a digit, or printable and not of ASCII.
func inWord(r rune) bool {
	return r > unicode.MaxASCII && unicode.IsPrint(r) || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
