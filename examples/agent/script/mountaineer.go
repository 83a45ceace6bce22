package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A document is as much as the mountaineer reads of the material.
type document struct {
	Task       string
	Audience   string
	Conclusion string
	Steps      map[string]struct {
		Parent, Status, Error string
		Tool                  *struct{ Tool, Output string }
	}
	Facts map[string]struct{ Content, Step string }
}

var (
	compared = regexp.MustCompile(`(?i)\b(?:higher|taller) is (.+?) than (.+?)(?:[?.,;]|$)`)
	metres   = regexp.MustCompile(`(\d+) metres`)
	noted    = regexp.MustCompile(`(?i)\b(?:note|write) it down(?: in ([\w.-]+\w))?`)
)

// Mountaineer is a model that knows one thing: how much higher one mountain is than another. It
// looks both up, reckons, writes it down if the task says so, and asks in which file if the task
// does not. Of anything else it looks up what there is.
func Mountaineer(p Prompt) Line {
	var d document
	if err := json.Unmarshal(p.Material, &d); err != nil {
		return Line{Status: 400}
	}
	names := compared.FindStringSubmatch(d.Task)
	switch {
	case len(p.Tools) == 0:
		return Line{Text: d.written()}
	case names == nil:
		return d.lookUp()
	case !d.tried("search"):
		return d.explore(names[1], names[2])
	case d.count("search") < 2:
		return Line{Text: "My encyclopedia does not know both mountains."}
	case !d.tried("calculator"):
		return d.reckon(names[1], names[2])
	case noted.MatchString(d.Task) && !d.tried("note"):
		return d.note(names[1], names[2])
	}
	return Line{Text: d.result(names[1], names[2])}
}

// lookUp searches for the task, and says what was found.
func (d *document) lookUp() Line {
	if !d.tried("search") {
		return Line{Calls: []Call{{"search", map[string]any{"query": d.Task}}}}
	}
	for _, f := range d.Facts {
		return Line{Text: f.Content}
	}
	return Line{Text: "I found nothing about that."}
}

func (d *document) explore(a, b string) Line {
	look := func(name string) Call {
		return Call{"search", map[string]any{"query": name, "rejected": []map[string]string{
			{"tool": "calculator", "reason": "the heights are not known yet"}}}}
	}
	return Line{Text: "I look up both mountains.", Calls: []Call{look(a), look(b), {"remember", map[string]any{
		"phase": "exploration", "confidence": 0.9,
		"assumptions": map[string]any{"sea-level": map[string]any{"content": "both heights are above sea level"}},
		"goals": map[string]any{"heights": map[string]any{
			"description": "know both heights", "status": "active", "parent": "00", "priority": 2}},
		"todo": []map[string]any{{"text": "look up both mountains", "goal": "heights"}, {"text": "reckon", "goal": "00"}},
	}}}}
}

func (d *document) reckon(a, b string) Line {
	higher, lower := d.height(a), d.height(b)
	return Line{Text: "I subtract.", Calls: []Call{
		{"calculator", map[string]any{"expression": higher + " - " + lower, "rejected": []map[string]string{
			{"tool": "search", "reason": "both heights are known"}}}},
		{"remember", map[string]any{
			"phase": "execution", "confidence": 0.95,
			"beliefs": map[string]any{"heights": map[string]any{
				"statement":  fmt.Sprintf("%s is %s metres high and %s %s", a, higher, b, lower),
				"confidence": 0.9, "evidence": d.evidence("search")}},
			"goals": map[string]any{"heights": map[string]any{
				"description": "know both heights", "status": "achieved", "parent": "00", "priority": 2}},
			"todo": []map[string]any{{"text": "look up both mountains", "goal": "heights", "done": true}, {"text": "reckon", "goal": "00"}},
		}},
	}}
}

// note leaves the file out if the task does not name it.
func (d *document) note(a, b string) Line {
	arguments := map[string]any{"text": d.result(a, b), "rejected": []map[string]string{
		{"tool": "search", "reason": "nothing is left to find"}, {"tool": "calculator", "reason": "the difference is known"}}}
	if file := noted.FindStringSubmatch(d.Task)[1]; file != "" {
		arguments["file"] = file
	}
	return Line{Text: "I write it down.", Calls: []Call{{"note", arguments}, {"remember", map[string]any{
		"phase": "verification", "confidence": 0.95,
		"beliefs": map[string]any{"difference": map[string]any{
			"statement": d.result(a, b), "confidence": 0.95, "evidence": d.evidence("calculator")}},
	}}}}
}

func (d *document) result(a, b string) string {
	for _, s := range d.Steps {
		if s.Tool != nil && s.Tool.Tool == "calculator" && s.Status == "completed" {
			return fmt.Sprintf("%s is %s metres higher than %s.", a, s.Tool.Output, b)
		}
	}
	return "I could not reckon it."
}

func (d *document) written() string {
	text := d.Conclusion
	if text == "" {
		text = "I came to no conclusion."
	}
	if d.Audience != "" {
		text = "For " + d.Audience + ": " + text
	}
	return text
}

// height is that of a mountain by the facts: the one that names it first.
func (d *document) height(name string) string {
	best, at := "0", -1
	for _, f := range d.Facts {
		found := strings.Index(strings.ToLower(f.Content), strings.ToLower(name))
		if m := metres.FindStringSubmatch(f.Content); m != nil && found >= 0 && (at < 0 || found < at) {
			best, at = m[1], found
		}
	}
	return best
}

func (d *document) tried(tool string) bool {
	for _, s := range d.Steps {
		if s.Tool != nil && s.Tool.Tool == tool {
			return true
		}
	}
	return false
}

func (d *document) count(tool string) int { return len(d.evidence(tool)) }

// evidence are the facts that a tool has brought, in the order of their ids.
func (d *document) evidence(tool string) []string {
	var ids []string
	for id, f := range d.Facts {
		if s := d.Steps[f.Step]; s.Tool != nil && s.Tool.Tool == tool {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
