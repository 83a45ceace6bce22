package continuation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// Whatever happens to a wait, in whatever order, it stands as the model of model_test.go says, and
// who is refused has changed nothing. PAWL_RANDOM asks for another number of lives, and gets other
// ones.
func TestRandomLivesOfAWait(t *testing.T) {
	lives, seed := 200, uint64(1)
	if asked, err := strconv.Atoi(os.Getenv("PAWL_RANDOM")); err == nil {
		lives, seed = asked, 1_000_000
	}
	for ; lives > 0 && !t.Failed(); lives, seed = lives-1, seed+1 {
		synctest.Test(t, func(t *testing.T) {
			l := newLife(t, seed)
			defer func() {
				if t.Failed() {
					t.Logf("seed %d: %s\n%s", seed, &l.m.spec, strings.Join(l.story, "\n"))
				}
			}()
			for range 20 {
				if l.step(); t.Failed() {
					return
				}
			}
		})
	}
}

// A life is a run with one wait, to which things happen, and what the model makes of them.
type life struct {
	*rand.Rand
	t      *testing.T
	m      *model
	g      *dag.Graph[Talk]
	store  *pawltest.Mortal
	p      *process
	asks   []string // ids of the wait and its interrupts
	sent   []continuation.Trigger
	told   map[string]continuation.Receipt // of triggers that were accepted
	bodies map[string]int                  // how often the node has had a payload
	cancel context.CancelFunc              // ends with the process
	began  time.Time
	story  []string
}

func newLife(t *testing.T, seed uint64) *life {
	r := rand.New(rand.NewPCG(seed, 44))
	l := &life{
		Rand: r, t: t, store: &pawltest.Mortal{Store: &memory.Store{}}, told: map[string]continuation.Receipt{},
		bodies: map[string]int{}, cancel: func() {}, began: time.Now(),
	}
	l.m = &model{spec: randomSpec(r), took: map[string]continuation.Trigger{}, runs: map[string]int{}}
	l.g = waiting(t, l.m.wait(), dag.Policy{Attempts: l.m.attempts}, l.body)
	if l.m.frame {
		b := dag.New[Talk]("framed")
		dag.Loop(b, "loop", l.g, func(*Talk) bool { return true }, 1)
		l.g = frozen(t, b)
	}
	l.begins()
	l.p.waits(run)
	l.m.ask(time.Now(), 1)
	l.compare()
	return l
}

func (l *life) begins() { l.p = begin(l.t, l.g, l.store, continuation.Options{}) }

// dies reports whether the process dies behind a payload that the node has had so often before, and
// fails whether the node fails behind it.
func dies(word string, before int) bool {
	return word == "mortal" || before == 0 && (word == "once" || word == "worse")
}
func fails(word string) bool { return word == "bad" || word == "worse" }

// payload is what the node gets of a trigger.
func payload(t *continuation.Trigger) (text string) {
	_ = json.Unmarshal(t.Payload, &text) // none is nothing
	return text
}

// body is the node behind the wait, which does as the payload says.
func (l *life) body(ctx context.Context, s *Talk, r continuation.Reply[string]) error {
	n := l.bodies[r.Payload]
	l.bodies[r.Payload]++
	switch word, _, _ := strings.Cut(r.Payload, " "); {
	case dies(word, n):
		l.store.Kill()
		l.cancel()
		return nil
	case fails(word):
		return errWeather
	case word == "slow":
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(30 * time.Second):
		}
	}
	return says(ctx, s, r)
}

func (l *life) tell(format string, args ...any) {
	l.story = append(l.story, time.Since(l.began).String()+" "+fmt.Sprintf(format, args...))
}

func (l *life) one(of ...string) string { return of[l.IntN(len(of))] }

// step has something happen, and compares what came of it.
func (l *life) step() {
	switch n := l.IntN(20); {
	case n < 8:
		l.triggers(l.trigger())
	case n < 10:
		d := []time.Duration{time.Second, 3 * time.Minute, 8 * time.Minute, 11 * time.Minute}[l.IntN(4)]
		if rest := time.Until(l.m.until); l.IntN(2) == 0 && rest > 0 {
			d = rest - time.Duration(l.IntN(2)) // to the instant, or just before it
		}
		l.tell("%v pass", d)
		lasts(d)
	case n < 12:
		l.tell("sweep")
		now := time.Now()
		_, _ = l.p.rt.Sweep(l.t.Context()) // it may die
		l.m.sweep(now)
		l.settles()
	case n < 13:
		l.tell("recover")
		now := time.Now()
		_, _ = l.p.rt.Recover(l.t.Context()) // so it may here, or have no attempts left
		l.m.recovers(now)
		l.settles()
	case n < 14:
		l.serves()
	case n < 15:
		l.stops()
	case n < 16:
		l.tell("another process")
		l.begins()
	case n < 17 && (l.m.end == "" || l.m.stopped()):
		l.tell("the dispatcher's Run")
		now := time.Now()
		_, _ = l.p.d.Run(l.t.Context(), run, nil)
		l.m.run(now)
		l.settles()
	case n < 18 && l.m.frame && l.m.end != continuation.Completed:
		l.voids()
	default:
		l.together()
	}
	l.compare()
}

// settles begins a new process if the last one has died.
func (l *life) settles() {
	if dead := l.store.Died(); dead != l.m.dead {
		l.t.Errorf("the process has died: %t, want %t", dead, l.m.dead)
	}
	if !l.store.Died() {
		return
	}
	l.tell("it has died")
	if err := l.store.Revive(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.begins()
	l.m.dead = false
}

// trigger is some trigger, often the right one.
func (l *life) trigger() continuation.Trigger {
	if len(l.sent) > 0 && l.IntN(5) == 0 {
		tr := l.sent[l.IntN(len(l.sent))]
		if l.IntN(4) == 0 {
			tr.Payload = json.RawMessage(`"other"`)
		}
		return tr
	}
	n := len(l.sent) + 1
	of := l.m.alternatives()
	is := of[l.IntN(len(of))]
	word := l.one("fine", "fine", "bad", "bad", "slow", "mortal", "once", "worse")
	raw, _ := json.Marshal(fmt.Sprintf("%s %d", word, n))
	tr := continuation.Trigger{ID: fmt.Sprintf("t%d", n), Kind: is.kind, Key: is.key, Actor: continuation.Actor{ID: "x", Authority: is.authority}, Payload: raw}
	if is.authority == continuation.Anybody {
		tr.Actor.Authority = dag.Agent
	}
	if tr.Run = run; l.IntN(2) == 0 {
		tr.Wait = l.asks[l.IntN(len(l.asks))] // stale, perhaps
	}
	switch l.IntN(10) {
	case 0:
		tr.Kind = continuation.Kind(l.one("user_reply", "external_result", "approval_resolution", "scheduled_wake"))
	case 1:
		tr.Key = "another"
	case 2:
		tr.Actor.Authority = dag.Authority(l.one("human", "agent", "system"))
	case 3:
		tr.Payload = json.RawMessage(`5`)
	}
	if tr.Kind == continuation.KindApproval {
		tr.Decision = continuation.Approved
		if l.IntN(3) == 0 {
			tr.Decision = continuation.Denied
		}
	}
	tr.LeaveIt = l.IntN(5) == 0
	l.sent = append(l.sent, tr)
	return tr
}

// triggers pulls a trigger.
func (l *life) triggers(tr continuation.Trigger) {
	l.tell("trigger %+v %s", tr, tr.Payload)
	before := l.p.image(run)
	want, changes := l.m.trigger(&tr, time.Now())
	out, err := l.p.rt.Trigger(l.t.Context(), tr)
	l.tell("  %+v, %v", out, err)
	if l.m.dead || l.store.Died() {
		l.settles()
		return
	}
	if got := refusedAs(err); got != want {
		l.t.Errorf("refused as %q, want %q: %v", got, want, err)
	}
	if !changes && l.p.image(run) != before {
		l.t.Errorf("a trigger that was refused as %q has changed the run", want)
	}
	if want == "" {
		l.accepted(&tr, out)
	}
}

// accepted compares what a trigger that was accepted is told.
func (l *life) accepted(tr *continuation.Trigger, out continuation.Outcome) {
	was, again := l.told[tr.ID]
	if again && out.Receipt != was {
		l.t.Errorf("the receipt is %+v, and was %+v", out.Receipt, was)
	}
	if _, took := l.m.took[tr.ID]; took {
		l.told[tr.ID] = out.Receipt
		if out.Trigger != tr.ID || out.Kind != tr.Kind || out.Actor != tr.Actor || out.Decision != tr.Decision {
			l.t.Errorf("the receipt is %+v", out.Receipt)
		}
	} else if out.Trigger != "" || out.Kind != continuation.KindTimer {
		l.t.Errorf("the receipt of a wake is %+v", out.Receipt)
	}
	if out.Status != l.m.status || out.EndReason != l.m.reason {
		l.t.Errorf("the outcome is %s (%s), want %s (%s)", out.Status, out.EndReason, l.m.status, l.m.reason)
	}
}

// refusedAs is the word of an error for the model.
func refusedAs(err error) string {
	var (
		mismatch  *continuation.MismatchError
		expired   *continuation.ExpiredError
		authority *continuation.AuthorityError
		attempts  *continuation.AttemptsError
		payload   *continuation.PayloadError
	)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, continuation.ErrNotFound):
		return "not found"
	case errors.Is(err, continuation.ErrTerminal):
		return "ended"
	case errors.As(err, &expired):
		return "expired"
	case errors.As(err, &mismatch):
		return "mismatch"
	case errors.As(err, &authority):
		return "authority"
	case errors.As(err, &attempts):
		return "attempts"
	case errors.Is(err, continuation.ErrTaken):
		return "taken"
	case errors.As(err, &payload):
		return "payload"
	}
	return err.Error()
}

// serves has somebody serve for some minutes.
func (l *life) serves() {
	d := time.Duration(1+l.IntN(15))*time.Minute + 123*time.Millisecond
	l.tell("serve for %v", d)
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	l.cancel = cancel
	defer cancel()
	l.m.serve(time.Now(), time.Now().Add(d))
	_ = l.p.rt.Serve(ctx, nil) // it tells that ctx has ended
	l.cancel = func() {}
	l.settles()
}

func (l *life) stops() {
	s := continuation.Stopping{Reason: continuation.Reason(l.one("cancelled_by_user", "superseded_by_newer_turn", "quota")), By: "ann"}
	l.tell("stop %s", s.Reason)
	before := l.p.image(run)
	ended := l.m.end != ""
	end, err := l.p.rt.Stop(l.t.Context(), run, s)
	l.m.stop(s.Reason)
	if err != nil || end.Reason != l.m.end {
		l.t.Errorf("stopped: %+v, %v; want the reason %q", end, err, l.m.end)
	}
	if ended && l.p.image(run) != before {
		l.t.Error("a stop of what had ended has changed it")
	}
}

func (l *life) voids() {
	l.tell("void")
	if err := l.p.d.Edit(l.t.Context(), run, func(*Talk) {}, dispatcher.EditOptions{Void: []string{"loop"}}); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.p.d.Run(l.t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		l.t.Errorf("behind the edit: %v", err)
	}
	l.m.void(time.Now())
}

// right is a trigger that the wait takes now, if it takes any.
func (l *life) right(word string) (continuation.Trigger, bool) {
	now := time.Now()
	for _, i := range l.Perm(len(l.m.parts)) {
		a := l.m.alternatives()[i]
		if a.kind == continuation.KindTimer || !a.until.IsZero() && !now.Before(a.until) {
			continue
		}
		n := len(l.sent) + 1
		raw, _ := json.Marshal(fmt.Sprintf("%s %d", word, n))
		tr := continuation.Trigger{ID: fmt.Sprintf("t%d", n), Run: run, Kind: a.kind, Key: a.key, Actor: continuation.Actor{ID: "x", Authority: a.authority}, Payload: raw}
		if a.authority == continuation.Anybody {
			tr.Actor.Authority = dag.Agent
		}
		if a.kind == continuation.KindApproval {
			tr.Decision = continuation.Approved
		}
		l.sent = append(l.sent, tr)
		return tr, l.m.pends() && !l.m.overdue(now) && l.m.used() < l.m.max
	}
	return continuation.Trigger{}, false
}

// together has several triggers pulled at once, in two processes, beside sweeps and recoveries, and
// perhaps a stop: one trigger counts, once, and a stop is final.
func (l *life) together() {
	first, ok := l.right(l.one("fine", "slow"))
	if !ok {
		return
	}
	other := begin(l.t, l.g, l.store, continuation.Options{})
	all := []continuation.Trigger{first, first}
	for range l.IntN(3) {
		tr, _ := l.right("fine")
		all = append(all, tr)
	}
	late := time.Duration(1+l.IntN(20)) * time.Second
	stop := strings.Contains(string(first.Payload), "slow") && len(all) == 2 && l.IntN(2) == 0
	l.tell("at once %d triggers of %+v; stopped: %t", len(all), first, stop)
	outs, errs := make([]continuation.Outcome, len(all)), make([]error, len(all))
	var work sync.WaitGroup
	for i, tr := range all {
		work.Go(func() { outs[i], errs[i] = []*process{l.p, other}[i%2].rt.Trigger(l.t.Context(), tr) })
	}
	if stop {
		work.Go(func() {
			lasts(late)
			if end, err := other.rt.Stop(l.t.Context(), run, continuation.Stopping{Reason: continuation.CancelledByUser}); err != nil || end.Reason != continuation.CancelledByUser {
				l.t.Errorf("stopped: %+v, %v", end, err)
			}
		})
	}
	if !l.m.safe() {
		work.Go(func() { _, _ = other.rt.Sweep(l.t.Context()) })
	}
	work.Go(func() { _, _ = l.p.rt.Recover(l.t.Context()) })
	work.Wait()
	won := ""
	for i, err := range errs {
		switch as := refusedAs(err); {
		case as == "" && (won == "" || won == all[i].ID):
			if won = all[i].ID; won == first.ID && outs[0].Receipt != outs[1].Receipt {
				l.t.Errorf("one trigger has two receipts: %+v and %+v", outs[0], outs[1])
			}
			l.told[won] = outs[i].Receipt
		case as != "taken" && as != "ended":
			l.t.Errorf("trigger %d beside %q: %+v, %v", i, won, outs[i], err)
		}
	}
	k := slices.IndexFunc(all, func(tr continuation.Trigger) bool { return tr.ID == won })
	if k < 0 {
		l.t.Errorf("no trigger counts: %v", errs)
		return
	}
	before := l.bodies[payload(&all[k])]
	l.m.took[won], l.m.has = all[k], won
	if before != 1 {
		l.t.Errorf("the node began %d times", before)
	}
	if stop {
		l.m.stop(continuation.CancelledByUser)
		return
	}
	l.m.goes(time.Now())
}

// compare compares what the log says with the model.
func (l *life) compare() {
	v, m := l.p.only(run), l.m
	switch {
	case v.Status != m.status || v.Reason != m.reason:
		l.t.Errorf("it is %s (%s: %s), want %s (%s)", v.Status, v.Reason, v.Why, m.status, m.reason)
	case v.Level != m.level || !v.Until.Equal(m.until) || v.Failures != m.failures || v.Lapses != m.lapses:
		l.t.Errorf("it is %+v, want level %d until %v, %d failures, %d lapses", v, m.level, m.until, m.failures, m.lapses)
	case (v.Trigger != nil) != (m.has != "" || m.woke):
		l.t.Errorf("its trigger is %+v, want %q", v.Trigger, m.has)
	case m.has != "" && v.Trigger.Trigger != m.has && m.has != "safe":
		l.t.Errorf("its trigger is %+v, want %q", v.Trigger, m.has)
	}
	if said := l.p.said(run); !slices.Equal(said, m.said) {
		l.t.Errorf("said %q, want %q", said, m.said)
	}
	o, err := l.p.d.Open(l.t.Context(), run)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, i := range o.Interrupts {
		if !slices.Contains(l.asks, i.ID) {
			l.asks = append(l.asks, i.ID)
		}
	}
	want := checkpoint.StatusCancelled
	switch {
	case m.end == continuation.Completed:
		want = checkpoint.StatusCompleted
	case m.end == continuation.RunFailed, m.failed && m.end == "":
		want = checkpoint.StatusFailed
	case m.end != "":
	case o.Status == checkpoint.StatusRunning: // whoever was at work has died
		want = o.Status
	default:
		want = checkpoint.StatusInterrupted
	}
	if o.Status != want {
		l.t.Errorf("the run is %s, want %s", o.Status, want)
	}
}
