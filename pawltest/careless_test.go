package pawltest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
)

// A heard T remembers what it is told.
type heard struct {
	all []string
}

func (*heard) Helper() {}
func (h *heard) Errorf(format string, args ...any) {
	h.all = append(h.all, fmt.Sprintf(format, args...))
}

// expect fails the test unless everything that was told holds one of the texts, and each of
// them was told. A text may have parts, divided by … .
func (h *heard) expect(t *testing.T, want ...string) {
	t.Helper()
	holds := func(text, want string) bool {
		for _, part := range strings.Split(want, "…") {
			_, rest, ok := strings.Cut(text, part)
			if !ok {
				return false
			}
			text = rest
		}
		return true
	}
	for _, w := range want {
		if !slices.ContainsFunc(h.all, func(text string) bool { return holds(text, w) }) {
			t.Errorf("nothing was told of %q", w)
		}
	}
	for _, text := range h.all {
		if !slices.ContainsFunc(want, func(w string) bool { return holds(text, w) }) {
			t.Errorf("told: %s", text)
		}
	}
	if t.Failed() {
		t.Logf("told %q", h.all)
	}
}

// An Order is priced, paid for and sent.
type Order struct {
	Items   state.List[string]
	Prices  state.Map[string, int]
	Total   state.Sum[int]
	Receipt state.Value[string]
	Lines   state.List[string]
	Sent    state.Value[bool]
}

func input(o *Order) { o.Items.Append("pencil", "paper", "ink", "lamp") }

// A shop is what the nodes of these graphs depend on, and the other side of them.
type shop struct {
	mu      sync.Mutex
	charges int
	letters []string

	careful bool
	calls   int      // of count
	total   int      // kept by sum
	stock   []string // kept by pick
	draft   *Order   // kept by first
}

func (s *shop) charge(context.Context, int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charges++
	return "receipt", nil
}

func (s *shop) world() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]any{"charges": s.charges, "letters": s.letters}
}

func built(t testing.TB, b *dag.Builder[Order]) *dag.Graph[Order] {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// pays charges a card outside an effect, or inside one.
func pays(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("pays")
	price := dag.Step(b, "price", func(_ context.Context, o *Order) error {
		o.Total.Add(o.Items.Len() * 100)
		return nil
	})
	dag.Step(b, "charge", func(ctx context.Context, o *Order) (err error) {
		var receipt string
		if s.careful {
			receipt, err = dag.Effect(ctx, "card", o.Total.Get(), s.charge)
		} else {
			receipt, err = s.charge(ctx, o.Total.Get())
		}
		o.Receipt.Set(receipt)
		return err
	}, price)
	return built(t, b)
}

// counts numbers lines by a variable that outlives the visit, or by the state.
func counts(t testing.TB, s *shop) *dag.Graph[Order] {
	line := dag.New[Order]("line")
	dag.Step(line, "number", func(_ context.Context, o *Order) error {
		n := o.Lines.Len() + 1
		if !s.careful {
			s.calls++
			n = s.calls
		}
		o.Lines.Append(fmt.Sprintf("%d. %s", n, o.Items.At(o.Lines.Len())))
		return nil
	})
	b := dag.New[Order]("counts")
	dag.Loop(b, "lines", built(t, line), func(o *Order) bool { return o.Lines.Len() == o.Items.Len() }, 10)
	return built(t, b)
}

// keeps hands the total on in a field of the shop, or in the state.
func keeps(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("keeps")
	sum := dag.Step(b, "sum", func(_ context.Context, o *Order) error {
		s.total = o.Items.Len() * 100
		if s.careful {
			o.Total.Add(s.total)
		}
		return nil
	})
	dag.Step(b, "print", func(_ context.Context, o *Order) error {
		total := s.total
		if s.careful {
			total = o.Total.Get()
		}
		o.Lines.Append(fmt.Sprintf("total %d", total))
		return nil
	}, sum)
	return built(t, b)
}

// ranges over a map of prices to make lines, or over its sorted keys.
func ranges(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("ranges")
	price := dag.Step(b, "price", func(_ context.Context, o *Order) error {
		for i := range o.Items.Len() {
			o.Prices.Put(o.Items.At(i), 100+i)
		}
		for i := range 40 { // so many that no two walks along the map are alike
			o.Prices.Put(fmt.Sprint("stamp ", i), i)
		}
		return nil
	})
	dag.Step(b, "print", func(_ context.Context, o *Order) error {
		prices := maps.Collect(o.Prices.All())
		names := slices.Collect(maps.Keys(prices))
		if s.careful {
			slices.Sort(names)
		}
		for _, name := range names {
			o.Lines.Append(fmt.Sprintf("%s %d", name, prices[name]))
		}
		return nil
	}, price)
	return built(t, b)
}

type way string

// routes in turn, or by the state.
func routes(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("routes")
	carrier := dag.Route(b, "carrier", func(_ context.Context, o *Order) (way, error) {
		s.calls++
		if s.careful && o.Items.Len() > 3 || !s.careful && s.calls%2 == 0 {
			return "van", nil
		}
		return "bicycle", nil
	}, []way{"van", "bicycle"})
	dag.End(b, dag.Edge[Order](carrier))
	return built(t, b)
}

// packs what an earlier node has left in a field, or what the order says.
func packs(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("packs")
	pick := dag.Step(b, "pick", func(_ context.Context, o *Order) error {
		s.stock = o.Items.Slice()[1:]
		return nil
	})
	dag.Each(b, "pack", func(o *Order) []string {
		if s.careful {
			return o.Items.Slice()[1:]
		}
		return s.stock
	}, func(_ context.Context, o *Order, item string) error {
		o.Lines.Append(item)
		return nil
	}, pick)
	return built(t, b)
}

// mails writes a letter before it asks, or as an effect.
func mails(t testing.TB, s *shop) *dag.Graph[Order] {
	write := func(_ context.Context, to string) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.letters = append(s.letters, to)
		return true, nil
	}
	b := dag.New[Order]("mails")
	dag.Step(b, "mail", func(ctx context.Context, o *Order) (err error) {
		if s.careful {
			_, err = dag.Effect(ctx, "letter", "ada", write)
		} else {
			_, err = write(ctx, "ada")
		}
		if err != nil {
			return err
		}
		sent, err := dag.Ask[bool](ctx, "received", "Has the letter come?")
		o.Sent.Set(sent)
		return err
	})
	return built(t, b)
}

// drafts writes to the draft of an earlier node, or to its own.
func drafts(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("drafts")
	first := dag.Step(b, "first", func(_ context.Context, o *Order) error {
		s.draft = o
		o.Total.Add(1)
		return nil
	})
	second := dag.Step(b, "second", func(_ context.Context, o *Order) error {
		if !s.careful {
			o = s.draft
		}
		o.Total.Add(2)
		return nil
	}, first)
	dag.Step(b, "third", func(context.Context, *Order) error { return nil }, second)
	return built(t, b)
}

// stamps an effect with the time of the attempt, or with what the state says.
func stamps(t testing.TB, s *shop) *dag.Graph[Order] {
	b := dag.New[Order]("stamps")
	dag.Step(b, "charge", func(ctx context.Context, o *Order) error {
		in := map[string]any{"total": o.Total.Get()}
		if !s.careful {
			in["at"] = time.Now().Format(time.RFC3339Nano)
		}
		text := fmt.Sprint(in)
		receipt, err := dag.Effect(ctx, "card", text, func(context.Context, string) (string, error) { return "receipt", nil })
		if err != nil {
			return err
		}
		_, err = dag.Effect(ctx, "letter", receipt, func(context.Context, string) (bool, error) { return true, nil }, dag.Replayable)
		o.Receipt.Set(receipt)
		return err
	})
	return built(t, b)
}

// A mistake is one that a user might make.
type mistake struct {
	name    string
	graph   func(testing.TB, *shop) *dag.Graph[Order]
	rebuild bool // processes have shops of their own
	want    []string
	asks    bool // whether a letter has come
}

var mistakes = []mistake{
	{"a card is charged outside an effect", pays, false, []string{
		`node charge ran twice outside an effect: visit charge changed the world in an execution that was lost by the crash at entry …(done charge)` +
			` (from {"charges":0,"letters":null} to {"charges":1,"letters":null}), and again when it ran again (from {"charges":1`,
	}, false},
	{"a variable counts", counts, false, []string{
		`two runs without a crash differ: cell Lines was ["1. pencil",…], is ["5. pencil",…it follows from something that is neither state nor settings`,
	}, false},
	{"a variable counts, and a crash resets it", counts, true, []string{
		`state differs after the crash at entry …cell Lines was ["1. pencil","2. paper",…], is ["1. pencil","1. paper"`,
	}, false},
	{"a field hands on what the state should", keeps, true, []string{
		`state differs after the crash at entry …(done print): cell Lines was ["total 400"], is ["total 0"]`,
	}, false},
	{"lines in the order of a map", ranges, false, []string{`cell Lines was [`}, false},
	{"a route that takes turns", routes, false, []string{
		`two runs without a crash differ: visit carrier took "bicycle", takes "van": it follows from`,
	}, false},
	{"items from a field", packs, true, []string{
		`the run differs after the crash at entry …the run can't go on: …the items of pack have changed: there were 3, there are 0`,
	}, false},
	{"a letter before a question", mails, false, []string{
		`node mail ran twice outside an effect: visit mail changed the world before its question was answered (from`,
	}, true},
	{"a draft that is kept", drafts, false, []string{
		`node first keeps its draft: something was written to it after visit first had returned, and is lost`,
	}, false},
	{"an effect stamped with the time", stamps, false, []string{
		`the run differs after the crash at entry …the run was completed, is failed (dispatcher: run "pawltest" failed at charge: visit charge failed: dispatcher: effect "card" of visit charge: dag: the effect was begun with another input: …)`,
	}, false},
}

// Crash finds what is wrong with plausible mistakes, and says it.
func TestCrashFindsCarelessGraphs(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			var h heard
			c.crash(t, &h, false)
			h.expect(t, c.want...)
		})
	}
}

// The same graphs, written with care, pass.
func TestCrashPassesCarefulGraphs(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) { c.crash(t, t, true) })
	}
}

func (c mistake) crash(t *testing.T, told pawltest.T, careful bool) {
	s := &shop{careful: careful}
	options := []pawltest.Option{
		pawltest.World(s.world),
		pawltest.Reset(func() { s.charges, s.letters = 0, nil }),
	}
	if c.asks {
		options = append(options, pawltest.Answers(map[string]any{"received": true}))
	}
	if c.rebuild {
		options = append(options, pawltest.Rebuild(func() *dag.Graph[Order] { return c.graph(t, &shop{careful: careful}) }))
	}
	pawltest.Crash(told, c.graph(t, s), input, options...)
}
