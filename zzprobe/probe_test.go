package zzprobe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dag/dagtest"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/metrics"
	"github.com/pawlgo/pawl/pawltest"
	"github.com/pawlgo/pawl/state"
	"github.com/pawlgo/pawl/supervisor"
)

type S struct{ V state.Value[string] }
type O string

func try(name string, f func() error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Printf("%-40s PANIC %v\n", name, p)
		}
	}()
	err := f()
	fmt.Printf("%-40s %T %v\n", name, err, err)
}

func ok(context.Context, *S) error { return nil }

func sub() *dag.Graph[S] { b := dag.New[S]("sub"); dag.Step(b, "x", ok); g, _ := b.Build(); return g }

func graph() *dag.Graph[S] {
	b := dag.New[S]("g")
	dag.Step(b, "a", ok)
	g, err := b.Build()
	if err != nil { panic(err) }
	return g
}

func TestProbe(t *testing.T) {
	ctx := context.Background()
	build := func(f func(b *dag.Builder[S])) func() error {
		return func() error { b := dag.New[S]("g"); f(b); _, err := b.Build(); return err }
	}
	try("Step nil", build(func(b *dag.Builder[S]) { dag.Step(b, "a", nil) }))
	try("Route nil", build(func(b *dag.Builder[S]) { r := dag.Route[S, O](b, "a", nil, []O{"x"}); dag.End(b, r.On("x")) }))
	try("Choose nil", build(func(b *dag.Builder[S]) { r := dag.Choose[S, O](b, "a", nil, []O{"x"}); dag.End(b, r.On("x")) }))
	try("Route no outcomes", build(func(b *dag.Builder[S]) { dag.Route(b, "a", func(context.Context, *S) (O, error) { return "", nil }, nil) }))
	try("Route empty outcome", build(func(b *dag.Builder[S]) { r := dag.Route(b, "a", func(context.Context, *S) (O, error) { return "", nil }, []O{""}); dag.End(b, r.On("")) }))
	try("Each nil items", build(func(b *dag.Builder[S]) { dag.Each(b, "a", nil, func(context.Context, *S, int) error { return nil }) }))
	try("Each nil f", build(func(b *dag.Builder[S]) { dag.Each(b, "a", func(*S) []int { return nil }, nil) }))
	try("EachGraph nil", build(func(b *dag.Builder[S]) { dag.EachGraph[S, int, S](b, "a", nil, nil, nil, nil) }))
	try("Loop nil", build(func(b *dag.Builder[S]) { dag.Loop(b, "a", nil, nil, 0) }))
	try("Loop nil until", build(func(b *dag.Builder[S]) { dag.Loop(b, "a", sub(), nil, 2) }))
	try("Embed nil", build(func(b *dag.Builder[S]) { dag.Embed[S, S](b, "a", nil, nil, nil) }))
	try("Embed nil in out", build(func(b *dag.Builder[S]) { dag.Embed[S, S](b, "a", sub(), nil, nil) }))
	try("zero edge", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok, dag.Node[S]{}) }))
	try("nil edge", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok, nil) }))
	try("All()", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok, dag.All[S]()) }))
	try("Any(nil)", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok, dag.Any[S](nil)) }))
	try("End()", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok); dag.End(b) }))
	try("End(nil)", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok); dag.End(b, nil) }))
	try("empty name", build(func(b *dag.Builder[S]) { dag.Step(b, "", ok) }))
	try("zero With", build(func(b *dag.Builder[S]) { (dag.Node[S]{}).With(dag.Policy{}) }))
	try("zero route With", build(func(b *dag.Builder[S]) { (dag.RouteNode[S, O]{}).With(dag.Policy{}) }))
	try("zero On", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok, (dag.RouteNode[S, O]{}).On("x")) }))
	try("zero Failed", build(func(b *dag.Builder[S]) { dag.Step(b, "a", ok, (dag.RouteNode[S, O]{}).Failed()) }))
	try("nil Builder Step", func() error { dag.Step[S](nil, "a", ok); return nil })
	try("nil Builder Build", func() error { var b *dag.Builder[S]; _, err := b.Build(); return err })
	try("zero Builder Build", func() error { var b dag.Builder[S]; _, err := b.Build(); return err })
	try("zero Builder Step", func() error { var b dag.Builder[S]; dag.Step(&b, "a", ok); _, err := b.Build(); return err })
	try("New empty", func() error { b := dag.New[S](""); dag.Step(b, "a", ok); _, err := b.Build(); return err })
	try("nil graph Name", func() error { var g *dag.Graph[S]; return errors.New(g.Name()+g.Digest()) })
	try("nil graph Mermaid", func() error { var g *dag.Graph[S]; return errors.New(g.Mermaid()) })
	try("nil graph Dot", func() error { var g *dag.Graph[S]; return errors.New(g.DOT()) })
	try("nil graph JSON", func() error { var g *dag.Graph[S]; _, err := g.MarshalJSON(); return err })
	try("ParsePlan nil", func() error { _, err := dag.ParsePlan(nil); return err })
	try("Effect nil fn", func() error { _, err := dag.Effect[int, int](ctx, "k", 1, nil); return err })
	try("Effect empty key", func() error { _, err := dag.Effect(ctx, "", 1, func(context.Context, int) (int, error) { return 1, nil }); return err })
	try("Effect nil ctx", func() error { _, err := dag.Effect(nil, "k", 1, func(context.Context, int) (int, error) { return 1, nil }); return err })
	try("Effect Operation empty", func() error { _, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 1, nil }, dag.Operation("")); return err })
	try("Effect Touches none", func() error { _, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 1, nil }, dag.Touches()); return err })
	try("Effect Touches empty", func() error { _, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 1, nil }, dag.Touches("")); return err })
	try("Effect nil option", func() error { _, err := dag.Effect(ctx, "k", 1, func(context.Context, int) (int, error) { return 1, nil }, nil); return err })
	try("Ask nil ctx", func() error { _, err := dag.Ask[int](nil, "k", 1); return err })
	try("Ask empty key", func() error { _, err := dag.Ask[int](ctx, "", 1); return err })
	try("Emit nil ctx", func() error { return dag.Emit(nil, "k", 1) })
	try("Emit empty", func() error { return dag.Emit(ctx, "", 1) })
	try("Key nil", func() error { return errors.New(dag.Key(nil)) })
	try("Attempt nil", func() error { return fmt.Errorf("%d", dag.Attempt(nil)) })
	try("Failures nil", func() error { return fmt.Errorf("%v", dag.Failures(nil)) })
	try("Settings nil", func() error { _, err := dag.Settings[int](nil); return err })
	try("Reply nil", func() error { _, ok := dag.Reply(nil, ""); return fmt.Errorf("%v", ok) })
	try("Depends nil", func() error { return dag.Depends(nil, dag.Dependency{}) })
	try("Depends empty", func() error { return dag.Depends(ctx, dag.Dependency{}) })
	try("dagtest nil visit", func() error { c := dagtest.Context(nil, nil); _ = c; return nil })
	try("dagtest zero visit ask", func() error { c := dagtest.Context(ctx, &dagtest.Visit{}); _, err := dag.Ask[int](c, "", 1); return err })

	// dispatcher
	var st memory.Store
	try("New nil graph", func() error { _, err := dispatcher.New[S](nil, &st, dispatcher.Options{}); return err })
	try("New zero graph", func() error { _, err := dispatcher.New(&dag.Graph[S]{}, &st, dispatcher.Options{}); return err })
	try("New nil *badger", func() error { var s *badgerstore.Store; _, err := dispatcher.New(graph(), s, dispatcher.Options{}); return err })
	try("New empty interrupt", func() error { _, err := dispatcher.New(graph(), &st, dispatcher.Options{InterruptBefore: []string{""}}); return err })
	try("New empty gate", func() error { _, err := dispatcher.New(graph(), &st, dispatcher.Options{Gates: dispatcher.Gates{Names: []string{""}}}); return err })
	try("New bad preset", func() error { _, err := dispatcher.New(graph(), &st, dispatcher.Options{Gates: dispatcher.Gates{Preset: "x"}}); return err })
	try("New empty interceptor", func() error { _, err := dispatcher.New(graph(), &st, dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{}}}}); return err })
	try("New empty migration", func() error { _, err := dispatcher.New(graph(), &st, dispatcher.Options{Migrations: []dispatcher.Migration{{}}}); return err })
	try("New nostore gates", func() error { _, err := dispatcher.New(graph(), nil, dispatcher.Options{Gates: dispatcher.Gates{Preset: dispatcher.GateWrites}}); return err })
	try("New nostore retention", func() error { _, err := dispatcher.New(graph(), nil, dispatcher.Options{Retention: dispatcher.Retention{Last: 1}}); return err })
	d, err := dispatcher.New(graph(), &st, dispatcher.Options{})
	if err != nil { t.Fatal(err) }
	var nd *dispatcher.Dispatcher[S]
	var zd dispatcher.Dispatcher[S]
	if _, err := d.Run(ctx, "r", nil); err != nil { t.Fatal(err) }
	try("zero d Run", func() error { _, err := zd.Run(ctx, "r", nil); return err })
	try("Run empty id", func() error { _, err := d.Run(ctx, "", nil); return err })
	for _, x := range []struct{ n string; d *dispatcher.Dispatcher[S]; c context.Context }{{"nil d", nd, ctx}, {"nil ctx", d, nil}, {"empty id", d, ctx}} {
		x := x
		id := "r"
		if x.n == "empty id" { id = "" }
		try(x.n+" Edit", func() error { return x.d.Edit(x.c, id, func(*S) {}, dispatcher.EditOptions{}) })
		try(x.n+" EditOf", func() error { return dispatcher.EditOf[S](x.c, x.d, id, func(*S) {}, dispatcher.EditOptions{}) })
		try(x.n+" Tag", func() error { return x.d.Tag(x.c, id, "", "n") })
		try(x.n+" Fork", func() error { _, err := x.d.Fork(x.c, id, "", dispatcher.ForkOptions[S]{}); return err })
		try(x.n+" Rewind", func() error { return x.d.Rewind(x.c, id, "", dispatcher.RewindOptions{}) })
		try(x.n+" Trim", func() error { return x.d.Trim(x.c, id, dispatcher.Retention{Last: 1}) })
		try(x.n+" Blame", func() error { _, err := x.d.Blame(x.c, id, ""); return err })
		try(x.n+" Diff", func() error { _, err := x.d.Diff(x.c, id, "", ""); return err })
		try(x.n+" Lineage", func() error { _, err := x.d.Lineage(x.c, id); return err })
		try(x.n+" HistoryOf", func() error { _, err := x.d.HistoryOf(x.c, id, dispatcher.HistoryFilter{}); return err })
		try(x.n+" Open", func() error { _, err := x.d.Open(x.c, id); return err })
		try(x.n+" Resolve", func() error { return x.d.Resolve(x.c, id, "a", "k", dispatcher.NotHappened("")) })
		try(x.n+" Enqueue", func() error { return x.d.Enqueue(x.c, id, func(*S) {}) })
		try(x.n+" StreamTurn", func() error { for _, err := range x.d.StreamTurn(x.c, id, nil, dispatcher.Listen{}) { return err }; return nil })
		try(x.n+" Store", func() error { return fmt.Errorf("%v", x.d.Store() != nil) })
		try(x.n+" Cancel", func() error { return x.d.Cancel(x.c, id, nil) })
		try(x.n+" Answer", func() error { return x.d.Answer(x.c, id, "x", nil) })
		try(x.n+" Skip", func() error { return x.d.Skip(x.c, id, "x") })
		try(x.n+" State", func() error { _, err := x.d.State(x.c, id); return err })
		try(x.n+" History", func() error { for _, err := range x.d.History(x.c, id) { return err }; return nil })
		try(x.n+" Events", func() error { for _, err := range x.d.Events(x.c, id, dispatcher.Listen{}) { return err }; return nil })
	}
	try("nil d Graph", func() error { return errors.New(nd.Graph()) })
	try("Edit nil", func() error { return d.Edit(ctx, "r", nil, dispatcher.EditOptions{}) })
	try("Enqueue nil", func() error { return d.Enqueue(ctx, "r", nil) })
	try("Turn nil", func() error { _, err := d.Turn(ctx, "r", nil); return err })
	try("Tag empty", func() error { return d.Tag(ctx, "r", "", "") })
	try("Message empty", func() error { return d.Enqueue(ctx, "r", func(*S) {}, dispatcher.Message("")) })
	try("Drain nil", func() error { _, err := d.Run(ctx, "r", nil, dispatcher.Drain(nil)); return err })
	try("Author empty", func() error { return d.Answer(ctx, "r", "x", nil, dispatcher.Author("")) })
	try("Instead nil", func() error {
		var st memory.Store
		d, _ := dispatcher.New(graph(), &st, dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{Before: func(context.Context, dispatcher.Call) dispatcher.Ruling { return dispatcher.Instead(nil) }}}}})
		_, err := d.Run(ctx, "r", nil); return err })
	try("Replace nil", func() error {
		var st memory.Store
		d, _ := dispatcher.New(graph(), &st, dispatcher.Options{Hooks: dispatcher.Hooks{Intercept: []dispatcher.Interceptor{{After: func(context.Context, dispatcher.Call, []string) dispatcher.Change { return dispatcher.Replace(nil) }}}}})
		_, err := d.Run(ctx, "r", nil); return err })
	try("Resolve zero", func() error { return d.Resolve(ctx, "r", "a", "k", dispatcher.Resolution{}) })
	try("Resolve empty visit", func() error { return d.Resolve(ctx, "r", "", "", dispatcher.NotHappened("")) })
	try("NewResultNil", func() error { var r *dispatcher.Result[S]; return fmt.Errorf("%v", r) })

	// metrics
	try("metrics nil", func() error { _, err := metrics.New(nil); return err })
	try("metrics typed nil", func() error { var r *prometheus.Registry; _, err := metrics.New(r); return err })
	try("nil metrics Observe", func() error { var m *metrics.Metrics; m.Observe(dispatcher.Event{}); return nil })
	try("zero metrics Observe", func() error { var m metrics.Metrics; m.Observe(dispatcher.Event{Kind: dispatcher.RunStarted}); return nil })
	try("nil metrics group", func() error { var m *metrics.Metrics; m.ObserveGroup(checkpoint.Group{}); return nil })
	try("nil metrics sup", func() error { var m *metrics.Metrics; m.ObserveSupervisor(supervisor.Event{}); return nil })

	// supervisor
	try("sup nil store", func() error { _, err := supervisor.New(nil, supervisor.Options{}); return err })
	try("sup nil runner", func() error { _, err := supervisor.New(&st, supervisor.Options{}, nil); return err })
	try("sup nil d", func() error { _, err := supervisor.New(&st, supervisor.Options{}, nd); return err })
	try("sup zero d", func() error { _, err := supervisor.New(&st, supervisor.Options{}, &zd); return err })
	s, err := supervisor.New(&st, supervisor.Options{}, d)
	if err != nil { t.Fatal(err) }
	var ns *supervisor.Supervisor
	try("sub nil ctx", func() error { _, err := supervisor.Submit(nil, s, d, "", "r", nil); return err })
	try("sub nil s", func() error { _, err := supervisor.Submit(ctx, nil, d, "", "r", nil); return err })
	try("sub zero s", func() error { _, err := supervisor.Submit(ctx, &supervisor.Supervisor{}, d, "", "r", nil); return err })
	try("sub nil d", func() error { _, err := supervisor.Submit(ctx, s, nd, "", "r", nil); return err })
	try("sub empty id", func() error { tk, err := supervisor.Submit(ctx, s, d, "", "", nil); if err != nil { return err }; _, err = tk.Wait(ctx); return fmt.Errorf("late: %w", err) })
	try("wait nil ctx", func() error { tk, err := supervisor.Submit(ctx, s, d, "", "r", nil); if err != nil { return err }; _, err = tk.Wait(nil); return err })
	var nt *supervisor.Task[S]
	try("nil task wait", func() error { _, err := nt.Wait(ctx); return err })
	try("nil task done", func() error { <-nt.Done(); return nil })
	try("nil task run", func() error { return errors.New(nt.Run()) })
	try("nil task withdraw", func() error { return fmt.Errorf("%v", nt.Withdraw()) })
	var zt supervisor.Task[S]
	try("zero task wait", func() error { _, err := zt.Wait(ctx); return err })
	try("zero task run", func() error { return errors.New(zt.Run()) })
	try("zero task withdraw", func() error { return fmt.Errorf("%v", zt.Withdraw()) })
	try("go nil", func() error { _, err := supervisor.Go[S](ctx, s, d, "", "r", nil); return err })
	try("recover nil ctx", func() error { _, err := s.Recover(nil); return err })
	try("recover nil s", func() error { _, err := ns.Recover(ctx); return err })
	try("drain nil ctx", func() error { _, err := s.Drain(nil); return err })
	try("drain nil s", func() error { _, err := ns.Drain(ctx); return err })
	try("ns continue", func() error { _, err := ns.Continue(ctx, "", "r"); return err })
	try("s continue nil ctx", func() error { _, err := s.Continue(nil, "", "r"); return err })
	try("s continue empty", func() error { _, err := s.Continue(ctx, "", ""); return err })

	// checkpoint & stores
	try("export nil store", func() error { return checkpoint.Export(ctx, nil, "r", os.Stdout) })
	try("verify nil", func() error { for f, err := range checkpoint.Verify(ctx, nil, "r") { return fmt.Errorf("%v %w", f, err) }; return nil })
	var bs *badgerstore.Store
	try("nil badger Close", func() error { return bs.Close() })
	try("nil badger Stat", func() error { _, err := bs.Stat(ctx, "r"); return err })
	try("zero badger Stat", func() error { _, err := (&badgerstore.Store{}).Stat(ctx, "r"); return err })
	try("zero badger Close", func() error { return (&badgerstore.Store{}).Close() })
	try("badger nil ctx", func() error { _, err := badgerstore.Open(nil, t.TempDir(), badgerstore.Options{}); return err })
	try("badger empty", func() error { _, err := badgerstore.Open(ctx, "", badgerstore.Options{}); return err })
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("hi"), 0o644)
	try("badger foreign files", func() error { _, err := badgerstore.Open(ctx, dir, badgerstore.Options{}); return err })
	ents, _ := os.ReadDir(dir); fmt.Println(len(ents), ents)
	file := filepath.Join(dir, "notes.txt")
	try("badger a file", func() error { _, err := badgerstore.Open(ctx, file, badgerstore.Options{}); return err })
	fdir := t.TempDir()
	db, err := badger.Open(badger.DefaultOptions(fdir).WithLogger(nil))
	if err != nil { t.Fatal(err) }
	db.Update(func(tx *badger.Txn) error { return tx.Set([]byte("a"), []byte("b")) })
	db.Close()
	try("badger foreign badger", func() error { _, err := badgerstore.Open(ctx, fdir, badgerstore.Options{}); return err })
	edir := t.TempDir()
	db, _ = badger.Open(badger.DefaultOptions(edir).WithLogger(nil))
	db.Close()
	try("badger empty foreign badger", func() error { s, err := badgerstore.Open(ctx, edir, badgerstore.Options{}); if err == nil { s.Close() }; return err })
	try("badger neg opts", func() error { _, err := badgerstore.Open(ctx, t.TempDir(), badgerstore.Options{}); return err })
	try("unwritable", func() error { _, err := badgerstore.Open(ctx, "/proc/x", badgerstore.Options{}); return err })
	gdir := t.TempDir()
	os.WriteFile(filepath.Join(gdir, "MANIFEST"), []byte("hi there this is not a manifest"), 0o644)
	try("badger junk manifest", func() error { _, err := badgerstore.Open(ctx, gdir, badgerstore.Options{}); return err })
	// memory
	var nm *memory.Store
	try("nil memory Stat", func() error { _, err := nm.Stat(ctx, "r"); return err })
	try("memory nil ctx Stat", func() error { _, err := st.Stat(nil, "r"); return err })

	var ft fake
	try("Crash nil graph", func() error { pawltest.Crash[S](&ft, nil, nil); return errors.New(ft.String()) })
	ft = fake{}
	try("Replay nil graph", func() error { pawltest.Replay[S](&ft, "", nil); return errors.New(ft.String()) })
	ft = fake{}
	try("Crash nil T", func() error { pawltest.Crash[S](nil, graph(), nil); return nil })
	try("World nil", func() error { pawltest.Crash(&ft, graph(), nil, pawltest.World(nil)); return errors.New(ft.String()) })
	ft = fake{}
	try("Doubts nil", func() error { pawltest.Crash(&ft, graph(), nil, pawltest.Doubts(nil)); return errors.New(ft.String()) })
	ft = fake{}
	try("Approvals nil", func() error { pawltest.Crash(&ft, graph(), nil, pawltest.Approvals(dispatcher.Gates{Preset: dispatcher.GateEverything}, nil)); return errors.New(ft.String()) })
	ft = fake{}
	try("Rebuild nil", func() error { pawltest.Crash(&ft, graph(), nil, pawltest.Rebuild[S](nil)); return errors.New(ft.String()) })
	ft = fake{}
	try("Reset nil", func() error { pawltest.Crash(&ft, graph(), nil, pawltest.Reset(nil)); return errors.New(ft.String()) })
}

type fake struct{ strings.Builder }

func (f *fake) Helper() {}
func (f *fake) Errorf(s string, a ...any) { fmt.Fprintf(&f.Builder, s+"\n", a...) }
