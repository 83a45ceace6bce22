package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// A storm is a supervisor over a store that has no room now and then, for some runs or for all, and
// what calls of all kinds have seen of it. What it holds true is said where it is checked.
type storm struct {
	*testing.T
	d       *dispatcher.Dispatcher[parcel]
	s       *supervisor.Supervisor
	options supervisor.Options

	mu        sync.Mutex
	rnd       *rand.Rand
	full      bool
	big       map[string]bool // runs for which alone there is no room
	luck      float64         // how likely a write finds no room though others do
	atWork    map[string]int  // bodies, by run
	told      map[string]map[supervisor.EventKind]int
	tasks     []*supervisor.Task[parcel]
	continued []*supervisor.Task[struct{}]
	log       []string
	born      time.Time
}

// note keeps what has happened to a run, for who looks for the cause of a failure.
func (st *storm) note(run, format string, a ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.log = append(st.log, fmt.Sprintf("%s %v %s", run, time.Since(st.born), fmt.Sprintf(format, a...)))
}

// history tells it.
func (st *storm) history(run string) {
	for _, l := range st.log {
		if strings.HasPrefix(l, run) {
			st.Log(l)
		}
	}
}

func newStorm(t *testing.T, seed uint64) *storm {
	st := &storm{
		T: t, rnd: rand.New(rand.NewPCG(seed, 42)), big: map[string]bool{}, atWork: map[string]int{},
		told: map[string]map[supervisor.EventKind]int{}, born: time.Now(),
	}
	for _, run := range stormRuns {
		st.big[run] = st.chance(0.1)
	}
	if st.chance(0.5) {
		st.luck = 0.1
	}
	return st
}

// below returns a number below n.
func (st *storm) below(n int) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.rnd.IntN(n)
}

func (st *storm) chance(p float64) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.rnd.Float64() < p
}

func (st *storm) pause(most time.Duration) time.Duration {
	return time.Duration(st.below(int(most/time.Millisecond)+1)) * time.Millisecond
}

// The letter of a run is its key; those that have a 1 ask a question.
var stormRuns = []string{"a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3", "c1", "c2", "c3", "d1"}

func (st *storm) run() string { return stormRuns[st.below(len(stormRuns))] }

func (st *storm) store() *memory.Faulty {
	return &memory.Faulty{Fail: func(_ context.Context, w memory.Write) memory.Fault {
		unlucky := st.chance(st.luck)
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.full || st.big[w.Run] || unlucky {
			return memory.Full
		}
		return memory.None
	}}
}

// body is a step of a run: at most one run is at work as often as its key and the supervisor may
// have, and none twice at once.
func (st *storm) body(ctx context.Context, step int) error {
	run, _, _ := strings.Cut(dag.Key(ctx), "/")
	st.mu.Lock()
	st.atWork[run]++
	ofKey, all := 0, 0
	for other, n := range st.atWork {
		if n > 1 {
			st.Errorf("%d bodies of %s run at once", n, other)
		}
		if all += n; other[0] == run[0] {
			ofKey += n
		}
	}
	if all > st.options.Cap || st.options.AtWork > 0 && ofKey > st.options.AtWork {
		st.Errorf("%d runs are at work, and %d of the key of %s", all, ofKey, run)
	}
	st.mu.Unlock()
	defer func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.atWork[run]--; st.atWork[run] == 0 {
			delete(st.atWork, run)
		}
	}()
	if err := heeds(ctx, st.pause(3*time.Second)); err != nil {
		return err
	}
	if step == 1 && run[1] == '1' {
		_, err := dag.Ask[bool](ctx, "ok", nil)
		return err
	}
	return nil
}

// observe counts what is told of a run. Some observers take their time, or end the goroutine.
func (st *storm) observe(e supervisor.Event) {
	st.mu.Lock()
	of := st.told[e.Run]
	if of == nil {
		of = map[supervisor.EventKind]int{}
		st.told[e.Run] = of
	}
	of[e.Kind]++
	st.log = append(st.log, fmt.Sprintf("%s %v %v", e.Run, time.Since(st.born), e))
	atWork := of[supervisor.Began] - of[supervisor.Ended] - of[supervisor.PutBack]
	if atWork < 0 || atWork > 1 || of[supervisor.Began] > of[supervisor.Queued]+of[supervisor.PutBack] {
		st.Errorf("behind %s there are %v", e, of)
	}
	st.mu.Unlock()
	switch e.Kind {
	case supervisor.Began, supervisor.Ended, supervisor.PutBack:
		switch st.below(40) {
		case 0:
			lasts(st.pause(3 * time.Second))
		case 1:
			runtime.Goexit()
		case 2:
			panic("an observer")
		}
	}
}

// act makes some call.
func (st *storm) act(ctx context.Context) {
	run := st.run()
	key := run[:1]
	labels := dispatcher.Labels(map[string]string{"tenant": key})
	input := func(p *parcel) { p.Name.Set(run) }
	var task *supervisor.Task[parcel]
	var err error
	what := st.below(12)
	defer func() { st.note(run, "call %d returns %v", what, err) }()
	st.note(run, "call %d", what)
	switch what {
	case 0, 1, 2, 3:
		task, err = supervisor.Submit(ctx, st.s, st.d, key, run, input, labels)
	case 4:
		task, err = supervisor.Go(ctx, st.s, st.d, key, run, func(ctx context.Context, drain dispatcher.RunOption) (*dispatcher.Result[parcel], error) {
			return st.d.Start(ctx, run, input, drain, labels)
		})
	case 5, 6:
		var continued *supervisor.Task[struct{}]
		if continued, err = st.s.Continue(ctx, key, run); err == nil {
			st.mu.Lock()
			st.continued = append(st.continued, continued)
			st.mu.Unlock()
		}
	case 7:
		st.withdraw()
	case 8:
		failed := st.d.Cancel(ctx, run, errLost) // there may be no room
		st.note(run, "cancel %v", failed)
	case 9:
		failed := st.d.Answer(ctx, run, "", true)
		st.note(run, "answer %v", failed)
	case 10:
		ctx, cancel := context.WithTimeout(ctx, st.pause(20*time.Second))
		defer cancel()
		r, failed := st.s.Recover(ctx)
		for _, id := range stormRuns {
			st.note(id, "recovered %+v %v", r, failed)
		}
	case 11:
		failed := st.d.Create(ctx, run, input, labels)
		st.note(run, "create %v", failed)
	}
	if task != nil {
		st.mu.Lock()
		st.tasks = append(st.tasks, task)
		st.mu.Unlock()
	}
	for _, may := range []error{nil, supervisor.ErrDraining, supervisor.ErrQueueFull, dispatcher.ErrBusy, checkpoint.ErrNotFound} {
		if errors.Is(err, may) {
			return
		}
	}
	st.Errorf("a submission of %s is refused: %v", run, err)
}

func (st *storm) withdraw() {
	st.mu.Lock()
	var task *supervisor.Task[parcel]
	if n := len(st.tasks); n > 0 {
		task = st.tasks[st.rnd.IntN(n)]
	}
	st.mu.Unlock()
	if task != nil {
		task.Withdraw()
	}
}

// rages lets calls be made for a while, and the store be full from time to time.
func (st *storm) rages() {
	var all sync.WaitGroup
	end := time.Now().Add(3 * time.Minute)
	for range 5 {
		all.Go(func() {
			for time.Now().Before(end) {
				st.act(st.Context())
				lasts(st.pause(4 * time.Second))
			}
		})
	}
	all.Go(func() {
		for time.Now().Before(end) {
			lasts(st.pause(20 * time.Second))
			st.setFull(st.chance(0.5))
		}
	})
	all.Wait()
}

func (st *storm) setFull(full bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.full = full
}

// isDone checks that each task is, and that what was told of runs is whole.
func (st *storm) isDone() {
	for _, task := range st.tasks {
		select {
		case <-task.Done():
		default:
			st.Errorf("the task of %s is not done", task.Run())
			continue
		}
		res, err := task.Wait(st.Context())
		if err == nil && (res.Status != checkpoint.StatusCompleted || res.State.Name.Get() != task.Run()) {
			st.Errorf("%s is %s, of %q", task.Run(), res.Status, res.State.Name.Get())
		}
	}
	for _, task := range st.continued {
		select {
		case <-task.Done():
		default:
			st.Errorf("the task of %s, which is continued, is not done", task.Run())
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for run, of := range st.told {
		if run != "" && (of[supervisor.Queued]+of[supervisor.PutBack] != of[supervisor.Began]+of[supervisor.Dropped] ||
			of[supervisor.Began] != of[supervisor.Ended]+of[supervisor.PutBack]) {
			st.Errorf("of %s are told %v", run, of)
		}
	}
	if working, waiting := st.s.Load(); working != 0 || waiting != 0 {
		st.Errorf("%d are at work and %d wait", working, waiting)
	}
}

// drains ends the supervisor, and checks that Drain tells of each run that it has left.
func (st *storm) drains(store checkpoint.Store) {
	ctx, cancel := context.WithTimeout(st.Context(), 10*time.Second+st.pause(20*time.Second))
	defer cancel()
	began := time.Now()
	report, err := st.s.Drain(ctx)
	if took := time.Since(began); err != nil || took > time.Minute {
		st.Errorf("Drain = %+v, %v after %v", report, err, took)
	}
	seen := map[string]bool{}
	for _, run := range slices.Concat(report.Finished, report.Left, report.Stuck, report.Waiting) {
		if seen[run] {
			st.Errorf("Drain tells of %s twice: %+v", run, report)
		}
		seen[run] = true
	}
	for run, status := range statuses(st, store) {
		if status == checkpoint.StatusRunning && !slices.Contains(report.Left, run) {
			st.Errorf("%s is running, and Drain tells %+v", run, report)
			st.history(run)
		}
	}
}

// Over a store that has room now and then no run is lost, made twice, or at work twice at once,
// whatever is called meanwhile; each task is done some time behind that, what is told is whole, and
// the next process brings to rest what a Drain has left.
func TestRandomCallsOverAStoreThatIsFullNowAndThen(t *testing.T) {
	n := uint64(30)
	if asked, err := strconv.Atoi(os.Getenv("PAWL_RANDOM")); err == nil {
		n = uint64(asked)
	}
	for seed := uint64(0); seed < n && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { newStorm(t, seed).passes() })
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}
}

func (st *storm) passes() {
	store := st.store()
	st.d = process(st, line(st, "line", 3, st.body), store, dispatcher.Options{Grace: time.Second})
	st.options = supervisor.Options{
		Cap: 1 + st.below(4), AtWork: st.below(3), Queue: 4 + st.below(20), Label: "tenant",
		Answered: st.chance(0.5), Observe: st.observe,
	}
	st.s = supervise(st, store, st.options, st.d)
	if st.chance(0.5) {
		st.rages()
		st.setFull(false)
		lasts(20 * time.Minute)
		if st.luck == 0 && !slices.Contains(stormBig(st), true) {
			st.isDone()
		}
		st.drains(store)
	} else {
		drained := make(chan struct{})
		go func() {
			lasts(st.pause(3 * time.Minute))
			st.drains(store)
			close(drained)
		}()
		st.rages()
		<-drained
	}
	lasts(time.Minute) // of observers
	st.isDone()
	st.setFull(false)
	st.luck = 0
	clear(st.big)
	st.options = supervisor.Options{Cap: 2, Label: "tenant", Answered: true}
	next := supervise(st, store, st.options, st.d)
	if r, err := next.Recover(st.Context()); err != nil || len(r.Left)+len(r.Busy)+len(r.Failed) > 0 {
		st.Errorf("Recover = %+v, %v", r, err)
	}
	for run, status := range statuses(st, store) {
		if !status.Resting() && status != checkpoint.StatusCompleted {
			st.Errorf("%s is %s", run, status)
		}
		res, err := st.d.State(st.Context(), run)
		if err != nil {
			st.Error(err)
			continue
		}
		steps := strings.Join(res.State.Steps.Slice(), " ")
		want := fmt.Sprintf("%[1]s/step-0 %[1]s/step-1 %[1]s/step-2", run)
		if res.State.Name.Get() != run || !strings.HasPrefix(want, steps) || status == checkpoint.StatusCompleted && steps != want {
			st.Errorf("%s is %s, of %q: %s", run, status, res.State.Name.Get(), steps)
		}
	}
	if _, err := next.Drain(st.Context()); err != nil {
		st.Error(err)
	}
	lasts(time.Minute)
}

func stormBig(st *storm) (all []bool) {
	for _, is := range st.big {
		all = append(all, is)
	}
	return all
}
