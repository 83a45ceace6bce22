package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// samePast checks that the past of a run is one and the same, wherever somebody begins to read
// it, and that each checkpoint of it has its address. What was abandoned is what the log says.
// fresh makes a dispatcher that remembers nothing; of the entries every stride-th is tried.
func samePast[S any](t *testing.T, id string, store checkpoint.Store, stride int, fresh func() *dispatcher.Dispatcher[S]) {
	t.Helper()
	ctx, d := t.Context(), fresh()
	all, err := d.HistoryOf(ctx, id, dispatcher.HistoryFilter{Limit: math.MaxInt})
	if err != nil {
		t.Fatal(err)
	}
	info, err := store.Stat(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	led := pastLed(t, store, id)
	pastVoids(t, store, id, led)
	addresses := map[string]uint64{} // the last one of a name counts
	for _, p := range all {
		if p.Abandoned == led[p.Seq] && p.Seq >= info.First {
			t.Errorf("entry %d, %s, is abandoned: %t", p.Seq, p, p.Abandoned)
		}
		if p.Cause == dispatcher.CauseSuperstep && !p.Abandoned {
			addresses[p.String()] = p.Seq
		}
	}
	told := pastLines(all)
	for seq := info.First; seq <= info.Head.Seq; seq += uint64(stride) {
		behind, err := dispatcher.Behind(ctx, d, id, seq)
		from := slices.IndexFunc(all, func(p dispatcher.Past) bool { return p.Seq > seq })
		if from < 0 {
			from = len(all)
		}
		for i := range behind {
			behind[i].Tags = all[min(from+i, len(all)-1)].Tags
		}
		if got := pastLines(behind); err != nil || !slices.Equal(got, told[from:]) {
			t.Errorf("behind entry %d the past is\n%s\nread from the beginning it is\n%s (%v)",
				seq, strings.Join(got, "\n"), strings.Join(told[from:], "\n"), err)
			return
		}
	}
	size := max(1, min(7, stride))
	for _, d := range []func() *dispatcher.Dispatcher[S]{fresh, func() *dispatcher.Dispatcher[S] { return d }} {
		if got := pastLines(pastPages(t, d, id, size)); !slices.Equal(got, told) {
			t.Errorf("in pages the past is\n%s\nand it is\n%s", strings.Join(got, "\n"), strings.Join(told, "\n"))
		}
	}
	for i := 0; i < len(all); i += stride {
		p := all[i]
		if res, err := d.At(ctx, id, p.Address()); !errors.Is(err, dispatcher.ErrNested) && (err != nil || res.Cursor.Seq != p.Seq) {
			t.Errorf("%s: At returns %v", p.Address(), err)
		}
		if p.Abandoned || p.Cause != dispatcher.CauseSuperstep {
			continue
		}
		if diff, err := d.Diff(ctx, id, p.String(), p.String()); !errors.Is(err, dispatcher.ErrNested) && (err != nil || diff.From.Seq != addresses[p.String()]) {
			t.Errorf("%s is entry %d, Diff finds %v, %v", p, addresses[p.String()], diff, err)
		}
	}
}

// pastPages reads the past in pages, each by a dispatcher of its own or by one.
func pastPages[S any](t *testing.T, d func() *dispatcher.Dispatcher[S], id string, size int) (all []dispatcher.Past) {
	t.Helper()
	for {
		f := dispatcher.HistoryFilter{Limit: size}
		if len(all) > 0 {
			f.After = all[len(all)-1].Seq
		}
		page, err := d().HistoryOf(t.Context(), id, f)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < size {
			return all
		}
	}
}

func pastLines(all []dispatcher.Past) (lines []string) {
	for _, p := range all {
		lines = append(lines, fmt.Sprintf("entry %d, %s, turn %d, superstep %d of %q: %s, abandoned %t, visits %q, tags %q, by %q: %q, cancelled %v",
			p.Seq, p.At, p.Turn, p.Superstep, p.Path, p.Cause, p.Abandoned, p.Visits, p.Tags, p.Author, p.Reason, p.Cancels))
	}
	return lines
}

// pastLed are the entries that led to the head of a run, found by going back one by one.
func pastLed(t *testing.T, store checkpoint.Store, id string) map[uint64]bool {
	t.Helper()
	back := map[uint64]uint64{}
	var head uint64
	for e, err := range store.Read(t.Context(), id, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		head = e.Seq
		if e.Kind == checkpoint.Rewound {
			var w checkpoint.Rewinding
			if err := json.Unmarshal(e.Data, &w); err != nil {
				t.Fatal(err)
			}
			back[e.Seq] = w.To
		}
	}
	led := map[uint64]bool{}
	for seq := head; seq > 0; {
		led[seq] = true
		if to, ok := back[seq]; ok {
			seq = to
		} else {
			seq--
		}
	}
	return led
}

// pastVoids takes out of led what happened inside visits that were voided later in the same turn.
func pastVoids(t *testing.T, store checkpoint.Store, id string, led map[uint64]bool) {
	t.Helper()
	inside := map[uint64]string{} // paths of frames, by the checkpoints of this turn in them
	for e, err := range store.Read(t.Context(), id, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !led[e.Seq] {
			continue
		}
		var voids []string
		switch e.Kind {
		case checkpoint.TurnBegun:
			clear(inside)
		case checkpoint.Voided:
			err = json.Unmarshal(e.Data, &voids)
		case checkpoint.Edited:
			var d checkpoint.Edit
			err = json.Unmarshal(e.Data, &d)
			voids = d.Voids
		}
		if err != nil {
			t.Fatal(err)
		}
		for seq, frame := range inside {
			if slices.ContainsFunc(voids, func(v string) bool { return strings.HasPrefix(frame+"/", v+"/") }) {
				led[seq] = false
			}
		}
		if e.Kind == checkpoint.Edited || e.Kind == checkpoint.Superstep {
			inside[e.Seq] = strings.Clone(e.Path)
		}
	}
}

// A pastReader counts the entries that were read from a store.
type pastReader struct {
	memory.Store
	entries atomic.Int64
}

func (r *pastReader) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range r.Store.Read(ctx, run, from, to) {
			if r.entries.Add(1); !yield(e, err) {
				return
			}
		}
	}
}

// read counts the entries that f reads.
func (r *pastReader) read(f func()) int {
	before := r.entries.Load()
	f()
	return int(r.entries.Load() - before)
}

// pastLong is a loop of so many iterations, each of one superstep, beside a step that has ended
// long before it.
func pastLong(t testing.TB, iterations int) *dag.Graph[Tale] {
	t.Helper()
	body, b := dag.New[Tale]("body"), dag.New[Tale]("long")
	dag.Step(body, "turn", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	dag.Step(b, "beside", nothing[Tale])
	dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, iterations)
	return frozen(t, b)
}

// pastRun is a run of such a graph, and the number of its entries. How often a run that goes on
// without a rest comes to write a snapshot depends on how busy the machine is; so it rests before
// its last tenth, in which it writes a snapshot first of all.
func pastRun(t testing.TB, store checkpoint.Store, supersteps int) (*dispatcher.Dispatcher[Tale], int) {
	t.Helper()
	graph := pastLong(t, supersteps-1)
	rest := dispatcher.Options{InterruptBefore: []string{fmt.Sprintf("loop/%d/turn", supersteps*9/10)}}
	if _, err := callsDispatcher(t, graph, store, rest).Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	eager := callsDispatcher(t, graph, store, dispatcher.Eager(dispatcher.Options{}))
	if _, err := eager.Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	info, err := store.Stat(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return callsDispatcher(t, graph, store, dispatcher.Options{}), int(info.Head.Seq)
}

// Who pages through a long run reads its log about once, and not once for every page; who follows
// a run that goes on reads what is new, and the end of the log behind its last snapshot; and a
// checkpoint near the end is found without what is long before it.
func TestPagesReadALogOnce(t *testing.T) {
	t.Parallel()
	var store pastReader
	d, entries := pastRun(t, &store, 10_000)
	var all []dispatcher.Past
	read := store.read(func() { all = pastPages(t, func() *dispatcher.Dispatcher[Tale] { return d }, run, 100) })
	t.Logf("%d pages of %d checkpoints read %d entries of %d", (len(all)+99)/100, len(all), read, entries)
	if len(all) != 10_001 { // and the opening
		t.Errorf("%d checkpoints were listed", len(all))
	}
	last := all[len(all)-1]
	if want := []string{"beside", "loop"}; !slices.Equal(last.Visits, want) {
		t.Errorf("the last superstep has the visits %q, want %q", last.Visits, want)
	}
	if read > 3*entries {
		t.Errorf("%d entries were read, of a log of %d", read, entries)
	}
	for name, f := range map[string]func() error{
		"the last one":     func() error { _, err := d.At(t.Context(), run, ""); return err },
		"a superstep":      func() error { _, err := d.At(t.Context(), run, fmt.Sprint(last.Superstep)); return err },
		"an entry":         func() error { _, err := d.At(t.Context(), run, last.Address()); return err },
		"a tag":            func() error { return d.Tag(t.Context(), run, "", "end") },
		"a page of no one": func() error { return pastAfter(pastOther(t, &store), last.Seq) },
	} {
		if read := store.read(func() {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}); read > entries/2 {
			t.Errorf("%s: %d entries were read, of a log of %d", name, read, entries)
		}
	}
}

func pastOther(t *testing.T, store checkpoint.Store) *dispatcher.Dispatcher[Tale] {
	return callsDispatcher(t, pastLong(t, 9_999), store, dispatcher.Options{})
}

func pastAfter(d *dispatcher.Dispatcher[Tale], seq uint64) error {
	_, err := d.HistoryOf(context.Background(), run, dispatcher.HistoryFilter{After: seq})
	return err
}

// A page after one that a run of the same name had ended with is one of the run that has the name.
func TestPagesOfADeletedRun(t *testing.T) {
	store := new(memory.Store)
	d, _ := pastRun(t, store, 50)
	page, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	w := new(witness)
	var graph []string
	for i := range 60 {
		graph = append(graph, fmt.Sprint("step", i))
	}
	d2 := callsDispatcher(t, rewindLine(t, w, graph...), store, dispatcher.Options{})
	if _, err := d2.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	next, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{After: page[19].Seq, Limit: 5})
	if err != nil || len(next) != 5 || next[0].Path != "" || len(next[0].Visits) != 1 || !strings.HasPrefix(next[0].Visits[0], "step") {
		t.Errorf("the page after is %+v, %v", next, err)
	}
	samePast(t, run, store, 3, func() *dispatcher.Dispatcher[Tale] {
		return callsDispatcher(t, rewindLine(t, w, graph...), store, dispatcher.Options{})
	})
}

// A visit that was rejected before it began has failed, and is one of its superstep, wherever
// somebody begins to read: before the interrupt, behind it, or behind the rejection.
func TestPastOfARejectedVisit(t *testing.T) {
	var w witness
	b := dag.New[Tale]("rejected")
	x := dag.Step(b, "x", w.sees(nil))
	z := dag.Step(b, "z", w.sees(nil))
	dag.Step(b, "instead", w.sees(nil), dag.All(x.Failed(), z))
	g, store := frozen(t, b), new(memory.Store)
	o := dispatcher.Options{InterruptBefore: []string{"x", "z"}}
	d := process(t, g, store, o)
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "x", "z")
	for _, i := range res.Interrupts {
		v := dispatcher.Approve
		if i.Path == "x" {
			v = dispatcher.Reject
		}
		if err := d.Answer(t.Context(), run, i.ID, v); err != nil {
			t.Fatal(err)
		}
	}
	res, err = d.Resume(t.Context(), run)
	completes(t, res, err)
	all, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{})
	if err != nil || len(all) != 3 || !slices.Equal(all[1].Visits, []string{"x", "z"}) || !slices.Equal(all[2].Visits, []string{"instead"}) {
		t.Errorf("the past is %q, %v", pastLines(all), err)
	}
	samePast(t, run, store, 1, func() *dispatcher.Dispatcher[Tale] { return process(t, g, store, o) })
}

func BenchmarkPagesOfHistory(b *testing.B) {
	var store pastReader
	d, entries := pastRun(b, &store, 10_000)
	b.ReportAllocs()
	read := store.read(func() {
		for b.Loop() {
			for after := uint64(0); ; {
				page, err := d.HistoryOf(b.Context(), run, dispatcher.HistoryFilter{After: after})
				if err != nil {
					b.Fatal(err)
				}
				if len(page) < 100 {
					break
				}
				after = page[99].Seq
			}
		}
	})
	b.ReportMetric(float64(read)/float64(b.N*entries), "logs/op")
}

// Open reads each entry of a log once at most, also if it has to look for what an effect was given
// that has ended before the last snapshot.
func TestOpenReadsALogOnce(t *testing.T) {
	for _, iterations := range []int{3, 3_000} {
		var store pastReader
		body, b := dag.New[Tale]("body"), dag.New[Tale]("open")
		dag.Step(body, "turn", func(_ context.Context, s *Tale) error {
			if s.Count.Add(1); s.Count.Get() == iterations {
				return errWeather
			}
			return nil
		})
		dag.Step(b, "pay", func(ctx context.Context, _ *Tale) error {
			_, err := dag.Effect(ctx, "charge", 7, func(context.Context, int) (string, error) { return "receipt", nil })
			return err
		})
		dag.Loop(b, "loop", frozen(t, body), func(*Tale) bool { return false }, iterations)
		d := callsDispatcher(t, frozen(t, b), &store, dispatcher.Options{})
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, errWeather) {
			t.Fatal(err)
		}
		info, err := store.Stat(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		read := store.read(func() {
			opened, err := d.Open(t.Context(), run)
			if err != nil || len(opened.Effects) != 1 || string(opened.Effects[0].Input) != "7" || opened.Cursor.Seq != info.Head.Seq {
				t.Errorf("opened %+v, %v", opened, err)
			}
		})
		if read > int(info.Head.Seq) {
			t.Errorf("%d entries were read, of a log of %d", read, info.Head.Seq)
		}
		if _, err := store.Snapshot(t.Context(), run, 0); (err == nil) != (iterations > 3) {
			t.Errorf("after %d iterations there is a snapshot: %v", iterations, err)
		}
	}
}

// A frame that a run was in, and was rewound to before, is not read as one of the run. By the
// address of its checkpoint it still is.
func TestStateOfAnAbandonedFrame(t *testing.T) {
	var store memory.Store
	d := callsDispatcher(t, pastLong(t, 2), &store, dispatcher.Options{})
	if _, err := d.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	if res, err := dispatcher.StateOf[Tale](t.Context(), d, run, "loop"); err != nil || res.Frame != "loop/2" {
		t.Errorf("before it is rewound: %+v, %v", res, err)
	}
	if err := d.Rewind(t.Context(), run, "0", dispatcher.RewindOptions{}); err != nil {
		t.Fatal(err)
	}
	if res, err := dispatcher.StateOf[Tale](t.Context(), d, run, "loop"); !errors.Is(err, checkpoint.ErrCursor) {
		t.Errorf("rewound to before the loop: %+v, %v", res, err)
	}
	for p, err := range d.History(t.Context(), run, "loop/2") {
		res, read := dispatcher.StateOf[Tale](t.Context(), d, run, p.Address())
		if err != nil || read != nil || !p.Abandoned || res.State.Count.Get() != 2 {
			t.Errorf("%s, abandoned=%t: %v, %v", p.Address(), p.Abandoned, err, read)
		}
	}
}

// A run that was restored from an export, and has gone on otherwise, is not read from where a page
// of it had ended before.
func TestPagesOfARestoredRun(t *testing.T) {
	store := new(memory.Store)
	graph := pastLong(t, 3)
	fresh := func() *dispatcher.Dispatcher[Tale] { return callsDispatcher(t, graph, store, dispatcher.Options{}) }
	d := fresh()
	if _, err := d.Run(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	if err := checkpoint.Export(t.Context(), store, run, &backup); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := d.Turn(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
	}
	page, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Limit: 14})
	if err != nil || len(page) != 14 {
		t.Fatalf("the first page is %v, %v", page, err)
	}
	if err := store.Delete(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Import(t.Context(), store, &backup, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(t.Context(), run, nil); err != nil {
			t.Fatal(err)
		}
	}
	after := dispatcher.HistoryFilter{After: page[13].Seq}
	got, err := d.HistoryOf(t.Context(), run, after)
	want, err2 := fresh().HistoryOf(t.Context(), run, after)
	if a, b := pastLines(got), pastLines(want); err != nil || err2 != nil || len(b) == 0 || !slices.Equal(a, b) {
		t.Errorf("the page is\n%s (%v)\nand should be\n%s (%v)", strings.Join(a, "\n"), err, strings.Join(b, "\n"), err2)
	}
}

// A superstep of one item's graph has all visits that ended in it, though another item has begun in
// between.
func TestPastOfItemsBesideOneThatBegins(t *testing.T) {
	begun := make(chan struct{})
	body, b := dag.New[Tale]("body"), dag.New[Tale]("tale")
	dag.Step(body, "quick", func(_ context.Context, s *Tale) error {
		if s.Word.Get() == "last" {
			close(begun)
		}
		return nil
	})
	dag.Step(body, "slow", func(_ context.Context, s *Tale) error {
		if s.Word.Get() == "first" {
			<-begun
		}
		return nil
	})
	dag.EachGraph(b, "review", eachList("first", "second", "last"), frozen(t, body), func(_ *Tale, item string, to *Tale) { to.Word.Set(item) },
		func(_ *Tale, item string, to *Tale) { to.Said.Append(item) }).With(dag.Policy{Parallel: 2})
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	page, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Frames: []string{"review/1"}})
	if err != nil || len(page) != 1 || !slices.Equal(page[0].Visits, []string{"review/1/quick", "review/1/slow"}) {
		t.Errorf("the past of the first item is %+v, %v", page, err)
	}
}

// What a dispatcher remembers of the past of a run that is deleted is nothing of the one that is
// made anew under its id, though that has as many entries.
func TestTagsOfARunThatIsMadeAnew(t *testing.T) {
	var w witness
	var store memory.Store
	d := process(t, rewindLine(t, &w, "a", "b"), &store, dispatcher.Options{})
	for i, tag := range []string{"one", "other"} {
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if err := d.Tag(t.Context(), run, fmt.Sprint(i+1), tag); err != nil {
			t.Fatal(err)
		}
		page, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Tags: []string{tag}})
		if err != nil || len(page) != 1 || page[0].Superstep != i+1 {
			t.Errorf("of the tag %s HistoryOf tells %+v, %v", tag, page, err)
		}
		at, err := d.At(t.Context(), run, "tag:"+tag)
		if err != nil || at.Superstep != i+1 {
			t.Errorf("at the tag %s the run is in superstep %d: %v", tag, at.Superstep, err)
		}
		if tag == "other" {
			if _, err := d.At(t.Context(), run, "tag:one"); !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("at the tag of the run that was deleted: %v", err)
			}
			return
		}
		if err := store.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
}
