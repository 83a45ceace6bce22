package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// A Dive is the state of graphs inside others in these tests, an Abyss that of graphs inside
// those.
type Dive struct {
	Name  state.Value[string]
	Paths state.List[string]
}

type Abyss struct {
	Depth state.Sum[int]
	Paths state.List[string]
}

// callsNested is a graph with everything that holds a frame, inside one another: an Embed
// of another type with a Loop in it, and an EachGraph of that type with an Embed of a third.
// stop names a visit that asks, "" for none.
func callsNested(t testing.TB, stop string) *dag.Graph[Tale] {
	t.Helper()
	asks := func(ctx context.Context) error {
		if visitPath(ctx) == stop {
			_, err := dag.Ask[bool](ctx, "deeper", "Deeper?")
			return err
		}
		return nil
	}
	b := dag.New[Abyss]("abyss")
	sinks := dag.Step(b, "sink", func(ctx context.Context, s *Abyss) error {
		s.Depth.Add(1)
		s.Paths.Append(visitPath(ctx))
		return asks(ctx)
	})
	dag.Step(b, "rise", func(ctx context.Context, s *Abyss) error {
		s.Paths.Append(visitPath(ctx))
		return nil
	}, sinks)
	abyss := frozen(t, b)

	note := func(ctx context.Context, s *Dive) error {
		s.Paths.Append(visitPath(ctx))
		return asks(ctx)
	}
	swim := dag.New[Dive]("swim")
	dag.Step(swim, "stroke", note, dag.Step(swim, "breathe", note))
	dive := func(name string) *dag.Graph[Dive] {
		b := dag.New[Dive](name)
		jumps := dag.Step(b, "jump", note)
		swims := dag.Loop(b, "swim", frozen(t, swim), func(s *Dive) bool { return s.Paths.Len() > 4 }, 5, jumps)
		dag.Embed(b, "abyss", abyss,
			func(from *Dive, to *Abyss) { to.Depth.Add(from.Paths.Len()) },
			func(from *Abyss, to *Dive) { to.Paths.Append(from.Paths.Slice()...) }, swims)
		return frozen(t, b)
	}
	outer := dag.New[Tale]("nested")
	says := func(ctx context.Context, s *Tale) error {
		s.Said.Append(visitPath(ctx))
		return nil
	}
	begins := dag.Step(outer, "begin", says)
	dives := dag.Embed(outer, "dive", dive("dive"),
		func(from *Tale, to *Dive) { to.Name.Set("one") },
		func(from *Dive, to *Tale) { to.Said.Append(from.Paths.Slice()...) }, begins)
	each := dag.EachGraph(outer, "each", func(*Tale) []string { return []string{"a", "b"} }, dive("item"),
		func(from *Tale, item string, to *Dive) { to.Name.Set(item) },
		func(from *Dive, item string, to *Tale) { to.Said.Append(from.Paths.Slice()...) }, begins)
	dag.Step(outer, "end", says, dag.All[Tale](dives, each))
	return frozen(t, outer)
}

// callsFrameReader reads a frame in whichever type it has, and tells the paths that its
// state holds.
func callsFrameReader(t testing.TB, d *dispatcher.Dispatcher[Tale], address, frame string) (paths []string, res *dispatcher.Result[struct{}], err error) {
	t.Helper()
	ctx := t.Context()
	tell := func(superstep int, cursor checkpoint.Cursor, frame string, interrupts []dispatcher.Interrupt) {
		res = &dispatcher.Result[struct{}]{Superstep: superstep, Cursor: cursor, Frame: frame, Interrupts: interrupts}
	}
	switch last := callsFrameType(frame); last {
	case "abyss":
		r, e := dispatcher.StateOf[Abyss](ctx, d, run, address)
		paths, err = r.State.Paths.Slice(), e
		tell(r.Superstep, r.Cursor, r.Frame, r.Interrupts)
	case "dive":
		r, e := dispatcher.StateOf[Dive](ctx, d, run, address)
		paths, err = r.State.Paths.Slice(), e
		tell(r.Superstep, r.Cursor, r.Frame, r.Interrupts)
	default:
		r, e := dispatcher.StateOf[Tale](ctx, d, run, address)
		paths, err = r.State.Said.Slice(), e
		tell(r.Superstep, r.Cursor, r.Frame, r.Interrupts)
	}
	return paths, res, err
}

func callsFrameType(frame string) string {
	switch {
	case strings.HasSuffix(frame, "/abyss"):
		return "abyss"
	case strings.HasPrefix(frame, "dive"), strings.HasPrefix(frame, "each/"):
		return "dive"
	}
	return "tale"
}

// inFrame selects the visits whose writes the state of a frame holds: those of the frame
// itself, and of what has ended in it.
func inFrame(frame string, visits []string) []string {
	of := frame
	if i := strings.Index(frame, "/swim/"); i >= 0 {
		of = frame[:i] // a loop has the state of what holds it
	}
	var all []string
	for _, v := range visits {
		if of == "" || strings.HasPrefix(v, of+"/") || of == "each" && v == "begin" {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// callsDone lists the steps that are done in a log.
func callsDone(log []checkpoint.Entry) []string {
	var done []string
	for _, e := range log {
		switch name := e.Path[strings.LastIndexByte(e.Path, '/')+1:]; {
		case e.Kind != checkpoint.Done, slices.Contains([]string{"swim", "abyss", "dive", "each", "1", "2"}, name):
		default:
			done = append(done, e.Path)
		}
	}
	return done
}

// Every checkpoint that History lists can be read in the type of its frame, whether the
// frame has gone on, has ended, or ended in the very append: the state has what was done in
// it by then, and nothing else.
func TestCallsEveryCheckpointIsRead(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsNested(t, ""), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		log := readLog(t, store)
		frames := map[string]int{}
		for p, err := range d.History(t.Context(), run) {
			if err != nil {
				t.Fatal(err)
			}
			want := inFrame(p.Path, callsDone(log[:p.Seq]))
			for _, address := range []string{p.Address(), p.String()} {
				paths, r, err := callsFrameReader(t, d, address, p.Path)
				slices.Sort(paths)
				if err != nil || !slices.Equal(paths, want) || r.Superstep != p.Superstep || r.Frame != p.Path {
					t.Errorf("%s: superstep %d of %q with %q, %v\nwant %q", p, r.Superstep, r.Frame, paths, err, want)
				}
			}
			frames[p.Path]++
		}
		for frame, n := range map[string]int{"": 3, "dive": 3, "dive/swim/1": 2, "dive/swim/2": 2, "dive/abyss": 2, "each": 1, "each/1": 3, "each/2/swim/2": 2, "each/2/abyss": 2} {
			if frames[frame] != n {
				t.Errorf("%d checkpoints of frame %q, want %d", frames[frame], frame, n)
			}
		}
	})
}

// While a run rests inside, a frame tells what it rests on: its own superstep, its part of
// the cursor, the interrupts in it.
func TestCallsFramesAtRest(t *testing.T) {
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, callsNested(t, "each/2/abyss/sink"), store, o)
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "each/2/abyss/sink")
		for _, c := range []struct {
			address, frame string
			superstep      int
			cursor         string
			interrupts     int
			last           string
		}{
			{"", "", 1, "each/2/abyss/sink", 1, "begin"},
			{"each", "each", 0, "each/2/abyss/sink", 1, "begin"},
			{"each/2", "each/2", 2, "each/2/abyss/sink", 1, "each/2/swim/2/stroke"},
			{"each/2/abyss", "each/2/abyss", 0, "each/2/abyss/sink", 1, ""},
			{"each/1", "each/1", 3, "", 0, "each/1/abyss/rise"},
			{"each/2/swim", "each/2/swim/2", 2, "", 0, "each/2/swim/2/stroke"},
			{"each/2/swim/1", "each/2/swim/1", 2, "", 0, "each/2/swim/1/stroke"},
			{"dive", "dive", 3, "", 0, "dive/abyss/rise"},
			{"dive/abyss", "dive/abyss", 2, "", 0, "dive/abyss/rise"},
			{"1", "", 1, "dive,each", 0, "begin"},
		} {
			paths, r, err := callsFrameReader(t, d, c.address, c.frame)
			if err != nil {
				t.Errorf("%q: %v", c.address, err)
				continue
			}
			last := ""
			if len(paths) > 0 {
				last = paths[len(paths)-1]
			}
			cursor := strings.Join(r.Cursor.Visits, ",")
			if r.Frame != c.frame || r.Superstep != c.superstep || !strings.HasPrefix(cursor, c.cursor) || c.cursor == "" && cursor != "" ||
				len(r.Interrupts) != c.interrupts || last != c.last {
				t.Errorf("%q: frame %q, superstep %d, cursor %q, %d interrupts, last %q", c.address, r.Frame, r.Superstep, cursor, len(r.Interrupts), last)
			}
		}
	})
}

// What is no frame, or a frame of another type, is refused by name.
func TestCallsFramesThatAreNone(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsNested(t, "each/2/abyss/sink"), store, dispatcher.Options{})
	ctx := t.Context()
	if _, err := dispatcher.StateOf[Tale](ctx, d, run, ""); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("a frame of no run: %v", err)
	}
	res, err := d.Run(ctx, run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "each/2/abyss/sink")
	for _, address := range []string{"end", "nobody", "each/3", "each/2/abyss/sink", "dive/swim/9", "2/dive", "1/", "/", "dive@9", "x@1", "99", "@",
		"01", "dive/abyss@01", "01/dive/abyss@1"} {
		res, err := dispatcher.StateOf[Dive](ctx, d, run, address)
		if !errors.Is(err, checkpoint.ErrCursor) || !strings.Contains(err.Error(), fmt.Sprintf("%q", address)) {
			t.Errorf("%q: %v, want ErrCursor that names it", address, err)
		}
		if res.State == nil {
			t.Errorf("%q: the result has no state", address)
		}
	}
	for _, address := range []string{"", "0", "each", "each/2/abyss", "dive/abyss@1"} {
		if _, err := dispatcher.StateOf[Dive](ctx, d, run, address); !errors.Is(err, dispatcher.ErrNested) || !strings.Contains(err.Error(), "Dive") {
			t.Errorf("%q in the wrong type: %v, want ErrNested", address, err)
		}
	}
	if _, err := dispatcher.StateOf[Dive](ctx, d, run, "1/dive"); err != nil {
		t.Errorf("with the number of the turn: %v", err)
	}
}

// A frame of a run that another graph has made is read in the types of the dispatcher's, if
// what it holds fits; if not, the cell is named.
func TestCallsFrameOfAChangedGraph(t *testing.T) {
	store := new(memory.Store)
	d := process(t, callsNested(t, "each/2/abyss/sink"), store, dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "each/2/abyss/sink")
	type Deeper struct {
		Paths state.List[string]
		Name  state.Value[string]
		Air   state.Sum[int]
	}
	type Other struct {
		Name  state.Value[int]
		Paths state.List[string]
	}
	reads := func(dive func(outer *dag.Builder[Tale])) *dispatcher.Dispatcher[Tale] {
		outer := dag.New[Tale]("nested")
		dive(outer)
		return process(t, frozen(t, outer), store, dispatcher.Options{})
	}
	d = reads(func(outer *dag.Builder[Tale]) {
		b := dag.New[Deeper]("dive")
		dag.Step(b, "jump", func(context.Context, *Deeper) error { return nil })
		dag.Embed(outer, "dive", frozen(t, b), func(*Tale, *Deeper) {}, func(*Deeper, *Tale) {})
	})
	deeper, err := dispatcher.StateOf[Deeper](t.Context(), d, run, "dive")
	if err != nil || deeper.State.Name.Get() != "one" || deeper.State.Paths.Len() != 7 {
		t.Errorf("%q, %d paths, %v", deeper.State.Name.Get(), deeper.State.Paths.Len(), err)
	}
	var changed *dispatcher.GraphChangedError
	if _, err := dispatcher.StateOf[Deeper](t.Context(), d, run, "each/2"); !errors.As(err, &changed) || !strings.Contains(err.Error(), "each/2") {
		t.Errorf("a frame that the graph does not have: %v", err)
	}
	d = reads(func(outer *dag.Builder[Tale]) {
		b := dag.New[Other]("dive")
		dag.Step(b, "jump", func(context.Context, *Other) error { return nil })
		dag.Embed(outer, "dive", frozen(t, b), func(*Tale, *Other) {}, func(*Other, *Tale) {})
	})
	if _, err := dispatcher.StateOf[Other](t.Context(), d, run, "dive"); !errors.As(err, &changed) || !strings.Contains(err.Error(), "Name") {
		t.Errorf("a frame whose state does not fit: %v", err)
	}
}

// History lists some frames alone: by path, with all iterations or items of one, and by
// node path in whatever is around it.
func TestCallsHistoryOfFrames(t *testing.T) {
	d := process(t, callsNested(t, ""), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	completes(t, res, err)
	for _, c := range []struct {
		frames []string
		want   string
	}{
		{[]string{""}, "@1 @2 @3"},
		{[]string{"dive"}, "dive@1 dive@2 dive@3"},
		{[]string{"dive/swim"}, "dive/swim/1@1 dive/swim/1@2 dive/swim/2@1 dive/swim/2@2"},
		{[]string{"dive/swim/2"}, "dive/swim/2@1 dive/swim/2@2"},
		{[]string{"dive/abyss", ""}, "@1 @2 @3 dive/abyss@1 dive/abyss@2"},
		{[]string{"each"}, "each/1@1 each/1@2 each/1@3 each/2@1 each/2@2 each/2@3 each@1"},
		{[]string{"each/2"}, "each/2@1 each/2@2 each/2@3"},
		{[]string{"each/abyss"}, "each/1/abyss@1 each/1/abyss@2 each/2/abyss@1 each/2/abyss@2"},
		{[]string{"each/2/swim"}, "each/2/swim/1@1 each/2/swim/1@2 each/2/swim/2@1 each/2/swim/2@2"},
		{[]string{"dive/swim/5"}, ""},
	} {
		var got []string
		for p, err := range d.History(t.Context(), run, c.frames...) {
			if err != nil {
				t.Errorf("%q: %v", c.frames, err)
			}
			got = append(got, p.String())
		}
		slices.Sort(got)
		if list := strings.Join(got, " "); list != c.want {
			t.Errorf("%q: %s, want %s", c.frames, list, c.want)
		}
	}
	for _, frame := range []string{"nobody", "begin", "dive/jump", "dive/swim/abyss", "/"} {
		var failed error
		for _, err := range d.History(t.Context(), run, "", frame) {
			failed = err
		}
		if !errors.Is(failed, checkpoint.ErrCursor) || !strings.Contains(fmt.Sprint(failed), fmt.Sprintf("%q", frame)) {
			t.Errorf("%q: %v, want ErrCursor that names it", frame, failed)
		}
	}
}

// A run may be called like a frame. What is entry and superstep at once is refused; with the
// number of the turn before it, or without what is before the @, there is an address for
// each.
func TestCallsAmbiguousAddress(t *testing.T) {
	says := func(ctx context.Context, s *Tale) error {
		s.Said.Append(visitPath(ctx))
		return nil
	}
	b := dag.New[Tale]("chain")
	step := dag.Step(b, "s0", says)
	for i := range 12 {
		step = dag.Step(b, fmt.Sprint("s", i+1), says, step)
	}
	chain := frozen(t, b)
	b = dag.New[Tale]("outer")
	begins := dag.Step(b, "begin", says)
	in := func(*Tale, *Tale) {}
	dag.Embed(b, "e", chain, in, in, begins)
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	ctx := t.Context()
	for _, id := range []string{"e", "1/e", "other"} {
		if _, err := d.Run(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
		var points []dispatcher.Checkpoint
		for p, err := range d.History(ctx, id) {
			if err != nil {
				t.Fatal(err)
			}
			points = append(points, p)
		}
		refused := 0
		for _, p := range points {
			addresses, found := []string{p.Address(), p.String(), "1/" + p.String()}, 0
			if p.Path == "" {
				addresses = addresses[:2]
			}
			for _, address := range addresses {
				switch res, err := d.At(ctx, id, address); {
				case err == nil && res.Cursor.Seq == p.Seq:
					found++
				case err != nil && errors.Is(err, checkpoint.ErrCursor) && strings.Contains(err.Error(), "is entry"):
					refused++
				default:
					t.Errorf("run %q: %s of %s reads %s, %v", id, address, p, res.Cursor, err)
				}
			}
			if found == 0 {
				t.Errorf("run %q: no address reads %s, entry %d", id, p, p.Seq)
			}
		}
		if (refused > 0) != (id != "other") {
			t.Errorf("run %q: %d addresses are refused", id, refused)
		}
	}
}
