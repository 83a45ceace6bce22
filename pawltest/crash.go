package pawltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// runID is the id of every run: idempotency keys are the same in all of them.
const runID = "pawltest"

// Crash tries whether a graph survives crashes. It runs the graph undisturbed, twice, and then
// again and again. Each time the process crashes at one append to the log, just before it becomes
// durable or just after, and a fresh process brings the run to its end. Whatever was not durable is
// lost, and bodies that had run without being recorded run again.
//
// Every run has to come to the same status, visits, outcomes and state. Crash tells t what differs,
// by visit and cell, and at which entry of the log the crash was. A graph may fail, but has to fail
// alike each time; that is no finding, and a T with a method Logf is told how the run fails. A test
// of a graph that should be completed gives the input that it needs.
//
// Besides:
//
//   - Nodes that keep the draft that they were given are told without any option: what is written
//     to it later is lost.
//   - With [World] it tells which nodes did something twice outside an effect.
//   - With [Rebuild] what nodes keep in variables is lost in a crash.
//   - An effect that was under way when the process crashed, and that is not replayable, is in
//     doubt. What comes of such a run is compared only if [Doubts] says what happened.
//
// All bodies run one after the other. Waits between attempts, and for questions to expire, are
// real: in a bubble of testing/synctest they take no time.
func Crash[S any](t T, g *dag.Graph[S], input func(*S), options ...Option) {
	need(t, "Crash")
	t.Helper()
	c := &crasher[S]{t: t, ctx: contextOf(t), graph: g, input: input, told: map[string]bool{}, asked: map[string]bool{}}
	err := c.take(options)
	if err == nil {
		err = c.try()
	}
	if err != nil {
		t.Errorf("pawltest: %v", err)
	}
}

// A crasher is one call of Crash.
type crasher[S any] struct {
	aids
	t     T
	ctx   context.Context
	graph *dag.Graph[S]
	input func(*S)
	told  map[string]bool // findings, so that each is told once
	asked map[string]bool // keys of Answers that were asked for
}

func (c *crasher[S]) try() error {
	c.t.Helper()
	switch {
	case c.graph == nil && c.rebuild == nil:
		return errors.New("there is no graph")
	case slices.Contains(c.given, "Migrations"):
		return errors.New("Migrations are for Replay: Crash begins runs of its own")
	case slices.Contains(c.given, "SinceChange"):
		return errors.New("SinceChange is for Replay: Crash begins runs of its own")
	}
	calm, err := c.trial(0, false)
	if err != nil {
		return err
	}
	if calm.stopped {
		return fmt.Errorf("undisturbed the run does not come to its end: %w", calm.err)
	}
	c.failed(calm)
	c.doubled(calm)
	c.late(calm)
	again, err := c.trial(0, false)
	if err != nil {
		return err
	}
	same := true
	for _, d := range calm.differences(again.account) {
		same = false
		c.tell("two runs without a crash", "two runs without a crash differ: %s: it follows from something that is neither state nor settings, such as a variable, the clock, chance or the order of a map", d)
	}
	for _, written := range []bool{false, true} {
		for k := 1; ; k++ {
			run, err := c.trial(k, written)
			if err != nil {
				return err
			}
			if run.store.crash.seq == 0 {
				break // it has fewer appends
			}
			c.doubled(run)
			if same && !run.store.crash.doubt {
				c.compare(calm.account, run)
			}
		}
	}
	c.unasked()
	return nil
}

// failed logs that there is little to try: the run may be meant to fail, or its input be missing.
func (c *crasher[S]) failed(calm *trial) {
	c.t.Helper()
	if l, ok := c.t.(interface{ Logf(string, ...any) }); ok && calm.err != nil {
		l.Logf("pawltest: undisturbed the run fails, and what is compared is how: %v", calm.err)
	}
}

// unasked tells which answers nobody wanted: a key that is not what the graph calls it.
func (c *crasher[S]) unasked() {
	c.t.Helper()
	for _, key := range slices.Sorted(maps.Keys(c.answers)) {
		if !c.asked[key] {
			c.tell("answer "+key, "Answers have %q, and no visit asks that", key)
		}
	}
}

// compare tells what a crash has changed.
func (c *crasher[S]) compare(calm *account, run *trial) {
	c.t.Helper()
	for _, d := range calm.differences(run.account) {
		what, _, _ := strings.Cut(d, " was ")
		subject := "the run differs"
		if strings.HasPrefix(d, "cell ") {
			subject = "state differs"
		}
		c.tell(what, "%s after the crash at %s: %s", subject, run.store.crash, d)
	}
}

// doubled tells which nodes did something twice.
func (c *crasher[S]) doubled(run *trial) {
	c.t.Helper()
	for _, d := range run.watch.doubled() {
		lost := fmt.Sprintf("in an execution that was lost by the crash at %s", run.store.crash)
		if d.first.asked {
			lost = "before its question was answered"
		}
		c.tell("node "+d.first.node, "node %s ran twice outside an effect: visit %s changed the world %s (%s), and again when it ran again (%s)",
			d.first.node, d.first.path, lost, strings.Join(d.first.changed, ", "), strings.Join(d.again.changed, ", "))
	}
}

// late tells which nodes keep their drafts.
func (c *crasher[S]) late(run *trial) {
	c.t.Helper()
	for _, d := range run.watch.late {
		c.tell("draft "+d.node, "node %s keeps its draft: something was written to it after visit %s had returned, and is lost", d.node, d.path)
	}
}

// tell tells a finding, unless the same thing was told.
func (c *crasher[S]) tell(what, format string, args ...any) {
	c.t.Helper()
	if c.told[what] {
		return
	}
	c.told[what] = true
	c.t.Errorf("pawltest: "+format, args...)
}

// String says where a process crashed: entry 7 (done charge).
func (c crash) String() string {
	text := fmt.Sprintf("entry %d (%s", c.seq, strings.TrimSpace(c.entry.Kind.String()+" "+c.entry.Path))
	if c.entry.ID != "" {
		text += "#" + c.entry.ID
	}
	if c.written {
		text += ", just durable"
	}
	return text + ")"
}

// A trial is one run, with a crash or without one.
type trial struct {
	*account
	store *scene
	watch *watch
}

// trial runs the graph to its end. Its first process crashes at append k; 0 is no crash.
func (c *crasher[S]) trial(k int, written bool) (*trial, error) {
	if c.reset != nil {
		c.reset()
	}
	w := &watch{see: c.world}
	run := &trial{watch: w, store: newScene(w, k, written)}
	for range 2 {
		g := c.graph
		if c.rebuild != nil {
			build, ok := c.rebuild.(func() *dag.Graph[S])
			if !ok {
				return nil, fmt.Errorf("Rebuild is for graphs of another state type")
			}
			g = build()
		}
		d, err := dispatcher.New(g, run.store, dispatcher.Options{Parallel: 1, Paranoid: true, Observe: w.observe, Hooks: w.hooks(), Gates: c.gates})
		if err != nil {
			return nil, err
		}
		if run.store.crash.doubt && c.settle != nil {
			if err := c.resolve(d); err != nil {
				return nil, err
			}
			run.store.crash.doubt = false
		}
		res, err := c.drive(d)
		if run.store.Died() {
			w.dies()
			if err := run.store.Revive(c.ctx); err != nil {
				return nil, err
			}
			continue
		}
		if w.broken != nil {
			return nil, w.broken
		}
		if run.account, err = c.ended(g, run.store, res, err); err != nil {
			return nil, err
		}
		return run, nil
	}
	return nil, errors.New("the second process does not come to an end")
}

// ended is what the last call says.
func (c *crasher[S]) ended(g *dag.Graph[S], store checkpoint.Store, res *dispatcher.Result[S], err error) (*account, error) {
	var rest *dispatcher.Rest
	if err != nil && (!errors.As(err, &rest) || rest.Status != checkpoint.StatusFailed) {
		return &account{stopped: true, err: err}, nil
	}
	a, terr := tell(c.ctx, store, g.Plan().Schema, res.State)
	if terr != nil {
		return nil, terr
	}
	a.status, a.err = res.Status, err
	return a, nil
}

// answer is what a person says to an interrupt.
func (c *crasher[S]) answer(i dispatcher.Interrupt) (any, error) {
	if i.By == "" {
		if answer, ok := c.answers[i.Key]; ok {
			c.asked[i.Key] = true
			return answer, nil
		}
		return nil, fmt.Errorf("visit %s asks %q, and Answers have nothing for it", i.Path, i.Key)
	}
	var a dispatcher.Action
	if err := json.Unmarshal(i.Question, &a); err != nil || c.decide == nil {
		return nil, fmt.Errorf("%s, and Approvals have nobody who decides", i)
	}
	return c.decide(a), nil
}

// drive runs the graph, and answers what it asks. A run that has failed is at its end: what failed
// is not tried again. One that waits is answered before it goes on: the process may have died
// between two answers, and without the second the run would come to something else.
func (c *crasher[S]) drive(d *dispatcher.Dispatcher[S]) (*dispatcher.Result[S], error) {
	given := map[string]int{}
	if res, err := d.State(c.ctx, runID); err == nil {
		if res.Status == checkpoint.StatusFailed {
			return res, nil
		}
		if err := c.answerAll(d, res, given); err != nil {
			return res, err
		}
	}
	for {
		res, err := d.Run(c.ctx, runID, c.input, c.run...)
		if !errors.Is(err, dispatcher.ErrInterrupted) {
			return res, err
		}
		if missing := c.answerAll(d, res, given); missing != nil {
			return res, fmt.Errorf("%w: %w", missing, err)
		}
	}
}

// mostAsked is how often a visit may ask one question in a trial: more often only what begins anew
// asks it, as behind a conflict.
const mostAsked = 100

// answerAll ends what a run waits for. given counts the answers of this trial.
func (c *crasher[S]) answerAll(d *dispatcher.Dispatcher[S], res *dispatcher.Result[S], given map[string]int) error {
	if res.Status != checkpoint.StatusInterrupted {
		return nil
	}
	for _, i := range res.Interrupts {
		if i.Kind == dispatcher.KindDoubt && c.settle != nil {
			return c.resolve(d) // all of them
		}
		asked := i.Path + " " + i.Key
		if given[asked]++; given[asked] > mostAsked {
			return fmt.Errorf("visit %s asks %q again and again, though it is answered: in other words each time? Say with dag.About what it is about", i.Path, i.Key)
		}
		answer, err := c.answer(i)
		if err == nil {
			err = c.help(d, i, answer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resolve says of each effect in doubt what the other side tells.
func (c *crasher[S]) resolve(d *dispatcher.Dispatcher[S]) error {
	opened, err := d.Open(c.ctx, runID)
	if err != nil {
		return err
	}
	for _, e := range opened.InDoubt() {
		if err := d.Resolve(c.ctx, runID, e.Path, e.Key, c.settle(e)); err != nil {
			return err
		}
	}
	return nil
}

// help ends a question as Answers say.
func (c *crasher[S]) help(d *dispatcher.Dispatcher[S], i dispatcher.Interrupt, answer any) error {
	end, ends := answer.(error)
	switch {
	case !ends:
		return d.Answer(c.ctx, runID, i.ID, answer)
	case errors.Is(end, dag.ErrSkipped):
		return d.Skip(c.ctx, runID, i.ID)
	case !errors.Is(end, dag.ErrExpired):
		return fmt.Errorf("visit %s asks %q, which can't end with %w, but with dag.ErrSkipped or dag.ErrExpired", i.Path, i.Key, end)
	case i.Until.IsZero():
		return fmt.Errorf("visit %s asks %q, which is to expire, and never does", i.Path, i.Key)
	}
	timer := time.NewTimer(time.Until(i.Until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}
