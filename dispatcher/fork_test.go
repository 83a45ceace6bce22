package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A forkBank is the world outside: it is asked for words, and counts how often.
type forkBank struct{ asked []string }

func (b *forkBank) word(_ context.Context, about string) (string, error) {
	b.asked = append(b.asked, about)
	return "word of " + about, nil
}

// forkChain is a line of nodes: each asks outside about what the state says, and adds to it.
func forkChain(t testing.TB, bank *forkBank, names ...string) *dag.Graph[Tale] {
	b := dag.New[Tale]("chain")
	var after []dag.Edge[Tale]
	for _, name := range names {
		after = []dag.Edge[Tale]{dag.Step(b, name, func(ctx context.Context, s *Tale) error {
			word, err := dag.Effect(ctx, "ask", s.Word.Get(), bank.word)
			s.Said.Append(visitPath(ctx) + ": " + word)
			return err
		}, after...)}
	}
	return frozen(t, b)
}

// forkOne makes one fork under an id.
func forkOne(t *testing.T, d *dispatcher.Dispatcher[Tale], at, into string, how dispatcher.EffectsOfFork) {
	t.Helper()
	ids, err := d.Fork(t.Context(), run, at, dispatcher.ForkOptions[Tale]{Into: []string{into}, Effects: how})
	if err != nil || len(ids) != 1 || ids[0] != into {
		t.Fatalf("the fork is %q, %v", ids, err)
	}
}

// A fork inherits what the run was told, and nothing of what it waits for.
func TestForkInherits(t *testing.T) {
	var store memory.Store
	b := dag.New[Tale]("asks")
	a := dag.Step(b, "a", nothing[Tale])
	dag.Step(b, "asks", func(ctx context.Context, s *Tale) error {
		word, err := dag.Ask[string](ctx, "word", "which?")
		s.Word.Set(word)
		return err
	}, a)
	d := process(t, frozen(t, b), &store, dispatcher.Options{})
	labels := map[string]string{"team": "red"}
	res, err := d.Run(t.Context(), run, nil, dispatcher.Labels(labels), dispatcher.Correlation("c7"),
		dispatcher.Settings(map[string]int{"size": 3}, "ann"))
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	ids, err := d.Fork(t.Context(), run, "", dispatcher.ForkOptions[Tale]{N: 3, Reason: "to try"}, dispatcher.Author("eve"))
	if err != nil || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 3 {
		t.Fatalf("the forks are %q, %v", ids, err)
	}
	for _, id := range ids {
		then, err := d.State(t.Context(), id)
		if err != nil || then.Status != checkpoint.StatusPending || len(then.Interrupts) > 0 || then.Superstep != 1 {
			t.Errorf("the fork is %s behind superstep %d and waits for %v, %v", then.Status, then.Superstep, then.Interrupts, err)
		}
		if !maps.Equal(then.Labels, labels) || then.Correlation != "c7" || string(then.Settings) != `{"size":3}` {
			t.Errorf("the fork has %v, %s, %s", then.Labels, then.Correlation, then.Settings)
		}
		for e, err := range d.Events(t.Context(), id, dispatcher.Listen{}) {
			want := id + "@1: run started as a fork of tale@4 by eve: to try"
			if err != nil || e.String() != want || e.Seq != 1 || e.Correlation != "c7" || e.Labels["team"] != "red" {
				t.Errorf("the fork's first event is %s, %v, want %s", e, err, want)
			}
		}
	}
	res, err = d.Run(t.Context(), ids[1], nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "asks")
	if err := d.Answer(t.Context(), ids[1], res.Interrupts[0].ID, "fork"); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), ids[1], nil)
	completes(t, res, err)
	if then, err := d.State(t.Context(), run); err != nil || then.Status != checkpoint.StatusInterrupted {
		t.Errorf("the run is %s, %v", then.Status, err)
	}
	found, err := store.List(t.Context(), checkpoint.Filter{Labels: labels})
	if err != nil || len(found) != 4 {
		t.Errorf("%d runs are listed, %v", len(found), err)
	}
}

// By its policy a fork does an effect that its origin has not done, or refuses it, and nothing is
// changed by the refusal: the visit can go on in a later call, and fails alike.
func TestForkEffects(t *testing.T) {
	for _, c := range []struct {
		how   dispatcher.EffectsOfFork
		asked []string // by the fork
		fails bool
	}{
		{dispatcher.ReuseOrRefuse, nil, true},
		{dispatcher.ReuseOrLive, []string{"z"}, false},
		{dispatcher.Live, []string{"z", "z", "z"}, false},
	} {
		bank := &forkBank{}
		store := new(memory.Store)
		d := process(t, forkChain(t, bank, "a", "b", "c"), store, dispatcher.Options{})
		input := func(s *Tale) { s.Word.Set("z") }
		stop := process(t, forkChain(t, bank, "a", "b", "c"), store, dispatcher.Options{InterruptBefore: []string{"c"}})
		res, err := stop.Run(t.Context(), run, input)
		rests(t, res, err, checkpoint.StatusInterrupted, "c")
		bank.asked = nil
		forkOne(t, d, "0", "fork", c.how)
		res, err = d.Run(t.Context(), "fork", nil)
		if !slices.Equal(bank.asked, c.asked) {
			t.Errorf("policy %d: outside was asked %q, want %q", c.how, bank.asked, c.asked)
		}
		if !c.fails {
			completes(t, res, err)
			continue
		}
		rests(t, res, err, checkpoint.StatusFailed, "c")
		if !errors.Is(err, dag.ErrEffectRefused) || !strings.Contains(err.Error(), `effect "ask" of visit c`) {
			t.Errorf("the fork failed with %v", err)
		}
		advises(t, err, "fork with ReuseOrLive to have it done")
		begun := 0
		for e, err := range store.Read(t.Context(), "fork", 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == checkpoint.EffectBegun {
				begun++
			}
			if e.Kind == checkpoint.EffectEnded && !strings.Contains(string(e.Data), `"reused":"tale"`) {
				t.Errorf("effect of %s ended with %s", e.Path, e.Data)
			}
		}
		if begun != 2 {
			t.Errorf("%d effects began in the fork", begun)
		}
		res, err = d.Resume(t.Context(), "fork")
		rests(t, res, err, checkpoint.StatusFailed, "c")
		sameMachine(t, d, "fork")
	}
}

// What a fork of a fork reuses is told to be of the run that did it, also where the fork has it
// from a checkpoint behind the one in which it was reused.
func TestForkOfAForkTellsWhoDidAnEffect(t *testing.T) {
	quiet(t)
	inner, b := dag.New[Tale]("inner"), dag.New[Tale]("outer")
	dag.Step(inner, "i2", nothing[Tale], dag.Step(inner, "i1", nothing[Tale]))
	dag.Step(b, "x", func(ctx context.Context, s *Tale) error {
		word, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (string, error) { return "did", nil })
		if err != nil {
			return err
		}
		s.Word.Set(word)
		_, err = dag.Ask[string](ctx, "q", "on?")
		return err
	})
	dag.Embed(b, "e", frozen(t, inner), func(_, _ *Tale) {}, func(_, _ *Tale) {})
	store := new(memory.Store)
	d := process(t, frozen(t, b), store, dispatcher.Options{InterruptBefore: []string{"e/i2"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "x", "e/i2")
	if err := d.Answer(t.Context(), run, "", "yes"); err != nil {
		t.Fatal(err)
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	for name, o := range map[string]dispatcher.Options{"read": {}, "behind a snapshot": dispatcher.Eager(dispatcher.Options{})} {
		o.InterruptBefore = []string{"e/i2"}
		d := process(t, frozen(t, b), store, o)
		forkOne(t, d, "0", name, dispatcher.ReuseOrRefuse)
		res, err := d.Run(t.Context(), name, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "x", "e/i2")
		if res, err = d.Resume(t.Context(), name); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatalf("the fork is %s, %v", res.Status, err)
		}
		ids, err := d.Fork(t.Context(), name, "e@2", dispatcher.ForkOptions[Tale]{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = d.Run(t.Context(), ids[0], nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		var ended []string
		for e, err := range store.Read(t.Context(), ids[0], 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == checkpoint.EffectEnded {
				ended = append(ended, string(e.Data))
			}
		}
		if len(ended) != 1 || !strings.Contains(ended[0], `"reused":"tale"`) {
			t.Errorf("%s: in the fork of the fork effects ended with %q", name, ended)
		}
	}
}

// A reused effect is one append.
func TestForkReusesInOneAppend(t *testing.T) {
	bank := &forkBank{}
	store := new(forkAppends)
	d := process(t, forkChain(t, bank, "a"), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	forkOne(t, d, "0", "fork", dispatcher.ReuseOrRefuse)
	store.appends = nil
	res, err = d.Run(t.Context(), "fork", nil)
	completes(t, res, err)
	want := []string{"[resumed entered]", "[effect_begun effect_ended]", "[done superstep completed]"}
	if !slices.Equal(store.appends, want) {
		t.Errorf("the appends are %q, want %q", store.appends, want)
	}
}

type forkAppends struct {
	memory.Store
	appends []string
}

func (s *forkAppends) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	var kinds []checkpoint.Kind
	for _, e := range entries {
		kinds = append(kinds, e.Kind)
	}
	s.appends = append(s.appends, fmt.Sprint(kinds))
	return s.Store.Append(ctx, l, after, entries)
}

// A fork that is refused changes nothing: neither the run nor what is to be made.
func TestForkRefused(t *testing.T) {
	var store memory.Store
	var w witness
	d := process(t, rewindLine(t, &w, "a", "b"), &store, dispatcher.Options{})
	for _, id := range []string{run, "other"} {
		res, err := d.Run(t.Context(), id, nil)
		completes(t, res, err)
	}
	var o *dispatcher.OptionError
	option := func(name string) func(error) bool {
		return func(err error) bool { return errors.As(err, &o) && o.Option == name }
	}
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	type options = dispatcher.ForkOptions[Tale]
	for name, c := range map[string]struct {
		run, at string
		o       options
		is      func(error) bool
	}{
		"checkpoint": {run, "9", options{}, is(checkpoint.ErrCursor)},
		"foreign":    {run, "other@4", options{}, is(checkpoint.ErrCursor)},
		"no run":     {"nobody", "", options{}, is(dispatcher.ErrNotFound)},
		"bad id":     {"", "", options{}, is(dispatcher.ErrRunID)},
		"exists":     {run, "", options{Into: []string{"x", "other", "y"}}, is(dispatcher.ErrExists)},
		"itself":     {run, "", options{Into: []string{run}}, is(dispatcher.ErrExists)},
		"twice":      {run, "", options{Into: []string{"x", "x"}}, option("Into")},
		"none named": {run, "", options{Into: []string{}}, option("Into")},
		"no id":      {run, "", options{Into: []string{""}}, option("Into")},
		"negative":   {run, "", options{N: -1}, option("N")},
		"many":       {run, "", options{N: 10_001}, option("N")},
		"many named": {run, "", options{Into: make([]string, 10_001)}, option("Into")},
		"two counts": {run, "", options{Into: []string{"x"}, N: 2}, option("N")},
		"policy":     {run, "", options{Effects: 9}, option("Effects")},
		"reason":     {run, "", options{Reason: strings.Repeat("x", 2000)}, option("Reason")},
	} {
		unchanged(t, &store, run, func() {
			unchanged(t, &store, "x", func() {
				if ids, err := d.Fork(t.Context(), c.run, c.at, c.o); !c.is(err) || ids != nil {
					t.Errorf("%s: the fork returned %q, %v", name, ids, err)
				}
			})
		})
	}
	if all, err := store.List(t.Context(), checkpoint.Filter{}); err != nil || len(all) != 2 {
		t.Errorf("there are %d runs, %v", len(all), err)
	}
}

// Lineage is the chain of runs and checkpoints, through forks of forks and rewinds, also when
// those runs are gone.
func TestForkLineage(t *testing.T) {
	var store memory.Store
	bank := &forkBank{}
	d := process(t, forkChain(t, bank, "a", "b"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	forkOne(t, d, "1", "one", dispatcher.ReuseOrRefuse)
	if _, err := d.Fork(t.Context(), "one", "0", dispatcher.ForkOptions[Tale]{Into: []string{"two"}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{run, "one"} {
		if err := store.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	res, err = d.Run(t.Context(), "two", nil) // with what the first did
	completes(t, res, err)
	if err := d.Rewind(t.Context(), "two", "", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	line, err := d.Lineage(t.Context(), "two")
	want := []dispatcher.Ancestor{{Run: "two", Seq: 6, Rewound: true}, {Run: "one", Seq: 1}, {Run: run, Seq: 6}}
	if err != nil || !slices.Equal(line, want) {
		t.Errorf("the lineage is %v, %v, want %v", line, err, want)
	}
	if line, err := d.Lineage(t.Context(), "one"); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("the lineage of a deleted run is %v, %v", line, err)
	}
	if len(bank.asked) != 2 {
		t.Errorf("outside was asked %d times", len(bank.asked))
	}
}

// What is in doubt in the origin has no result there: a fork that does nothing new refuses it,
// until somebody has said in the origin what came of it.
func TestForkRefusesWhatIsInDoubt(t *testing.T) {
	done := 0
	b := dag.New[Tale]("doubtful")
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		receipt, err := dag.Effect(ctx, "charge", 5, func(context.Context, int) (string, error) {
			done++
			return "", errWeather
		}, dag.InDoubt(dag.DoubtAsks))
		s.Word.Set(receipt)
		return err
	})
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	forkOne(t, d, "", "fork", dispatcher.ReuseOrRefuse)
	res, err := d.Run(t.Context(), "fork", nil)
	rests(t, res, err, checkpoint.StatusFailed, "pay")
	if !errors.Is(err, dag.ErrEffectRefused) || !strings.Contains(err.Error(), "has no result for this input") {
		t.Errorf("the fork failed with %v", err)
	}
	if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("found")); err != nil {
		t.Fatal(err)
	}
	forkOne(t, d, "", "later", dispatcher.ReuseOrRefuse)
	res, err = d.Run(t.Context(), "later", nil)
	if completes(t, res, err); res.State.Word.Get() != "found" || done != 1 {
		t.Errorf("the later fork has %q, and the effect was done %d times", res.State.Word.Get(), done)
	}
}

// A fork stands at the superstep at which the run was forked, by the number of which it is found as
// well: read, and forked again, also when it was trimmed.
func TestForkIsFoundBySuperstep(t *testing.T) {
	var bank forkBank
	var store memory.Store
	d := process(t, forkChain(t, &bank, "a", "b", "c"), &store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, func(s *Tale) { s.Word.Set("cats") })
	completes(t, res, err)
	forkOne(t, d, "2", "first", dispatcher.ReuseOrRefuse)
	if err := d.Tag(t.Context(), "first", "2", "begin"); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), "first", nil)
	completes(t, res, err)
	found := func() {
		t.Helper()
		past, err := d.HistoryOf(t.Context(), "first", dispatcher.HistoryFilter{})
		if err != nil || len(past) != 2 || past[0].Superstep != 2 {
			t.Fatalf("the past of the fork is %v, %v", past, err)
		}
		for _, p := range past {
			res, err := d.At(t.Context(), "first", p.String())
			if err != nil || res.Cursor.Seq != p.Seq || res.Superstep != p.Superstep {
				t.Errorf("at %s, %s, there is %v, %v", p, p.Address(), res.Cursor, err)
			}
		}
	}
	found()
	if err := d.Trim(t.Context(), "first", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
		t.Fatal(err)
	}
	found()
	if _, err := d.Fork(t.Context(), "first", "2", dispatcher.ForkOptions[Tale]{Into: []string{"second"}}); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"1", "@1"} { // of the origin
		if _, err := d.At(t.Context(), "second", address); !errors.Is(err, checkpoint.ErrCursor) {
			t.Errorf("at %s: %v, want that there is no such checkpoint", address, err)
		}
	}
}

// What effects have returned in later turns behind the checkpoint is for those turns of the fork,
// however many come before them.
func TestForkReusesInLaterTurns(t *testing.T) {
	bank := &forkBank{}
	d := process(t, forkChain(t, bank, "a", "b"), new(memory.Store), dispatcher.Options{})
	words := []string{"x", "y", "z"}
	turns := func(id string) {
		t.Helper()
		for i, word := range words {
			input := func(s *Tale) { s.Word.Set(word) }
			call := d.Turn
			if i == 0 {
				call = d.Run
			}
			res, err := call(t.Context(), id, input)
			if completes(t, res, err); len(res.State.Said.Slice()) != 2*(i+1) {
				t.Errorf("%s: in turn %d the state says %q", id, i+1, res.State.Said.Slice())
			}
		}
	}
	turns(run)
	forkOne(t, d, "0", "fork", dispatcher.ReuseOrRefuse)
	bank.asked = nil
	turns("fork")
	if bank.asked != nil {
		t.Errorf("the fork has asked outside about %q", bank.asked)
	}
	sameMachine(t, d, "fork")
}
