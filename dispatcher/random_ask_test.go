package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// ask asks all that the visit has to, and returns the answers once all are there.
func (b *bench) ask(ctx context.Context, path string) (answers []string, err error) {
	if b.questions == nil {
		return nil, nil
	}
	for _, key := range b.questions(path) {
		answer, missing := dag.Ask[string](ctx, key, "what do you say?", expires(path, key)...)
		answers = append(answers, answer)
		err = errors.Join(err, missing)
	}
	return answers, err
}

// questions are the keys of what the visit at path asks: nothing, one thing or two.
func (c *randomCase) questions(path string) (keys []string) {
	for i := range max(0, chance(5, "asks", strconv.FormatUint(c.seed, 10), path)-2) {
		keys = append(keys, fmt.Sprintf("question %d", i))
	}
	return keys
}

// expires lets some questions expire, so early that they may be over while the process is dead,
// while the run rests, or while somebody answers. The default is what would be answered.
func expires(path, key string) []dag.AskOption {
	if n := chance(6, "expires", path, key); n < 2 {
		return []dag.AskOption{dag.Within([...]time.Duration{1, time.Millisecond}[n]), dag.OrDefault(answerTo(path, key))}
	}
	return nil
}

func answerTo(path, key string) string { return fmt.Sprintf("%d ", chance(1000, path, key)) }

// asking is what the reference makes of the graph when everything is answered at once.
func (c *randomCase) asking() *reference {
	r := newReference(c.spec, c.rules, fill(input, "input", ""))
	r.answers = func(path string) (answers []string) {
		for _, key := range c.questions(path) {
			answers = append(answers, answerTo(path, key))
		}
		return answers
	}
	r.consults = true
	return r.run()
}

// A clerk answers what a run asks, some of it while the run is live, and the rest, one
// after the other in any order, while it rests.
type clerk struct {
	*rand.Rand
	d     *dispatcher.Dispatcher[cells]
	asked chan string // ids of interrupts
	done  chan struct{}
}

// hear is told of an interrupt by the run, which it does not hold up.
func (k *clerk) hear(id string) {
	if k.IntN(2) == 0 {
		k.asked <- id
	}
}

// work answers until nothing more is asked. The run may have died or come to rest meanwhile.
func (k *clerk) work(t *testing.T) {
	defer close(k.done)
	for id := range k.asked {
		res, err := k.d.State(t.Context(), runID)
		for _, i := range res.Interrupts {
			if err == nil && i.ID == id {
				k.answer(t, i)
			}
		}
	}
}

// answer answers i. That may fail if the store dies, and if it is answered already.
func (k *clerk) answer(t *testing.T, i dispatcher.Interrupt) {
	t.Helper()
	var answer any = answerTo(i.Path, i.Key)
	switch {
	case i.Kind == dispatcher.KindEffect:
		answer = map[bool]dispatcher.Verdict{true: dispatcher.Approve, false: dispatcher.Reject}[approves(i.Path+"#"+i.Key)]
	case i.By == "" && i.Kind == "before":
		answer = dispatcher.Approve
	case i.By != "":
		answer = map[bool]dispatcher.Verdict{true: dispatcher.Approve, false: dispatcher.Reject}[approves(i.Path)]
	}
	err := k.d.Answer(t.Context(), runID, i.ID, answer)
	if err != nil && !errors.Is(err, errDead) && !errors.Is(err, dispatcher.ErrNotAwaited) && !errors.Is(err, dag.ErrExpired) {
		t.Errorf("%s: Answer returns %v", i, err)
	}
}

// Rule 8 and promise P13: whenever answers and approvals come, and whenever the process dies, a run
// ends as if they had been there at once, and each question is answered once. A visit may wait for
// several things, one after the other and at once. Effects, be they approved or rejected, change
// nothing of what these graphs come to.
func TestRandomGraphsAsk(t *testing.T) {
	t.Parallel()
	var compared, approved, snapshots atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		eachCase(t, func(t *testing.T, c *randomCase) {
			want := c.asking()
			res, approvals := c.endAsking(t, &snapshots)
			approved.Add(int64(approvals))
			if want.status != checkpoint.StatusCompleted { // what ran before it failed is timing
				if res.Status != want.status {
					t.Errorf("the run is %v, the reference is %v", restOf(res), want.rest())
				}
				return
			}
			compared.Add(1)
			sameRest(t, "asked and answered", res, nil, want.rest())
		})
	})
	cases, _ := randomCases()
	if n := compared.Load(); n < int64(len(cases)/3) {
		t.Errorf("only %d runs were completed", n)
	}
	if n := approved.Load(); n < int64(len(cases)) {
		t.Errorf("only %d approvals of effects were spent", n)
	}
	if snapshots.Load() == 0 {
		t.Error("no snapshot was compared with a replay")
	}
}

// endAsking brings a run to its end, over deaths of the store and answers. It counts the snapshots
// that it has compared with a replay: a short run may leave none.
func (c *randomCase) endAsking(t *testing.T, snapshots *atomic.Int64) (res *dispatcher.Result[cells], approvals int) {
	t.Helper()
	r := rand.New(rand.NewPCG(c.seed, 7))
	store := new(mortal)
	if c.seed%10 == 0 { // all that its calls write is compared with a replay
		store.snapshots = map[uint64][]byte{}
	}
	effects := new(effectBank).gatedBody(t, c)
	b := &bench{run: runID, questions: c.questions, body: func(ctx context.Context, path string) error {
		if store.isDone(path) {
			t.Errorf("visit %s runs again, and its entry is durable", path)
		}
		return effects(ctx, path)
	}}
	ctx := b.context(t.Context())
	failed := 0 // rests; two visits that always fail may do so in turns for ever, each while the other one waits to be approved
	for call := range 1000 {
		if err := store.revive(ctx, 2+r.IntN(6)+call/8, r.IntN(2) == 0); err != nil {
			t.Fatal(err)
		}
		k := &clerk{Rand: r, asked: make(chan string, 10_000), done: make(chan struct{})}
		o := dispatcher.Options{Gates: c.gates(), InterruptIf: c.pauses, Paranoid: call%2 == 0, Lag: call % 3, Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitInterrupted {
				k.hear(e.ID)
			}
		}}
		if store.snapshots != nil {
			o = dispatcher.Eager(o)
		}
		k.d = c.newDispatcher(t, store, o)
		go k.work(t) // ends when all that was asked is told
		res, _ = k.d.Run(ctx, runID, inputs)
		close(k.asked)
		<-k.done
		if store.died() {
			continue
		}
		if res.Status == checkpoint.StatusFailed {
			failed++
		}
		if len(res.Interrupts) == 0 || !c.paused(restOf(res), interrupts(res)) || hopeless(res) || failed > 100 {
			if store.snapshots != nil {
				snapshots.Add(int64(sameSnapshots(t, k.d, runID, store)))
			}
			c.answeredOnce(t, store)
			return res, c.approvedFirst(t, store)
		}
		for _, i := range r.Perm(len(res.Interrupts))[r.IntN(len(res.Interrupts)):] {
			k.answer(t, res.Interrupts[i])
		}
	}
	t.Fatal("the run does not come to its end")
	return nil, 0
}

// hopeless reports whether a run has failed and waits for nobody but those who say no: a
// resume overrules some of them, and asks again.
func hopeless(res *dispatcher.Result[cells]) bool {
	return res.Status == checkpoint.StatusFailed && !slices.ContainsFunc(res.Interrupts, func(i dispatcher.Interrupt) bool {
		return i.By == "" || i.Kind == dispatcher.KindEffect || approves(i.Path)
	})
}

// answeredOnce reads in the log that no interrupt was answered twice.
func (c *randomCase) answeredOnce(t *testing.T, store *mortal) {
	t.Helper()
	answers := map[string]int{}
	for e, err := range store.Read(t.Context(), runID, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == checkpoint.Answered {
			answers[e.ID]++
		}
	}
	for id, n := range answers {
		if n != 1 {
			t.Errorf("interrupt %s was answered %d times", id, n)
		}
	}
}
