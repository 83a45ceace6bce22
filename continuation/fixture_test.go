package continuation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

const run = "talk-1"

// Talk is the state of the graphs here.
type Talk struct {
	Said state.List[string]
}

// lasts lets that much of a bubble's time pass.
func lasts(d time.Duration) { <-time.After(d) }

// A behind is what stands behind a wait in its node.
type behind func(ctx context.Context, s *Talk, r continuation.Reply[string]) error

// says notes the payload.
func says(_ context.Context, s *Talk, r continuation.Reply[string]) error {
	s.Said.Append(r.Payload)
	return nil
}

// waiting is a graph of one node that waits, and what stands behind it.
func waiting(t testing.TB, w continuation.Wait, p dag.Policy, then behind) *dag.Graph[Talk] {
	t.Helper()
	b := dag.New[Talk]("talk")
	dag.Step(b, "ask", func(ctx context.Context, s *Talk) error {
		r, err := continuation.Await[string](ctx, "answer", w)
		if err != nil {
			return err
		}
		return then(ctx, s, r)
	}).With(p)
	return frozen(t, b)
}

func frozen(t testing.TB, b *dag.Builder[Talk]) *dag.Graph[Talk] {
	t.Helper()
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A process is one that has the store: a dispatcher and a runtime.
type process struct {
	t     testing.TB
	d     *dispatcher.Dispatcher[Talk]
	rt    *continuation.Runtime
	store checkpoint.Store
}

func begin(t testing.TB, g *dag.Graph[Talk], store checkpoint.Store, o continuation.Options) *process {
	t.Helper()
	return under(t, dispatcher.Options{Paranoid: true, Now: o.Now}, g, store, o)
}

// under is begin with options of the dispatcher.
func under(t testing.TB, of dispatcher.Options, g *dag.Graph[Talk], store checkpoint.Store, o continuation.Options) *process {
	t.Helper()
	d, err := dispatcher.New(g, store, of)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := continuation.New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return &process{t, d, rt, store}
}

// talk is a process whose run waits.
func talk(t testing.TB, g *dag.Graph[Talk], options ...dispatcher.RunOption) *process {
	t.Helper()
	p := begin(t, g, &memory.Store{}, continuation.Options{})
	p.waits(run, options...)
	return p
}

// waits begins a run, which comes to wait.
func (p *process) waits(run string, options ...dispatcher.RunOption) {
	p.t.Helper()
	if _, err := p.d.Start(context.Background(), run, nil, options...); !errors.Is(err, dispatcher.ErrInterrupted) {
		p.t.Fatalf("run %s does not wait: %v", run, err)
	}
}

// only is the only wait of a run.
func (p *process) only(run string) continuation.View {
	p.t.Helper()
	all, err := p.rt.List(context.Background(), continuation.Filter{Run: run})
	if err != nil || len(all) != 1 {
		p.t.Fatalf("run %s has the waits %+v, %v; want one", run, all, err)
	}
	return all[0]
}

// stands checks the status of the only wait of a run, and the reason.
func (p *process) stands(run string, status continuation.Status, reason continuation.Reason) continuation.View {
	p.t.Helper()
	v := p.only(run)
	if v.Status != status || v.Reason != reason {
		p.t.Fatalf("the wait of %s is %s (%s: %s), want %s (%s)", run, v.Status, v.Reason, v.Why, status, reason)
	}
	return v
}

// at is the wait of a visit, of a run that waits in several.
func (p *process) at(path string) continuation.View {
	p.t.Helper()
	all, err := p.rt.List(context.Background(), continuation.Filter{})
	k := slices.IndexFunc(all, func(v continuation.View) bool { return v.Path == path })
	if err != nil || k < 0 {
		p.t.Fatalf("the waits are %+v, %v; want one of %s", all, err, path)
	}
	return all[k]
}

// said is what the state of a run holds.
func (p *process) said(run string) []string {
	p.t.Helper()
	res, err := p.d.State(context.Background(), run)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.State.Said.Slice()
}

// image is all that the store has of a run: its log and its posts.
func (p *process) image(run string) string {
	p.t.Helper()
	var b bytes.Buffer
	if err := checkpoint.Export(context.Background(), p.store, run, &b); err != nil {
		p.t.Fatal(err)
	}
	posts, err := p.store.Posts(context.Background(), run)
	if err != nil {
		p.t.Fatal(err)
	}
	raw, _ := json.Marshal(posts)
	return b.String() + string(raw)
}

// unchanged checks that what is tried changes nothing of a run.
func (p *process) unchanged(run string, try func()) {
	p.t.Helper()
	before := p.image(run)
	try()
	if after := p.image(run); after != before {
		p.t.Errorf("run %s has changed:\n%s\nwas\n%s", run, after, before)
	}
}

// kinds are the kinds of the entries of a run.
func (p *process) kinds(run string) (all []checkpoint.Kind) {
	p.t.Helper()
	for e, err := range p.store.Read(context.Background(), run, 0, 0) {
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, e.Kind)
	}
	return all
}

var (
	ann   = continuation.Actor{ID: "ann", Authority: dag.Human}
	robot = continuation.Actor{ID: "robot", Authority: dag.Agent}
)

// reply is a trigger of ann's.
func reply(id, text string) continuation.Trigger {
	raw, _ := json.Marshal(text)
	return continuation.Trigger{ID: id, Run: run, Kind: continuation.KindReply, Actor: ann, Payload: raw}
}

// decide is a decision of ann's.
func decide(id string, d continuation.Decision) continuation.Trigger {
	return continuation.Trigger{ID: id, Run: run, Kind: continuation.KindApproval, Actor: ann, Decision: d, Reason: "because"}
}

var errWeather = errors.New("bad weather")
