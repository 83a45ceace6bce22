package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// trimGraph has a loop of two iterations in which items ask, and then do an effect.
func trimGraph(t *testing.T) *dag.Graph[Tale] {
	item, body, b := dag.New[Tale]("item"), dag.New[Tale]("body"), dag.New[Tale]("saga")
	ready := dag.Step(item, "ready", func(_ context.Context, s *Tale) error { s.Said.Append("ready " + s.Word.Get()); return nil })
	dag.Step(item, "asks", func(ctx context.Context, s *Tale) error {
		n, err := dag.Ask[int](ctx, "n", "how many?")
		if err != nil {
			return err
		}
		_, err = dag.Effect(ctx, "send", 7, func(context.Context, int) (string, error) { return "sent", nil })
		s.Said.Append(fmt.Sprint(s.Word.Get(), " has ", n))
		return err
	}, ready)
	counts := dag.Step(body, "counts", func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil })
	dag.EachGraph(body, "each", func(*Tale) []string { return []string{"x", "y"} }, frozen(t, item),
		func(from *Tale, it string, to *Tale) { to.Word.Set(fmt.Sprint(it, from.Count.Get())) },
		func(from *Tale, _ string, to *Tale) { to.Said.Append(from.Said.Slice()...) }, counts)
	first := dag.Step(b, "first", func(_ context.Context, s *Tale) error { s.Said.Append("first"); return nil })
	dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get()%2 == 0 }, 4, first)
	return frozen(t, b)
}

// trimSaga is a run of two turns that was edited in several frames, voided, and rewound, and has
// tags at such checkpoints.
func trimSaga(t *testing.T, d *dispatcher.Dispatcher[Tale]) {
	t.Helper()
	asked := 0
	answers := func(n int) {
		t.Helper()
		res, err := d.Run(t.Context(), run, nil)
		for ; errors.Is(err, dispatcher.ErrInterrupted) && n > 0; n-- {
			asked++
			if err := d.Answer(t.Context(), run, res.Interrupts[0].ID, asked); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), run, nil)
		}
		if err != nil && !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	tag := func(at string, names ...string) {
		t.Helper()
		for _, name := range names {
			if err := d.Tag(t.Context(), run, at, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(word, frame string, void ...string) {
		t.Helper()
		o := dispatcher.EditOptions{Frame: frame, Void: void, Reason: word}
		if err := d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set(word) }, o, dispatcher.Author("ann")); err != nil {
			t.Fatal(err)
		}
	}
	answers(1)
	tag("0", "opened")
	tag("loop/1/each/1@2", "item", "item again")
	edit("edited", "")
	tag("", "edit")
	edit("inside", "loop/1", "loop/1/each")
	tag("", "edit inside")
	answers(2)
	tag("loop/2/each/1@1", "item of the second")
	if err := d.Rewind(t.Context(), run, "tag:edit inside", dispatcher.RewindOptions{Reason: "better"}, dispatcher.Author("bob")); err != nil {
		t.Fatal(err)
	}
	tag("", "rewound")
	answers(2)
	edit("of the loop", "loop")
	tag("", "edit of the loop")
	answers(math.MaxInt)
	if _, err := d.Turn(t.Context(), run, func(s *Tale) { s.Word.Set("two") }); !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	tag("2/loop/1@1", "second turn")
	answers(math.MaxInt)
}

// trimReading is what somebody can read of a run: its checkpoints, each as a line, and what every
// address names.
type trimReading struct {
	past   map[uint64]dispatcher.Past
	lines  map[uint64]string
	states map[string]string
}

func readTrimmed(t *testing.T, d *dispatcher.Dispatcher[Tale], addresses ...string) trimReading {
	t.Helper()
	r := trimReading{map[uint64]dispatcher.Past{}, map[uint64]string{}, map[string]string{}}
	all := pastPages(t, func() *dispatcher.Dispatcher[Tale] { return d }, run, 7)
	for i, line := range pastLines(all) {
		p := all[i]
		r.past[p.Seq], r.lines[p.Seq] = p, line
		addresses = append(addresses, p.Address(), p.String())
		for _, name := range p.Tags {
			addresses = append(addresses, "tag:"+name)
		}
	}
	for _, at := range addresses {
		res, err := d.At(t.Context(), run, at)
		switch {
		case errors.Is(err, checkpoint.ErrCursor):
			r.states[at] = "gone"
		case err != nil:
			t.Errorf("%s: %v", at, err)
		default:
			r.states[at] = fmt.Sprintf("turn %d, superstep %d of %q, %v, finished %q: %s",
				res.Turn, res.Superstep, res.Frame, res.Cursor, res.Finished, asJSON(t, res.State))
		}
	}
	return r
}

// Behind a trim every address names the checkpoint that it named before, in whatever frame and of
// whatever cause, or none: what nobody kept is refused, and what was kept for its name is told as
// it was. That is so however much is trimmed, and however often.
func TestTrimmedAddressesNameWhatTheyNamed(t *testing.T) {
	t.Parallel()
	g, store := trimGraph(t), new(memory.Store)
	d := process(t, g, store, dispatcher.Options{})
	trimSaga(t, d)
	was := readTrimmed(t, d)
	var addresses []string
	for at := range was.states {
		addresses = append(addresses, at)
	}
	var file bytes.Buffer
	if err := checkpoint.Export(t.Context(), store, run, &file); err != nil {
		t.Fatal(err)
	}
	copied := func(to checkpoint.Store, file []byte) *dispatcher.Dispatcher[Tale] {
		if _, err := checkpoint.Import(t.Context(), to, bytes.NewReader(file), checkpoint.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		return process(t, g, to, dispatcher.Options{})
	}
	trim := func(d *dispatcher.Dispatcher[Tale], keep dispatcher.Retention) {
		t.Helper()
		if err := d.Trim(t.Context(), run, keep); err != nil {
			t.Fatal(err)
		}
	}
	same := func(what string, d *dispatcher.Dispatcher[Tale], tagged bool) {
		t.Helper()
		is := readTrimmed(t, d, addresses...)
		for seq, line := range is.lines {
			if line != was.lines[seq] {
				t.Errorf("%s: told is\n%s\nand was\n%s", what, line, was.lines[seq])
			}
		}
		for seq, p := range was.past {
			if tagged && len(p.Tags) > 0 && is.states[p.Address()] == "gone" {
				t.Errorf("%s: %s, which is called %q, is gone: entry %d", what, p, p.Tags, seq)
			}
		}
		for at, says := range was.states {
			if now := is.states[at]; now != says && now != "gone" {
				t.Errorf("%s: %s is\n%s\nand was\n%s", what, at, now, says)
			}
		}
	}
	for _, tagged := range []bool{false, true} {
		for last := 1; last < len(was.past); last += 2 {
			once, keep := copied(new(memory.Store), file.Bytes()), dispatcher.Retention{Last: last, Tagged: tagged}
			trim(once, keep)
			same(fmt.Sprintf("%+v", keep), once, tagged)
		}
		disk := openUnsynced(t)
		often := copied(disk, file.Bytes())
		for last := len(was.past); last > 0; last -= 7 {
			keep := dispatcher.Retention{Last: last, Tagged: tagged}
			trim(often, keep)
			same(fmt.Sprintf("again %+v", keep), often, tagged)
		}
		trimVerified(t, disk, run)
		var trimmed bytes.Buffer
		if err := checkpoint.Export(t.Context(), disk, run, &trimmed); err != nil {
			t.Fatal(err)
		}
		same("imported", copied(new(memory.Store), trimmed.Bytes()), tagged)
	}
}

// What was kept for its name is what it was for all who take an address: a difference, a fork,
// which keeps it again when it is trimmed itself, and a rewind.
func TestKeptCheckpointOfAFrame(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		d := callsDispatcher(t, trimGraph(t), store, o)
		trimSaga(t, d)
		diff := func() string {
			t.Helper()
			x, err := d.Diff(t.Context(), run, "tag:edit inside", "tag:second turn")
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(x.From, x.To, x.String())
		}
		was := diff()
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		if is := diff(); is != was {
			t.Errorf("the difference is\n%s\nand was\n%s", is, was)
		}
		forkOne(t, d, "tag:second turn", "fork", dispatcher.Live)
		res, err := d.Run(t.Context(), "fork", nil)
		if err := errors.Join(d.Tag(t.Context(), "fork", "0", "begun"), d.Tag(t.Context(), "fork", "2/loop/1/each/2@1", "item")); err != nil {
			t.Fatal(err)
		}
		for errors.Is(err, dispatcher.ErrInterrupted) {
			if err := d.Answer(t.Context(), "fork", res.Interrupts[0].ID, 1); err != nil {
				t.Fatal(err)
			}
			res, err = d.Run(t.Context(), "fork", nil)
		}
		completes(t, res, err)
		if err := d.Trim(t.Context(), "fork", dispatcher.Retention{Last: 1, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		if begun, err := d.At(t.Context(), "fork", "0"); err != nil || begun.Turn != 2 || begun.State.Word.Get() != "two" {
			t.Errorf("the fork began in turn %d: %s, %v", begun.Turn, asJSON(t, begun.State), err)
		}
		kept, err := d.At(t.Context(), "fork", "tag:item")
		if err != nil || kept.Frame != "loop/1/each/2" || kept.Turn != 2 || kept.State.Word.Get() != "y3" {
			t.Errorf("the fork has kept superstep %d of %q in turn %d: %s, %v", kept.Superstep, kept.Frame, kept.Turn, asJSON(t, kept.State), err)
		}
		trimVerified(t, store, "fork")
		if err := d.Rewind(t.Context(), run, "2/loop/1@1", dispatcher.RewindOptions{}); err != nil {
			t.Fatal(err)
		}
		if res, err := dispatcher.StateOf[Tale](t.Context(), d, run, "loop"); err != nil || res.Frame != "loop/1" || res.State.Count.Get() != 3 {
			t.Errorf("rewound, the loop is %+v, %v", res, err)
		}
		past, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Frames: []string{"loop/1"}, Causes: []dispatcher.Cause{dispatcher.CauseEdited}})
		if err != nil || len(past) != 1 || past[0].Reason != "inside" || past[0].Author != "ann" || past[0].At.IsZero() || past[0].Abandoned {
			t.Errorf("edited in loop/1 are %+v, %v", past, err)
		}
	})
}

// How a frame ended that was trimmed is not told by a checkpoint in it that was kept for its name,
// nor how often its loop went round: its path is refused, and the address reads what was kept.
func TestPathOfATrimmedFrame(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		count := func(_ context.Context, s *Tale) error { s.Count.Add(1); return nil }
		body, b := dag.New[Tale]("body"), dag.New[Tale]("tale")
		dag.Step(body, "b", count, dag.Step(body, "a", count))
		loop := dag.Loop(b, "loop", frozen(t, body), func(s *Tale) bool { return s.Count.Get() == 4 }, 4)
		again := dag.Loop(b, "again", frozen(t, body), func(s *Tale) bool { return s.Count.Get() > 5 }, 4, loop)
		dag.Step(b, "end", count, again)
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		ended := func(path, frame string, n int) {
			t.Helper()
			res, err := dispatcher.StateOf[Tale](t.Context(), d, run, path)
			if err != nil || res.Frame != frame || res.State.Count.Get() != n {
				t.Errorf("%s is %+v, %v, want %s with %d", path, res, err, frame, n)
			}
		}
		ended("loop", "loop/2", 4)
		ended("loop/1", "loop/1", 2)
		if err := d.Tag(t.Context(), run, "loop/1@1", "x"); err != nil {
			t.Fatal(err)
		}
		if err := d.Trim(t.Context(), run, dispatcher.Retention{Last: 3, Tagged: true}); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"loop", "loop/1", "loop/2", "1/loop"} {
			res, err := dispatcher.StateOf[Tale](t.Context(), d, run, path)
			if !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("%s is %+v, %v", path, res, err)
			}
			advises(t, err, "the run was trimmed")
		}
		for _, path := range []string{"2/loop", "loop/1/a", "nobody"} {
			_, err := dispatcher.StateOf[Tale](t.Context(), d, run, path)
			advises(t, err, "has begun")
		}
		ended("loop/1@1", "loop/1", 1)
		ended("tag:x", "loop/1", 1)
		ended("again", "again/1", 6)
		ended("", "", 7)
	})
}

// A frame that was kept for its name, and then voided or rewound to before, is abandoned: its
// address finds it no more, and its name does.
func TestKeptCheckpointIsAbandoned(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]func(d *dispatcher.Dispatcher[Tale]) error{
		"voided": func(d *dispatcher.Dispatcher[Tale]) error {
			return d.Edit(t.Context(), run, func(s *Tale) { s.Word.Set("else") }, dispatcher.EditOptions{Void: []string{"loop"}})
		},
		"rewound": func(d *dispatcher.Dispatcher[Tale]) error {
			return d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{})
		},
	} {
		d := process(t, trimGraph(t), new(memory.Store), dispatcher.Options{})
		if _, err := d.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
			t.Fatal(err)
		}
		err := errors.Join(d.Tag(t.Context(), run, "1", "first"), d.Tag(t.Context(), run, "loop/1@1", "counted"),
			d.Trim(t.Context(), run, dispatcher.Retention{Last: 1, Tagged: true}))
		if err != nil {
			t.Fatal(err)
		}
		for _, abandoned := range []bool{false, true} {
			past, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{Tags: []string{"counted"}})
			if err != nil || len(past) != 1 || past[0].Abandoned != abandoned || past[0].String() != "loop/1@1" {
				t.Errorf("%s: %t: kept is %+v, %v", name, abandoned, past, err)
			}
			res, err := d.At(t.Context(), run, "tag:counted")
			if err != nil || res.Frame != "loop/1" || res.State.Count.Get() != 1 {
				t.Errorf("%s: %t: by its name it is %+v, %v", name, abandoned, res, err)
			}
			if _, err := d.At(t.Context(), run, "loop/1@1"); errors.Is(err, checkpoint.ErrCursor) != abandoned {
				t.Errorf("%s: %t: by its address it is %v", name, abandoned, err)
			}
			if abandoned {
				break
			}
			if err := leaves(d); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An oldTrimmer is a store that is trimmed as by builds which kept nothing with a machine of what
// the log told of its checkpoint.
type oldTrimmer struct{ *memory.Store }

func (s oldTrimmer) Trim(ctx context.Context, l checkpoint.Lease, at checkpoint.Head, e checkpoint.Entry, bases ...[]byte) (checkpoint.Head, error) {
	for i, base := range bases {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(base, &m); err != nil {
			return at, err
		}
		delete(m, "kept")
		delete(m, "reached")
		old, err := json.Marshal(m)
		if err != nil {
			return at, err
		}
		bases[i] = old
		e.Data = bytes.ReplaceAll(e.Data, []byte(checkpoint.BaseDigest(base)), []byte(checkpoint.BaseDigest(old)))
	}
	return s.Store.Trim(ctx, l, at, e, bases...)
}

// What an earlier build kept for its name goes on being read by that name, also behind a further
// trim.
func TestKeptByAnEarlierBuild(t *testing.T) {
	t.Parallel()
	var w witness
	g, store := rewindLine(t, &w, "a", "b", "c", "d"), oldTrimmer{new(memory.Store)}
	keep := dispatcher.Retention{Last: 2, Tagged: true}
	old := callsDispatcher(t, g, store, dispatcher.Options{})
	res, err := old.Run(t.Context(), run, nil)
	completes(t, res, err)
	if err := errors.Join(old.Tag(t.Context(), run, "1", "good"), old.Tag(t.Context(), run, "3", "new"), old.Trim(t.Context(), run, keep)); err != nil {
		t.Fatal(err)
	}
	d := process(t, g, store.Store, dispatcher.Options{})
	keep.Last = 1
	for range 2 {
		if res, err := d.At(t.Context(), run, "tag:good"); err != nil || res.Superstep != 1 {
			t.Errorf("what was kept is of superstep %d, %v", res.Superstep, err)
		}
		if res, err := d.At(t.Context(), run, "3"); err != nil || res.Superstep != 3 {
			t.Errorf("what was kept later is of superstep %d, %v", res.Superstep, err)
		}
		if err := d.Trim(t.Context(), run, keep); err != nil {
			t.Fatal(err)
		}
	}
	past, err := d.HistoryOf(t.Context(), run, dispatcher.HistoryFilter{})
	if err != nil || len(past) != 3 || !past[0].At.IsZero() || past[1].At.IsZero() {
		t.Errorf("the past is %q, %v", pastLines(past), err)
	}
	trimVerified(t, store.Store, run)
}

// A checkpoint that a trim has dropped with its name stays dropped, also if it is the last one
// before what is left, and a later trim keeps names.
func TestTrimKeepsNoNameThatIsGone(t *testing.T) {
	t.Parallel()
	eachCallsStore(t, func(t *testing.T, store checkpoint.Store, o dispatcher.Options) {
		inner, b := dag.New[Tale]("inner"), dag.New[Tale]("beside")
		dag.Each(inner, "none", func(*Tale) []int { return nil }, func(context.Context, *Tale, int) error { return nil })
		g := frozen(t, inner)
		left := dag.Embed(b, "left", g, func(*Tale, *Tale) {}, func(*Tale, *Tale) {})
		right := dag.Embed(b, "right", g, func(*Tale, *Tale) {}, func(*Tale, *Tale) {})
		dag.Step(b, "last", func(context.Context, *Tale) error { return nil }, left, right)
		d := callsDispatcher(t, frozen(t, b), store, o)
		res, err := d.Run(t.Context(), run, nil)
		completes(t, res, err)
		if err := d.Tag(t.Context(), run, "left@1", "of the left"); err != nil {
			t.Fatal(err)
		}
		for _, keep := range []dispatcher.Retention{{Last: 3}, {Last: 1, Tagged: true}} { // right@1, 1 and 2 at first
			if err := d.Trim(t.Context(), run, keep); err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{"tag:of the left", "left@1"} {
				if res, err := d.At(t.Context(), run, at); !errors.Is(err, checkpoint.ErrCursor) {
					t.Errorf("%+v: %q is entry %d, superstep %d of %q (%v), and was dropped", keep, at, res.Cursor.Seq, res.Superstep, res.Frame, err)
				}
			}
			for _, p := range pastPages(t, func() *dispatcher.Dispatcher[Tale] { return d }, run, 7) {
				if len(p.Tags) > 0 {
					t.Errorf("%+v: the past has %s, named %q", keep, p, p.Tags)
				}
			}
		}
		trimVerified(t, store, run)
	})
}
