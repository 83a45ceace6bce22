package pawltest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// export runs a graph to its end and exports the run.
func export(t testing.TB, g *dag.Graph[Order], options dispatcher.Options) string {
	t.Helper()
	return written(t, ran(t, g, options))
}

// ran runs a graph to its end. What it asks is answered.
func ran(t testing.TB, g *dag.Graph[Order], options dispatcher.Options) *memory.Store {
	t.Helper()
	var store memory.Store
	d, err := dispatcher.New(g, &store, options)
	if err != nil {
		t.Fatal(err)
	}
	for {
		res, err := d.Run(t.Context(), "order/7", input, dispatcher.Settings(7, "test"))
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			break
		}
		for _, i := range res.Interrupts {
			var answer any = true
			if i.Kind != dispatcher.KindAsked {
				answer = dispatcher.Approve
			}
			if err := d.Answer(t.Context(), "order/7", i.ID, answer); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &store
}

func written(t testing.TB, store checkpoint.Store) string {
	t.Helper()
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), store, "order/7", &file); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "run.log")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// The graph that has made a log agrees with it, whatever is in it, and does no effect again.
func TestReplayOfTheSameGraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		g := everything(t, s)
		for _, o := range []dispatcher.Options{{}, {InterruptBefore: []string{"rounds/add"}, InterruptAfter: []string{"lines"}}} {
			file := export(t, g, o)
			charges, letters := s.charges, len(s.letters)
			if charges == 0 || letters == 0 {
				t.Fatal("the run had no effects")
			}
			pawltest.Replay(t, file, g)
			if s.charges != charges || len(s.letters) != letters {
				t.Errorf("%d charges and %d letters more", s.charges-charges, len(s.letters)-letters)
			}
		}
	})
}

// A version of a graph is what its nodes do.
type version struct {
	price  int
	note   string
	to     way
	rounds int
	given  string
	key    string
	amount int
	asks   string
	fails  bool
	items  int
	more   bool
}

var today = version{price: 100, to: "van", rounds: 2, given: "x", key: "card", asks: "Sure?", items: 2}

// versioned is a graph whose nodes do what the version says.
func versioned(t testing.TB, v version) *dag.Graph[Order] {
	inner := dag.New[Order]("inner")
	dag.Step(inner, "wrap", func(_ context.Context, o *Order) error {
		o.Lines.Append("wrapped " + o.Receipt.Get())
		return nil
	})
	round := dag.New[Order]("round")
	dag.Step(round, "price", func(_ context.Context, o *Order) error {
		o.Total.Add(v.price)
		if v.note != "" {
			o.Receipt.Set(v.note)
		}
		return nil
	})
	b := dag.New[Order]("versions")
	rounds := 0
	loop := dag.Loop(b, "rounds", built(t, round), func(o *Order) bool {
		rounds = o.Total.Get() / v.price
		return rounds >= v.rounds
	}, 5)
	carrier := dag.Route(b, "carrier", func(_ context.Context, o *Order) (way, error) {
		if v.fails {
			return "", errors.New("no carrier")
		}
		return v.to, nil
	}, []way{"van", "bicycle"}, loop)
	wrap := dag.Embed(b, "wrap", built(t, inner), func(from, to *Order) { to.Receipt.Set(v.given) },
		func(from, to *Order) { to.Lines.Append(from.Lines.Slice()...) }, carrier.On("van"))
	dag.End(b, carrier.On("bicycle"))
	pay := dag.Step(b, "pay", func(ctx context.Context, o *Order) error {
		receipt, err := dag.Effect(ctx, v.key, o.Total.Get()+v.amount, func(context.Context, int) (string, error) { return "receipt", nil })
		if err != nil {
			return err
		}
		o.Receipt.Set(receipt)
		sure, err := dag.Ask[bool](ctx, "sure", v.asks)
		o.Sent.Set(sure)
		return err
	}, wrap)
	pack := dag.Each(b, "pack", func(o *Order) []string { return o.Items.Slice()[:v.items] },
		func(_ context.Context, o *Order, item string) error {
			o.Prices.Put(item, len(item))
			return nil
		}, pay)
	if v.more {
		dag.Each(b, "more", func(o *Order) []string { return nil }, func(context.Context, *Order, string) error { return nil }, pack)
	}
	return built(t, b)
}

// What a change of the program changes is told, by visit and cell, and nothing else: every
// visit runs with the state that it saw, so one difference does not make others.
func TestReplayNamesWhatDiffers(t *testing.T) {
	file := export(t, versioned(t, today), dispatcher.Options{})
	for _, test := range []struct {
		name   string
		change func(*version)
		want   []string
	}{
		{"nothing", func(*version) {}, nil},
		{"a price", func(v *version) { v.price = 110 }, []string{
			`visit rounds/1/price: cell Total wrote {"add":100}, now {"add":110}`,
			`visit rounds/2/price: cell Total wrote {"add":100}, now {"add":110}`,
			`visit rounds was done with outcome done, and now rounds/3 is entered`,
		}},
		{"another cell", func(v *version) { v.note = "y" }, []string{
			`visit rounds/1/price: cell Receipt wrote nothing, now {"set":"y"}`,
			`visit rounds/2/price: cell Receipt wrote nothing, now {"set":"y"}`,
		}},
		{"an outcome", func(v *version) { v.to = "bicycle" }, []string{`visit carrier took van, takes bicycle`}},
		{"a failure", func(v *version) { v.fails = true }, []string{
			`visit carrier was done with outcome van, and now it fails (error): no carrier`}},
		{"until, later", func(v *version) { v.rounds = 3 }, []string{
			`visit rounds was done with outcome done, and now rounds/3 is entered`}},
		{"until, earlier", func(v *version) { v.rounds = 1 }, []string{`rounds/2 was entered, and now visit rounds is done with outcome done`}},
		{"an input", func(v *version) { v.given = "z" }, []string{`wrap was entered: cell Receipt was given {"set":"x"}, now {"set":"z"}`}},
		{"an effect", func(v *version) { v.key = "cheque" }, []string{`visit pay begins effect "cheque", which the log does not have`}},
		{"the input of an effect", func(v *version) { v.amount = 1 }, []string{
			`visit pay asked, and now it fails (error): dispatcher: effect "card" of visit pay: dag: the effect was begun with another input`,
			`visit pay was done, and now it fails (error): dispatcher: effect "card" of visit pay: dag: the effect was begun with another input`}},
		{"a question", func(v *version) { v.asks = "Really?" }, []string{`visit pay asked with {…"question":"Sure?"…, and now with {…"question":"Really?"`,
			`visit pay was done, and now visit pay asks`}}, // what it was answered was not that
		{"items", func(v *version) { v.items = 3 }, []string{
			`pack was entered with {"count":2,…}, and now with {"count":3,`, `it can't go on: …the items of pack have changed: there were 2, there are 3`}},
		{"a node behind all others", func(v *version) { v.more = true }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := today
			test.change(&v)
			var h heard
			pawltest.Replay(&h, file, versioned(t, v))
			h.expect(t, test.want...)
		})
	}
}

// A graph whose past is another one is told with what stands in the way.
func TestReplayOfAChangedPast(t *testing.T) {
	file := export(t, versioned(t, today), dispatcher.Options{})
	var h heard
	pawltest.Replay(&h, file, pays(t, &shop{}))
	h.expect(t, `run "order/7": the past has changed: …`)
}

// A file that can't be trusted, or is not there, is told.
func TestReplayOfABadFile(t *testing.T) {
	g := versioned(t, today)
	file := export(t, g, dispatcher.Options{})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.log")
	if err := os.WriteFile(bad, bytes.Replace(text, []byte(`100`), []byte(`900`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{bad: "bad.log: checkpoint: import: line ", file + ".gone": "no such file"} {
		var h heard
		pawltest.Replay(&h, name, g)
		h.expect(t, want)
	}
	var h heard
	pawltest.Replay[Order](&h, file, nil)
	h.expect(t, "there is no graph")
}

// A run that was cut off anywhere is a log like any other.
func TestReplayOfARunThatWasCutOff(t *testing.T) {
	for k := 1; k < 12; k++ {
		var inner memory.Store
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		d, err := dispatcher.New(versioned(t, today), &inner, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.Appended {
				if n++; n == k {
					cancel()
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Run(ctx, "order/7", input)
		cancel()
		if err == nil {
			t.Fatal(err)
		}
		pawltest.Replay(t, written(t, &inner), versioned(t, today))
		if t.Failed() {
			t.Fatal(fmt.Sprint("cut off at append ", k, strings.Repeat(".", k)))
		}
	}
}

// Every turn of a run is tried, and its input is what it was.
func TestReplayOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		g := versioned(t, today)
		d, err := dispatcher.New(g, &store, dispatcher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Run(t.Context(), "order/7", input)
		for turn := 1; ; turn++ {
			if !errors.Is(err, dispatcher.ErrInterrupted) {
				t.Fatal(err)
			}
			if err := d.Answer(t.Context(), "order/7", res.Interrupts[0].ID, true); err != nil {
				t.Fatal(err)
			}
			if _, err = d.Run(t.Context(), "order/7", nil); err != nil {
				t.Fatal(err)
			}
			if turn == 2 {
				break
			}
			res, err = d.Turn(t.Context(), "order/7", func(o *Order) { o.Total.Set(0) })
		}
		file := written(t, &store)
		pawltest.Replay(t, file, g)
		var h heard
		changed := today
		changed.asks = "Really?"
		pawltest.Replay(&h, file, versioned(t, changed))
		h.expect(t, "visit pay asked with …", "visit pay was done, and now visit pay asks")
		if len(h.all) != 2 {
			t.Errorf("told %q", h.all)
		}
	})
}
