package dag_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// draft writes the graph that the others in these tables differ from.
func draft[S any](b *dag.Builder[S], f func(b *dag.Builder[S])) func(t *testing.T) []byte {
	f(b)
	return func(t *testing.T) []byte {
		t.Helper()
		data, err := json.Marshal(mustBuild(t, b))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

type notesBuilder = *dag.Builder[Notes]

func inner(f func(b notesBuilder)) *dag.Graph[Notes] {
	b := dag.New[Notes]("inner")
	f(b)
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

var oneStep = inner(func(b notesBuilder) { dag.Step(b, "validate", step) })

func base(b notesBuilder) {
	x := dag.Step(b, "x", step)
	y := dag.Step(b, "y", step, x)
	r := dag.Route(b, "r", choose, ways, y)
	dag.Loop(b, "again", oneStep, never, 3, r.On(Left))
	dag.End(b, r.On(Right))
}

var changed = []struct {
	rule  string
	graph func(t *testing.T) []byte
	want  []string
}{
	{"nothing", draft(dag.New[Notes]("g"), base), nil},
	{"policies, bounds and functions are no part of a graph", draft(dag.New[Notes]("g"), func(b notesBuilder) {
		x := dag.Step(b, "x", step).With(dag.Policy{Attempts: 7, Timeout: time.Hour})
		y := dag.Step(b, "y", step, x).With(dag.Policy{Backoff: dag.Constant(1), Retry: func(error) bool { return false }})
		r := dag.Route(b, "r", choose, ways, y)
		dag.Loop(b, "again", oneStep, func(*Notes) bool { return true }, 99, r.On(Left))
		dag.End(b, r.On(Right))
	}), nil},
	{"the name", draft(dag.New[Notes]("h"), base), []string{`graph: was "g", is "h"`}},
	{"a node more and a node less", draft(dag.New[Notes]("g"), func(b notesBuilder) {
		x := dag.Step(b, "x", step)
		r := dag.Route(b, "r", choose, ways, x)
		dag.Loop(b, "again", oneStep, never, 3, r.On(Left))
		dag.End(b, r.On(Right))
		dag.Step(b, "cite", step)
	}), []string{
		`node y: removed`,
		`node r: follows "x", followed "y"`,
		`node cite: added`,
	}},
	{"kinds, outcomes and edges", draft(dag.New[Notes]("g"), func(b notesBuilder) {
		x := dag.Route(b, "x", choose, ways)
		y := dag.Step(b, "y", step)
		r := dag.Route(b, "r", choose, []Way{Left, "up", Right}, dag.All[Notes](x, y))
		dag.Loop(b, "again", oneStep, never, 3, r.On(Left, Right), y.Failed())
		dag.End(b, r.On("up"))
	}), []string{
		`node x: was step, is route`,
		`node y: follows nothing, followed "x"`,
		`node r: its outcomes were "left", "right", are "left", "up", "right"`,
		`node r: follows all of ("x", "y"), followed "y"`,
		`node again: follows any of ("r" on "left" or "right", failure of "y"), followed "r" on "left"`,
		`End: was "r" on "right", is "r" on "up"`,
	}},
	{"inside a nested graph", draft(dag.New[Notes]("g"), func(b notesBuilder) {
		x := dag.Step(b, "x", step)
		y := dag.Step(b, "y", step, x)
		r := dag.Route(b, "r", choose, ways, y)
		dag.Loop(b, "again", inner(func(b notesBuilder) {
			dag.End(b, dag.Route(b, "validate", choose, ways))
		}), never, 3, r.On(Left))
		dag.End(b, r.On(Right))
	}), []string{
		`node again/validate: was step, is route`,
		`again/End: was nothing, is "validate"`,
	}},
	{"another nested graph", draft(dag.New[Notes]("g"), func(b notesBuilder) {
		x := dag.Step(b, "x", step)
		y := dag.Step(b, "y", step, x)
		r := dag.Route(b, "r", choose, ways, y)
		dag.Loop(b, "again", mustGraph("outer"), never, 3, r.On(Left))
		dag.End(b, r.On(Right))
	}), []string{
		`node again: its graph was "inner", is "outer"`,
		`node again/validate: removed`,
		`node again/draft: added`,
	}},
	{"the order of declaration", draft(dag.New[Notes]("g"), func(b notesBuilder) {
		x := dag.Step(b, "x", step)
		dag.Step(b, "new", step)
		y := dag.Step(b, "y", step, x)
		l := dag.Loop(b, "again", oneStep, never, 3)
		dag.End(b, dag.Route(b, "r", choose, ways, y), dag.Edge[Notes](l))
	}), []string{
		`node again: stands where r stood`,
		`node new: added`,
		`node again: follows nothing, followed "r" on "left"`,
		`End: was "r" on "right", is "r", "again"`,
	}},
}

func TestChanges(t *testing.T) {
	stored := draft(dag.New[Notes]("g"), base)(t)
	for _, c := range changed {
		t.Run(c.rule, func(t *testing.T) {
			current := c.graph(t)
			got := dag.Changes(stored, current)
			if !slices.Equal(got, c.want) {
				t.Errorf("Changes:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			if same := digest(t, stored) == digest(t, current); same != (len(c.want) == 0) {
				t.Errorf("the digests are the same: %v", same)
			}
		})
	}
}

func digest(t *testing.T, data []byte) string {
	t.Helper()
	var d struct{ Digest string }
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d.Digest
}

// Cells before, and after a day of changes.
type (
	Before struct {
		Cost  state.Sum[int]
		Books state.List[string]
		Index state.Map[string, int]
		Gone  state.Value[bool]
		Seen  state.Set[string]
		Size  state.Value[struct{ N int }]
	}
	After struct {
		Index state.Map[string, float64]
		Cost  state.Value[string]
		Books state.List[string]
		New   state.Set[string]
		Seen  state.Set[int]
		Size  state.Value[struct {
			N int `json:",string"`
		}]
	}
)

func TestChangesOfCells(t *testing.T) {
	before := draft(dag.New[Before]("g"), func(b *dag.Builder[Before]) { dag.Fail(b, "x") })(t)
	after := draft(dag.New[After]("g"), func(b *dag.Builder[After]) { dag.Fail(b, "x") })(t)
	want := []string{
		"cell Gone: removed",
		"cell Index: was map of string to int, is map of string to float64",
		"cell Cost: was sum of int, is value of string",
		"cell Cost: stands after Index, stood before it",
		"cell Books: stands after Index, stood before it",
		"cell New: added",
		"cell Seen: was set of string, is set of int",
		`cell Size: was {"name":"Size","kind":"value","type":{"kind":"object","fields":[{"name":"N","type":{"kind":"int"}}]}}, ` +
			`is {"name":"Size","kind":"value","type":{"kind":"object","fields":[{"name":"N","type":{"kind":"int"},"quoted":true}]}}`,
	}
	if got := dag.Changes(before, after); !slices.Equal(got, want) {
		t.Errorf("Changes:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// Of a loop the cells are those of the graph that it is in, and are named once.
func TestChangesOfNestedCells(t *testing.T) {
	write := func(embed func(b notesBuilder)) []byte { return draft(dag.New[Notes]("g"), embed)(t) }
	first := dag.New[Before]("inner")
	dag.Fail(first, "x")
	second := dag.New[After]("inner")
	dag.Fail(second, "x")
	g, h := mustBuild(t, first), mustBuild(t, second)
	got := dag.Changes(
		write(func(b notesBuilder) {
			dag.Embed(b, "in", g, func(*Notes, *Before) {}, func(*Before, *Notes) {})
		}),
		write(func(b notesBuilder) {
			dag.Embed(b, "in", h, func(*Notes, *After) {}, func(*After, *Notes) {})
		}))
	if len(got) == 0 || got[0] != "cell in/Gone: removed" {
		t.Errorf("Changes: %q", got)
	}

	loop := func(b *dag.Graph[Before]) []byte {
		o := dag.New[Before]("g")
		dag.Loop(o, "l", b, func(*Before) bool { return true }, 1)
		data, _ := json.Marshal(mustBuild(t, o))
		return data
	}
	other := bytes.ReplaceAll(loop(g), []byte(`"Cost"`), []byte(`"Price"`))
	want := []string{"cell Cost: removed", "cell Price: added"}
	if got := dag.Changes(loop(g), other); !slices.Equal(got, want) {
		t.Errorf("Changes: %q, want %q", got, want)
	}
}

func TestChangesThatHaveNoName(t *testing.T) {
	g := draft(dag.New[Notes]("g"), base)(t)
	other := bytes.Replace(g, []byte("sha256:"), []byte("sha256:0"), 1)
	if got := dag.Changes(g, other); len(got) != 1 || !strings.HasPrefix(got[0], "graph: its digest was ") {
		t.Errorf("Changes: %q", got)
	}
	for _, broken := range []string{"", "{", "[]", `{"nodes":[{"follows":[]}]}`, `{"nodes":[{"follows":{}}]}`} {
		for _, got := range [][]string{dag.Changes([]byte(broken), g), dag.Changes(g, []byte(broken))} {
			if len(got) != 1 || !strings.Contains(got[0], "can't be read") {
				t.Errorf("Changes of %q: %q", broken, got)
			}
		}
	}
}

func TestDigestIsOfTheJSONWithoutIt(t *testing.T) {
	g := archivist(t)
	data, err := g.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	plain := bytes.Replace(data, []byte(`"digest":"`+g.Digest()+`",`), nil, 1)
	if len(plain) == len(data) {
		t.Fatalf("the JSON has no digest: %s", data)
	}
	sum := sha256.Sum256(plain)
	if want := "sha256:" + hex.EncodeToString(sum[:]); g.Digest() != want {
		t.Errorf("Digest = %s, want %s", g.Digest(), want)
	}
	if viaMarshal, _ := json.Marshal(g); !bytes.Equal(viaMarshal, data) {
		t.Error("json.Marshal and MarshalJSON differ")
	}
	if again, _ := archivist(t).MarshalJSON(); !bytes.Equal(again, data) {
		t.Error("the same graph gives other bytes")
	}
	clear(data)
	if after, _ := g.MarshalJSON(); bytes.Equal(after, data) {
		t.Error("MarshalJSON hands out the graph's own bytes")
	}
}

// What is stored may be damaged: Changes says so, or says what differs, and never panics.
func FuzzChanges(f *testing.F) {
	b := dag.New[Notes]("g")
	base(b)
	g, err := b.Build()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(g.Plan().JSON)
	f.Add([]byte(`{"nodes":[{"name":"a","kind":"step","follows":{"any":["b"]},"graph":{}}],"ends":["a"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		forth, back := dag.Changes(g.Plan().JSON, data), dag.Changes(data, g.Plan().JSON)
		if !json.Valid(data) && (len(forth) != 1 || len(back) != 1) {
			t.Errorf("what is no JSON: %q and %q", forth, back)
		}
	})
}
