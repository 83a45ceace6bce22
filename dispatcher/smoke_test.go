package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

type S struct {
	Log state.List[string]
	N   state.Sum[int]
	Q   state.Value[string]
}

func say(word string) func(context.Context, *S) error {
	return func(ctx context.Context, s *S) error { s.Log.Append(word); s.N.Add(1); return nil }
}

func TestSmoke(t *testing.T) {
	body := dag.New[S]("body")
	c := dag.Step(body, "compose", say("compose"))
	dag.Step(body, "validate", say("validate"), c)
	bg, err := body.Build()
	if err != nil {
		t.Fatal(err)
	}
	b := dag.New[S]("smoke")
	a := dag.Step(b, "a", say("a"))
	x := dag.Step(b, "x", say("x"), a)
	y := dag.Step(b, "y", say("y"), a)
	l := dag.Loop(b, "loop", bg, func(s *S) bool { return s.N.Get() >= 7 }, 3, x, y)
	e := dag.Embed(b, "emb", bg, func(f *S, to *S) { to.Q.Set("in") }, func(f *S, to *S) { to.Q.Set(fmt.Sprint(f.Log.Slice())) }, l)
	dag.Step(b, "last", func(ctx context.Context, s *S) error {
		ok, err := dag.Ask[bool](ctx, "sure", "sure?")
		if err != nil {
			return err
		}
		s.Log.Append(fmt.Sprint(ok))
		return nil
	}, e)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var store memory.Store
	d, err := dispatcher.New(g, &store, dispatcher.Options{Paranoid: true, InterruptBefore: []string{"loop/2/validate"}, InterruptAfter: []string{"x"},
		Observe: func(e dispatcher.Event) { t.Log(e) }})
	if err != nil {
		t.Fatal(err)
	}
	res, err := d.Run(t.Context(), "r1", func(s *S) { s.Q.Set("hi") })
	t.Log(err, res.Cursor, res.State.Log.Slice())
	if !errors.Is(err, dispatcher.ErrInterrupted) {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), "r1", nil)
	t.Log(err, res.Cursor)
	res, err = d.Resume(t.Context(), "r1")
	t.Log(err, res.Cursor, res.Interrupts)
	res, err = d.Resume(t.Context(), "r1")
	t.Log(err, res.Cursor, res.Interrupts)
	t.Log(d.Answer(t.Context(), "r1", res.Interrupts[0].ID, "x"))
	if err := d.Answer(t.Context(), "r1", res.Interrupts[0].ID, true); err != nil {
		t.Fatal(err)
	}
	res, err = d.Run(t.Context(), "r1", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(res.State.Log.Slice(), res.State.Q.Get())
	for cp, err := range d.History(t.Context(), "r1") {
		t.Log(cp, cp.Address(), err)
	}
	at, err := d.At(t.Context(), "r1", "2")
	t.Log(at.State.Log.Slice(), err)
}
