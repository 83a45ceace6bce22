package dag_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// archivist has one of everything: every kind of node, edge and join, and ends.
func archivist(t *testing.T) *dag.Graph[Inquiry] {
	t.Helper()
	check := dag.New[Notes]("check")
	dag.End(check, dag.Route(check, "verdict", choose, ways))
	checked := mustBuild(t, check)

	body := dag.New[Inquiry]("compose")
	draft := dag.Step(body, "draft", Respond)
	dag.Embed(body, "validate", checked, func(*Inquiry, *Notes) {}, func(*Notes, *Inquiry) {}, draft)
	composed := mustBuild(t, body)

	b := dag.New[Inquiry]("archivist")
	classify := dag.Route(b, "classify", Classify, []Intent{Search, OffTopic, "un-clear"})
	library := dag.Step(b, "library", Library, classify.On(Search))
	subjects := dag.Step(b, "subjects", Library, classify.On(Search))
	either := dag.Any(dag.All[Inquiry](library, subjects), library.Failed())
	compose := dag.Loop(b, "compose-loop", composed, func(*Inquiry) bool { return true }, 3, either)
	dag.Step(b, "respond", Respond, compose.On(dag.Done), classify.On(OffTopic, "un-clear"))
	dag.Step(b, "file", Respond, dag.All[Inquiry](library, dag.Any[Inquiry](subjects, subjects.Failed())))
	dag.Fail(b, "gave-up", compose.On(dag.Exhausted))
	dag.End(b, compose.Failed())
	return mustBuild(t, b)
}

func TestDrawings(t *testing.T) {
	g := archivist(t)
	golden(t, "archivist.mmd", []byte(g.Mermaid()))
	golden(t, "archivist.dot", []byte(g.DOT()))
}

// awkward has the names that drawings could trip over.
func awkward(t *testing.T) *dag.Graph[Notes] {
	t.Helper()
	b := dag.New[Notes]("end")
	outcomes := []Way{`say "hi"`, "a|b", "<b>&amp;</b>", "#35;", `back\slash\N`, "`tick`", "{x}-->[y];%%", "é 漢字", "style:x#y"}
	r := dag.Route(b, "<script>", choose, outcomes)
	names := []string{"end", "subgraph", "graph", "x|y", "style:none", "click;", "o%%x", "ünï", "default"}
	for i, name := range names {
		dag.Step(b, name, step, r.On(outcomes[i]))
	}
	dag.Step(b, "all-of-them", step, r.On(outcomes[0], outcomes[1:]...))
	return mustBuild(t, b)
}

func TestDrawingsOfAwkwardNames(t *testing.T) {
	g := awkward(t)
	golden(t, "awkward.mmd", []byte(g.Mermaid()))
	golden(t, "awkward.dot", []byte(g.DOT()))
}

// Mermaid reads labels as Markdown: what that would make emphasis, a list, a link or code of is
// written as numbers.
func TestMermaidLabelsAreNoMarkdown(t *testing.T) {
	b := dag.New[Notes]("markdown")
	outcomes := []Way{"1. stop", "2) go on", "- x", "    y", "a (b) - c, d"}
	r := dag.Route(b, "__start__", choose, outcomes)
	for i, name := range []string{"_init_", "fetch_all", "www.example.com", "-", "step-2"} {
		dag.Step(b, name, step, r.On(outcomes[i]))
	}
	want := `flowchart TD
    n0{"#95;#95;start#95;#95;"}
    n1["#95;init#95;"]
    n2["fetch_all"]
    n3["www#46;example#46;com"]
    n4["#45;"]
    n5["step-2"]
    n0 -->|"1#46; stop"| n1
    n0 -->|"2#41; go on"| n2
    n0 -->|"#45; x"| n3
    n0 -->|"#32;   y"| n4
    n0 -->|"a (b) - c, d"| n5
`
	if got := mustBuild(t, b).Mermaid(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestGraphvizReadsDOT runs Graphviz, where it is installed.
func TestGraphvizReadsDOT(t *testing.T) {
	if _, err := exec.LookPath("dot"); err != nil {
		t.Skip("Graphviz is not installed")
	}
	for _, text := range []string{archivist(t).DOT(), awkward(t).DOT()} {
		cmd := exec.CommandContext(t.Context(), "dot", "-Tsvg")
		cmd.Stdin = strings.NewReader(text)
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil || complaints.Len() > 0 {
			t.Errorf("dot: %v: %s\n%s", err, &complaints, text)
		}
	}
}

func TestJSON(t *testing.T) {
	g := archivist(t)
	data, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "archivist.json", append(data, '\n'))
}
