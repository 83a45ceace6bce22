package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A victim does one call.
type victim struct {
	call
	out   *lines
	steps sync.Map // superstep of each visit, by path
	store *badgerstore.Store
	d     *dispatcher.Dispatcher[Work]
}

// commands are what a victim can be asked to do, by name. Each says itself that it is done.
var commands = map[string]func(*victim, context.Context) error{
	"start": (*victim).start, "resume": (*victim).resume, "cancel": (*victim).cancel,
	"answer": (*victim).answer, "verify": (*victim).verify, "dump": (*victim).dump,
}

func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// do opens the store, and does what the command says.
func (v *victim) do(ctx context.Context) error {
	if err := v.open(ctx); err != nil {
		return err
	}
	if v.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.within)
		defer cancel()
	}
	return commands[v.command](v, ctx)
}

func (v *victim) open(ctx context.Context) (err error) {
	open := badgerstore.Open
	if v.unsynced {
		open = badgerstore.OpenUnsynced
	}
	v.store, err = open(ctx, v.dir, badgerstore.Options{MemTableSize: v.memtable, CloseWithin: v.closing})
	if err != nil {
		return err
	}
	graph, err := v.build()
	if err != nil {
		return err
	}
	v.d, err = dispatcher.New(graph, v.store, dispatcher.Options{Lag: v.lag, Grace: v.grace, Observe: v.observe})
	return err
}

// close closes the store, if it is open.
func (v *victim) close() error {
	if v.store == nil {
		return nil
	}
	return v.store.Close()
}

// observe says which checkpoints of the run's own frame are durable. Their digests are of what the
// store has, not of what is in memory.
func (v *victim) observe(e dispatcher.Event) {
	switch {
	case e.Kind == dispatcher.VisitStarted:
		v.steps.Store(e.Path, e.Step)
	case e.Kind == dispatcher.SuperstepEnded && e.Path == "":
		stored, err := v.d.At(context.Background(), v.run, fmt.Sprintf("%s@%d", v.run, e.Seq))
		if err != nil {
			v.out.say("ERR", kindOf(err))
			return
		}
		v.out.say("ACK", e.Step, digestOf(stored.State))
	}
}

// began says that the body to which ctx belongs has begun, and returns the path of its visit.
func (v *victim) began(ctx context.Context) string {
	key := dag.Key(ctx)
	path := strings.TrimPrefix(key, v.run+"/")
	step, _ := v.steps.Load(path)
	v.out.say("NODE", path, step, key, dag.Attempt(ctx))
	return path
}

func (v *victim) start(ctx context.Context) error {
	res, err := v.d.Start(ctx, v.run, func(w *Work) { w.Seed.Set(v.seed) })
	return v.done(res, err)
}

func (v *victim) resume(ctx context.Context) error {
	res, err := v.d.Resume(ctx, v.run)
	if errors.Is(err, dispatcher.ErrCompleted) {
		res, err = v.d.State(ctx, v.run)
	}
	return v.done(res, err)
}

func (v *victim) done(res *dispatcher.Result[Work], err error) error {
	if err == nil {
		v.out.say("DONE", digestOf(res.State))
	}
	return err
}

var errByHand = errors.New("cancelled by hand")

func (v *victim) cancel(ctx context.Context) error { return v.d.Cancel(ctx, v.run, errByHand) }

func (v *victim) answer(ctx context.Context) error { return v.d.Answer(ctx, v.run, "", true) }

// verify compares all that the store says of the run with what it has to say.
func (v *victim) verify(ctx context.Context) error {
	r, err := v.read(ctx)
	if err != nil {
		return err
	}
	if err := r.check(reference(v.graph, v.seed)); err != nil {
		return err
	}
	v.out.say("OK", r.Superstep, r.Digest)
	return nil
}

func (v *victim) dump(ctx context.Context) error {
	r, err := v.read(ctx)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		v.out.say(string(text))
	}
	return err
}

// tellWhere says what the store says of the run, after an error. If it says nothing in ten seconds,
// as beside a disk that does not answer, or has no such run, neither does tellWhere.
func (v *victim) tellWhere(ctx context.Context) {
	if v.d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if res, err := v.d.State(ctx, v.run); err == nil {
		v.out.say("AT", res.Superstep, digestOf(res.State))
	}
}

// Lines are what a victim says.
type lines struct {
	mu   sync.Mutex
	w    io.Writer
	said int
	hold int // how many are said before whoever says one waits for the end of standard input
}

// say writes one line at once: it is out when say returns, whatever happens to the process then. A
// reader that has gone away is not told.
func (l *lines) say(words ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.w, words...)
	if l.said++; l.said == l.hold {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}
