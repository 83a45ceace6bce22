package dag_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/state"
)

// eachWays has the kinds of nodes that go several ways at once.
func eachWays(t *testing.T, b *dag.Builder[Notes]) *dag.Graph[Notes] {
	t.Helper()
	c := dag.Choose(b, "scouts", several, ways)
	review := dag.Each(b, "review", numbers, nothing, c.On(Left)).With(dag.Policy{Parallel: 2, Attempts: 3})
	pass := func(*Notes, int, *Notes) {}
	fetch := dag.EachGraph(b, "fetch", numbers, small(t), pass, pass, c.On(Right)).With(dag.Policy{Errors: dag.Collect})
	dag.Step(b, "respond", step, review.On(dag.Done), review.On(dag.Empty))
	dag.Step(b, "join", step, dag.Any[Notes](review, fetch, c.Failed()))
	return mustBuild(t, b)
}

func TestEachInDrawings(t *testing.T) {
	g := eachWays(t, dag.New[Notes]("ways"))
	golden(t, "each.mmd", []byte(g.Mermaid()))
	golden(t, "each.dot", []byte(g.DOT()))
	text, err := g.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "each.json", append(text, '\n'))
}

func TestEachInThePlan(t *testing.T) {
	p := eachWays(t, dag.New[Notes]("ways")).Plan()
	if n := p.Nodes[0]; n.Kind != dag.KindChoose || n.Choose == nil || n.Run != nil || !slices.Equal(n.Outcomes, []string{"left", "right"}) {
		t.Errorf("the choose is %+v", n)
	}
	n := p.Nodes[1]
	if n.Kind != dag.KindEach || n.Body != nil || !slices.Equal(n.Outcomes, []string{"done", "empty"}) || n.Policy.Parallel != 2 {
		t.Errorf("the each is %+v", n)
	}
	if i := n.Item; i.Kind != dag.KindStep || i.Name != "review" || i.RunItem == nil || i.FailureFollowed || i.Policy.Attempts != 3 {
		t.Errorf("its item is %+v", i)
	}
	n = p.Nodes[2]
	if n.Kind != dag.KindEach || n.Body == nil {
		t.Errorf("the each with graphs is %+v", n)
	}
	if i := n.Item; i.Kind != dag.KindEmbed || i.Body != n.Body || i.InItem == nil || i.OutItem == nil || !i.FailureFollowed {
		t.Errorf("its item is %+v", i)
	}
	if p.Depth != 2 {
		t.Errorf("depth %d, want 2", p.Depth)
	}
}

// eachTitle is an item of the digest's test.
type eachTitle struct{ Name string }

// The digest of items tells lists apart whose texts run together, and what JSON can't say
// is an error that names the item.
func TestEachDigestsItsItems(t *testing.T) {
	digest := func(items ...any) (string, error) {
		b := dag.New[Notes]("digest")
		dag.Each(b, "each", func(*Notes) []any { return items }, func(context.Context, *Notes, any) error { return nil })
		_, n, digest, err := mustBuild(t, b).Plan().Nodes[0].Items(new(Notes))
		if err == nil && n != len(items) {
			t.Errorf("%d items are %d", len(items), n)
		}
		return digest, err
	}
	lists := [][]any{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {12}, {1, 2}, {eachTitle{"ab"}}, {eachTitle{"ba"}}, {nil}}
	seen := map[string][]any{}
	for _, list := range lists {
		d, err := digest(list...)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%v and %v have one digest", list, other)
		}
		if again, _ := digest(list...); again != d || !strings.HasPrefix(d, "sha256:") {
			t.Errorf("the digest of %v is %s, and then %s", list, d, again)
		}
		seen[d] = list
	}
	for _, item := range []any{"a\xff", eachTitle{"a\xfe"}} { // whose JSON is that of other text
		if _, err := digest("a", item); !errors.Is(err, state.ErrUTF8) || !strings.HasPrefix(err.Error(), "item 2: ") {
			t.Errorf("%q is digested: %v", item, err)
		}
	}
	if _, err := digest("a", make(chan int)); err == nil || !strings.HasPrefix(err.Error(), "item 2: ") {
		t.Errorf("a channel is digested: %v", err)
	}
}

// eachRef is an item whose marshaller needs what it refers to: the zero eachRef panics.
type eachRef struct{ to *eachTitle }

func (r eachRef) MarshalText() ([]byte, error) { return []byte(r.to.Name), nil }

// An Each takes items whose zero value is none that JSON can say.
func TestEachOfItemsWhoseZeroPanics(t *testing.T) {
	b := dag.New[Notes]("refs")
	items := func(*Notes) []eachRef { return []eachRef{{&eachTitle{"a"}}} }
	dag.Each(b, "each", items, func(context.Context, *Notes, eachRef) error { return nil })
	_, n, digest, err := mustBuild(t, b).Plan().Nodes[0].Items(new(Notes))
	if n != 1 || digest == "" || err != nil {
		t.Errorf("%d items, digest %q, %v", n, digest, err)
	}
}

// What a node that goes several ways was, and is, is told by kind, outcome and graph.
func TestEachInChanges(t *testing.T) {
	pass := func(*Notes, int, *Notes) {}
	graph := func(kind string) []byte {
		b := dag.New[Notes]("g")
		switch kind {
		case "step":
			dag.Step(b, "n", step)
		case "each":
			dag.Each(b, "n", numbers, nothing).With(dag.Policy{Parallel: 3, Errors: dag.Collect})
		case "slow each":
			dag.Each(b, "n", numbers, nothing)
		case "graphs":
			dag.EachGraph(b, "n", numbers, small(t), pass, pass)
		case "choose":
			dag.End(b, dag.Choose(b, "n", several, ways))
		case "other":
			dag.End(b, dag.Choose(b, "n", several, ways[:1]))
		}
		text, err := mustBuild(t, b).MarshalJSON()
		if err != nil || !json.Valid(text) {
			t.Fatal(err)
		}
		return text
	}
	for _, c := range []struct{ was, is, want string }{
		{"step", "each", "node n: was step, is each"},
		{"each", "slow each", ""},
		{"each", "graphs", `node n: had no graph, has graph "small"`},
		{"graphs", "each", `node n: had graph "small", has none`},
		{"choose", "other", `node n: its outcomes were "left", "right", are "left"`},
	} {
		if got := strings.Join(dag.Changes(graph(c.was), graph(c.is)), "; "); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.was, c.is, got, c.want)
		}
	}
}

// eachMoney marshals itself by a pointer.
type eachMoney struct{ cents int64 }

func (m *eachMoney) MarshalJSON() ([]byte, error) { return json.Marshal(m.cents) }

func (m *eachMoney) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &m.cents) }

// Items are digested by marshallers with pointer receivers too, of the items and of what is in
// them.
func TestEachDigestsByPointerReceivers(t *testing.T) {
	digest := func(cents int64) string {
		b := dag.New[Notes]("digest")
		dag.Each(b, "money", func(*Notes) []eachMoney { return []eachMoney{{cents}} }, func(context.Context, *Notes, eachMoney) error { return nil })
		dag.Each(b, "in", func(*Notes) []struct{ Is eachMoney } { return []struct{ Is eachMoney }{{eachMoney{cents}}} },
			func(context.Context, *Notes, struct{ Is eachMoney }) error { return nil })
		var all []string
		for _, n := range mustBuild(t, b).Plan().Nodes {
			_, _, digest, err := n.Items(new(Notes))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, digest)
		}
		return strings.Join(all, " ")
	}
	one, two := strings.Fields(digest(1)), strings.Fields(digest(2))
	for i := range one {
		if one[i] == two[i] {
			t.Errorf("items of the Each %d have one digest, and differ", i+1)
		}
	}
}

// The digest of items is the one that logs have: of the length and the text of each.
func TestEachDigestsAsLogsHaveIt(t *testing.T) {
	b := dag.New[Notes]("digest")
	dag.Each(b, "each", func(*Notes) []int { return []int{1, 23} }, func(context.Context, *Notes, int) error { return nil })
	_, _, digest, err := mustBuild(t, b).Plan().Nodes[0].Items(new(Notes))
	sum := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x011\x00\x00\x00\x00\x00\x00\x00\x0223"))
	if want := "sha256:" + hex.EncodeToString(sum[:]); digest != want {
		t.Errorf("the digest is %s, %v, want %s", digest, err, want)
	}
}

// Items that are pointers, or hold them, are digested as what they point to, and nil is null.
func TestEachDigestsWhatItemsPointTo(t *testing.T) {
	one := &eachMoney{1}
	digests := map[string]string{}
	b := dag.New[Notes]("digest")
	dag.Each(b, "values", func(*Notes) []eachMoney { return []eachMoney{{1}} }, func(context.Context, *Notes, eachMoney) error { return nil })
	dag.Each(b, "pointers", func(*Notes) []*eachMoney { return []*eachMoney{one} }, func(context.Context, *Notes, *eachMoney) error { return nil })
	dag.Each(b, "pointers-twice", func(*Notes) []**eachMoney { return []**eachMoney{&one} }, func(context.Context, *Notes, **eachMoney) error { return nil })
	dag.Each(b, "marshallers", func(*Notes) []json.Marshaler { return []json.Marshaler{one} }, func(context.Context, *Notes, json.Marshaler) error { return nil })
	dag.Each(b, "no-pointer", func(*Notes) []*eachMoney { return make([]*eachMoney, 1) }, func(context.Context, *Notes, *eachMoney) error { return nil })
	dag.Each(b, "no-marshaller", func(*Notes) []json.Marshaler { return make([]json.Marshaler, 1) }, func(context.Context, *Notes, json.Marshaler) error { return nil })
	dag.Each(b, "no-pointer-in-one", func(*Notes) []json.Marshaler { return []json.Marshaler{(*eachMoney)(nil)} }, func(context.Context, *Notes, json.Marshaler) error { return nil })
	for _, n := range mustBuild(t, b).Plan().Nodes {
		_, _, digest, err := n.Items(new(Notes))
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
		digests[n.Name] = digest
	}
	for same, names := range map[string][]string{
		"values":     {"pointers", "pointers-twice", "marshallers"},
		"no-pointer": {"no-marshaller", "no-pointer-in-one"},
	} {
		for _, name := range names {
			if digests[name] != digests[same] {
				t.Errorf("the digest of %s is not that of %s", name, same)
			}
		}
	}
}

// A graph keeps the policy that an Each had when it was built, also for its items.
func TestEachBuiltAgain(t *testing.T) {
	b := dag.New[Notes]("again")
	review := dag.Each(b, "review", numbers, nothing)
	before := mustBuild(t, b)
	review.With(dag.Policy{Attempts: 3, Errors: dag.Collect})
	after := mustBuild(t, b)
	for _, c := range []struct {
		g        *dag.Graph[Notes]
		attempts int
	}{{before, 0}, {after, 3}} {
		if item := c.g.Plan().Nodes[0].Item; item.Policy.Attempts != c.attempts || item.FailureFollowed != (c.attempts > 0) {
			t.Errorf("an item has %d attempts, its failure is collected: %t", item.Policy.Attempts, item.FailureFollowed)
		}
	}
}
