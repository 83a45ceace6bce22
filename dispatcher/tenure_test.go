package dispatcher

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
)

// atWork is a run with a visit in flight that has returned and not landed, and a place of
// Options.Parallel beside it that nobody has used.
func atWork(t *testing.T) *run {
	d, err := New(thawLine(t), nil, Options{Parallel: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := d.core.newRun(t.Context(), "r")
	v := r.bodyOf("returned")
	v.word.Store(visitReturned)
	r.flight = append(r.flight, v)
	r.slot = true
	r.c.slots <- struct{}{}
	return r
}

// thawLine is a graph of one node.
func thawLine(t *testing.T) *dag.Graph[thawed] {
	b := dag.New[thawed]("tenure")
	dag.Step(b, "a", func(context.Context, *thawed) error { return nil })
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// bodyOf is a visit that runs and has its place.
func (r *run) bodyOf(path string) *visit {
	r.c.slots <- struct{}{}
	return &visit{footing: &footing{Context: r.ctx, host: r.host, given: &givenNothing}, where: &path}
}

// An owner whose tenure was taken while it was at home forsakes what is in flight when it learns of
// it, and not before: nothing of the run is the caller's.
func TestOwnerLearnsThatItsTenureWasTaken(t *testing.T) {
	r, h := atWork(t), &tenure{}
	if r.giveUp(h) || r.stuck != errAtHome || len(r.c.slots) != 2 || len(r.flight) != 1 {
		t.Fatalf("given up: %v, %d places taken, %d in flight", r.stuck, len(r.c.slots), len(r.flight))
	}
	r.own(h)
	if len(r.c.slots) != 0 || r.strays.count.Load() != 1 {
		t.Errorf("%d places are taken, %d strays", len(r.c.slots), r.strays.count.Load())
	}
}

// A stray of a run without a store that comes back while its call notes that it has not is no end
// of the process: nothing was posted.
func TestAStrayWithoutAStoreComesBackAtTheEndOfItsCall(t *testing.T) {
	r := atWork(t)
	r.strays.count.Add(1)
	r.strays.last() // of the call, which is about to have others refused
	r.strays.returned()
	r.c.strayed(r.id, &r.strays)
	if err := r.c.stillRunning(r.id); err != nil {
		t.Errorf("a call behind it is refused with %v", err)
	}
}

// While an owner that was given up at home has not learnt of it the run is refused, and the text
// says who holds it.
func TestStillRunningNamesTheDispatcher(t *testing.T) {
	r, h := atWork(t), &tenure{}
	r.giveUp(h)
	r.letGo()
	if err := r.c.stillRunning(r.id); !errors.Is(err, ErrStillRunning) || err.Error() != ErrStillRunning.Error()+": the dispatcher" {
		t.Errorf("a call beside it is refused with %v", err)
	}
	r.own(h)
	if err := r.c.stillRunning("r"); err != nil {
		t.Errorf("a call behind it is refused with %v", err)
	}
}

// Behind that the visits that still run are named.
func TestStillRunningNamesWhatTheOwnerForsakes(t *testing.T) {
	r, h := atWork(t), &tenure{}
	r.flight = append(r.flight, r.bodyOf("runs"))
	r.giveUp(h)
	r.letGo()
	r.own(h)
	if err := r.c.stillRunning(r.id); !errors.Is(err, ErrStillRunning) || err.Error() != ErrStillRunning.Error()+": runs" {
		t.Errorf("a call beside the visit is refused with %v", err)
	}
	r.strays.returned()
	if err := r.c.stillRunning(r.id); err != nil {
		t.Errorf("a call behind it is refused with %v", err)
	}
}

// So it does beside what the caller has abandoned, whoever says so first.
func TestStillRunningNamesWhatBothHaveAbandoned(t *testing.T) {
	for _, callerFirst := range []bool{true, false} {
		r, h := atWork(t), &tenure{}
		r.flight = append(r.flight, r.bodyOf("runs"))
		r.giveUp(h)
		r.letGo()
		want := "runs, Hooks.OnEnd"
		if callerFirst {
			want = "Hooks.OnEnd, runs"
			r.strays.name([]string{doingOnEnd})
		}
		r.own(h)
		if !callerFirst {
			r.strays.name([]string{doingOnEnd})
		}
		if err := r.c.stillRunning(r.id); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("a call beside them is refused with %v, want %s", err, want)
		}
		r.strays.returned()
	}
}

// A caller that gives up on an owner in the body of a visit names the visit, which keeps its place
// until it returns.
func TestCallerGivesUpOnABody(t *testing.T) {
	r := atWork(t)
	v := r.bodyOf("runs")
	h := &tenure{visit: v}
	h.word.Store(inNode)
	if r.giveUp(h) || !v.over() || !slices.Equal(r.names, []string{"runs"}) || len(r.c.slots) != 1 {
		t.Errorf("given up: %v, %q abandoned, %d places taken", r.stuck, r.names, len(r.c.slots))
	}
	r.exited(h)
	if len(r.c.slots) != 0 || r.strays.count.Load() != 1 {
		t.Errorf("%d places are taken, %d strays", len(r.c.slots), r.strays.count.Load())
	}
}

// A call does not return while a goroutine of a fan has not looked that there is nothing left to
// do.
func TestNoGoroutineOfAFanIsLeft(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the other one runs once finish lets it
	r := atWork(t)
	r.spares.Store(1)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if r.tenure.word.Load() == finishedRun {
			t.Error("the call has returned")
		}
		r.spares.Store(0)
	}()
	r.finish(&r.tenure)
	if <-looked; r.tenure.word.Load() != finishedRun {
		t.Error("the run has not come to its end")
	}
}

// A run is another one's memory only if none of its own goroutines could come by late.
func TestARunWithGoroutinesIsNotLeft(t *testing.T) {
	for _, listens := range []bool{false, true} {
		r := atWork(t)
		<-r.c.slots
		<-r.c.slots
		r.flight, r.slot = nil, false
		w, err := r.c.wish(modeStart, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.setUp = func() early { return early{err: r.open(w, nil)} }
		if !r.watch() {
			t.Fatal("the run has not come to rest")
		}
		if listens {
			r.listen()
		}
		if r.c.leave(r); (r.host == nil) == listens {
			t.Errorf("listens=%t: its memory is left: %t", listens, r.host == nil)
		}
	}
}

// The observer of a call that was given up while its owner was at home is told by the owner that it
// has ended: the caller can't.
func TestOwnerTellsThatItsCallHasEnded(t *testing.T) {
	for _, told := range []bool{true, false} {
		r, h := atWork(t), &tenure{}
		var rested []Event
		r.c.opts.Observe = func(e Event) { rested = append(rested, e) }
		r.told = told // that it is live
		r.giveUp(h)
		if _, err := r.conclude(false); !errors.Is(err, ErrStuck) || len(rested) > 0 {
			t.Errorf("the call returns %v, and the caller tells %v", err, rested)
		}
		r.own(h)
		if !told {
			if len(rested) > 0 {
				t.Errorf("of a call that nobody knows the observer is told %v", rested)
			}
			continue
		}
		if len(rested) != 1 || rested[0].Kind != RunRested || rested[0].Status != checkpoint.StatusRunning || !errors.Is(rested[0].Err, ErrStuck) {
			t.Errorf("the observer is told %v, want that the call has ended", rested)
		}
	}
}

// An owner that is to tell its observer of the beginning, and finds that its call was given up,
// tells of no end either.
func TestOwnerTellsNoEndOfWhatHasNotBegun(t *testing.T) {
	r, h := atWork(t), &tenure{}
	var told []Event
	r.c.opts.Observe = func(e Event) { told = append(told, e) }
	r.events = []Event{{Kind: RunStarted}}
	r.giveUp(h)
	if r.observeFacts(h) || len(told) > 0 {
		t.Fatalf("the observer is told %v", told)
	}
	if r.gone(h); len(told) > 0 {
		t.Errorf("the observer is told %v, and of no beginning", told)
	}
	r = atWork(t)
	r.c.opts.Observe = func(e Event) { told = append(told, e) }
	r.logged = new(logged)
	r.ahead = []*batch{{events: []Event{{Kind: RunStarted}}}}
	h = &tenure{}
	r.giveUp(h)
	if r.tellBatches(h, r.ahead) {
		t.Fatal("an owner without its tenure tells")
	}
	if r.gone(h); len(told) > 0 {
		t.Errorf("the observer is told %v, and of no batch", told)
	}
}

// What has ended counts as ended also if the time for it is over: whoever waits looks once more.
func TestWhatHasEndedInTimeIsNotAbandoned(t *testing.T) {
	r := atWork(t)
	r.c.opts.Grace = 0
	ended := make(chan struct{})
	close(ended)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if !r.within(ended, time.Now().Add(-time.Second)) {
			t.Fatal("a goroutine that has ended is abandoned")
		}
		if !r.c.endsInTime(ctx, ended) {
			t.Fatal("a trim that has ended is abandoned")
		}
	}
}

// heldPosts is a store that says what was posted to a run once free is closed.
type heldPosts struct {
	checkpoint.Store
	asked, free chan struct{}
}

func (s heldPosts) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	close(s.asked)
	<-s.free
	return s.Store.Posts(ctx, run)
}

// A caller that gives up on the set-up of a run tells of that while its owner goes on with it, who
// writes to nothing that the caller reads.
func TestCallerGivesUpOnTheSetUp(t *testing.T) {
	for _, stored := range []bool{false, true} {
		r := atWork(t)
		asked, free := make(chan struct{}), make(chan struct{})
		input := func(any) { close(asked); <-free }
		labelled := []RunOption{Labels(map[string]string{"key": "value"}), Correlation("id")}
		how := modeStart
		if stored {
			d, err := New(thawLine(t), new(memory.Store), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Start(t.Context(), "r", nil, labelled...); err != nil {
				t.Fatal(err)
			}
			d.core.store = heldPosts{d.core.store, asked, free}
			r, how, input = d.core.newRun(t.Context(), "r"), modeTurn, nil
		}
		w, err := r.c.wish(how, labelled)
		if err != nil {
			t.Fatal(err)
		}
		r.setUp = func() early {
			if !stored {
				return early{err: r.open(w, input)}
			}
			return r.find(w, input)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.own(&r.tenure)
		}()
		<-asked
		r.giveUp(&r.tenure)
		was := r.about.Load()
		close(free)
		r.left(r.stuck) // the race detector looks
		if <-ended; was.labels != nil || was.correlation != "" {
			t.Errorf("stored=%t: the owner wrote %v and %q where the caller reads", stored, was.labels, was.correlation)
		}
	}
}

// A goroutine that appends what was handed over ends behind the one before it, which has found
// nothing and not ended yet: who waits for the last one waits for all.
func TestWhoAppendsBehindEndsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(thawLine(t), new(memory.Store), Options{Lag: 1})
		if err != nil {
			t.Fatal(err)
		}
		r := d.core.newRun(t.Context(), "r")
		if r.journal.lease, _, err = r.c.acquire(t.Context(), "r", r.c.owner); err != nil {
			t.Fatal(err)
		}
		before := make(chan struct{})
		r.appending = before
		r.handOver(&batch{entries: []checkpoint.Entry{{Kind: checkpoint.Opened, Data: nothingMore}}})
		synctest.Wait()
		select {
		case <-r.appending:
			t.Error("the last one has ended, and the one before it has not")
		default:
		}
		close(before)
		if <-r.appending; r.durable.Load() != 1 || r.strays.count.Load() != 1 {
			t.Errorf("%d entries are durable, and %d hold the run", r.durable.Load(), r.strays.count.Load())
		}
	})
}
