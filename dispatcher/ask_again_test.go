package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// Who does not know whether an answer was accepted gives it again: the same one by the same
// author is accepted, and is in the log once. Another one is refused.
func TestAskAnswerGivenAgain(t *testing.T) {
	for _, live := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w witness
			var inner memory.Store
			free := make(chan struct{})
			g := asking(t, &w, free)
			over := beginRun(t, process(t, g, unwatched{&inner}, dispatcher.Options{}))
			synctest.Wait()
			if !live {
				close(free)
				<-over
			}
			id := asked(t, process(t, g, &inner, dispatcher.Options{}))
			unknown := &tampered{Store: &inner, before: func(_ context.Context, c call) error {
				if c.method == "Acquire" { // else who answers need not post
					return &checkpoint.BusyError{Run: run, Owner: "somebody else"}
				}
				return nil
			}, after: func(c call, err error) error {
				if c.method == "Post" && err == nil {
					return fmt.Errorf("%w: the line is dead", checkpoint.ErrCommitUnknown)
				}
				return err
			}}
			by := process(t, g, unknown, dispatcher.Options{})
			if err := by.Answer(t.Context(), run, id, "this", dispatcher.Author("Ada")); !errors.Is(err, checkpoint.ErrCommitUnknown) {
				t.Errorf("the first answer returned %v", err)
			}
			d := process(t, g, &inner, dispatcher.Options{})
			refused(t, d.Answer(t.Context(), run, id, "that", dispatcher.Author("Ada")), dispatcher.ErrNotAwaited)
			refused(t, d.Answer(t.Context(), run, id, "this", dispatcher.Author("Eve")), dispatcher.ErrNotAwaited)
			refused(t, d.Skip(t.Context(), run, id, dispatcher.Author("Ada")), dispatcher.ErrNotAwaited)
			if err := d.Answer(t.Context(), run, id, "this", dispatcher.Author("Ada")); err != nil {
				t.Errorf("the same answer, given again, returned %v", err)
			}
			if live {
				close(free)
				<-over
			}
			res, err := d.Run(t.Context(), run, nil)
			completes(t, res, err)
			all := askAnswers(t, &inner, run)
			if len(all) != 1 || all[id].By != "Ada" || res.State.Word.Get() != "this" {
				t.Errorf("the log says %+v, and the node got %q", all, res.State.Word.Get())
			}
		})
	}
}

// A message that would end an interrupt a second time, or that can't be read, is drained, and
// changes nothing: whoever left it.
func TestAskMessagesThatDoNotCount(t *testing.T) {
	for _, live := range []bool{true, false} {
		var w witness
		var store memory.Store
		g := asking(t, &w, closedChan())
		d := process(t, g, &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "asks")
		id := res.Interrupts[0].ID
		reply := func(interrupt, how, value string) string {
			return fmt.Sprintf(`{"interrupt":%q,"how":%q,"value":%s}`, interrupt, how, value)
		}
		counts := reply(id, "answered", `"this"`)
		for number, data := range []string{
			`"nothing"`, `{}`, `{"replies":[]}`,
			`{"replies":[` + reply("unknown", "answered", `"that"`) + `]}`,
			`{"replies":[` + reply(id, "guessed", `"that"`) + `]}`,
			`{"replies":[` + reply(id, "answered", `7`) + `]}`,
			`{"replies":[` + reply(id, "default", `"that"`) + `]}`,
			`{"replies":[` + counts + `,` + counts + `]}`,
			`{"replies":[` + counts + `]}`,
			`{"replies":[` + reply(id, "answered", `"that"`) + `]}`,
		} {
			p := checkpoint.Post{ID: fmt.Sprintf("answer:%012d", number+1), Kind: "answer", Data: []byte(data)}
			if err := store.Post(context.Background(), run, p); err != nil {
				t.Fatal(err)
			}
		}
		if !live { // who answers drains all of it, and finds that it comes too late
			refused(t, d.Answer(t.Context(), run, id, "or"), dispatcher.ErrNotAwaited)
		}
		res, err = d.Run(t.Context(), run, nil)
		completes(t, res, err)
		log := readLog(t, &store)
		if all := askAnswers(t, &store, run); len(all) != 1 || res.State.Word.Get() != "this" || len(kinds(log, checkpoint.Noted)) != 9 {
			t.Errorf("the log says %+v, and notes %v", all, kinds(log, checkpoint.Noted))
		}
		if posts, err := store.Posts(t.Context(), run); len(posts) > 0 || err != nil {
			t.Errorf("the posts %v are left, %v", posts, err)
		}
	}
}

// A key is of one question in a visit: another one, or one for another type, is refused, before the
// first has its answer and afterwards. The same one may be asked as often as the node likes.
func TestAskOneQuestionForEachKey(t *testing.T) {
	again := func(ctx context.Context) error { _, err := dag.Ask[string](ctx, "ok", "publish?"); return err }
	for name, second := range map[string]func(context.Context) error{
		"the same":     again,
		"another":      func(ctx context.Context) error { _, err := dag.Ask[string](ctx, "ok", "print?"); return err },
		"another type": func(ctx context.Context) error { _, err := dag.Ask[bool](ctx, "ok", "publish?"); return err },
	} {
		var store memory.Store
		d := process(t, effectNode(t, func(ctx context.Context, s *Tale) error {
			answer, first := dag.Ask[string](ctx, "ok", "publish?")
			s.Word.Set(answer)
			err := second(ctx)
			var misuse *dag.ArgumentError
			if errors.As(err, &misuse) != (name != "the same") || misuse != nil && !strings.Contains(err.Error(), "give each question a key of its own") {
				t.Errorf("%s: behind %v Ask returned %v", name, first, err)
			}
			return first
		}, dag.Policy{}), &store, dispatcher.Options{})
		res, err := d.Run(t.Context(), run, nil)
		rests(t, res, err, checkpoint.StatusInterrupted, "pay")
		if len(res.Interrupts) != 1 || string(res.Interrupts[0].Question) != `"publish?"` {
			t.Errorf("%s: what waits is %v", name, res.Interrupts)
		}
		if err := d.Answer(t.Context(), run, "", "yes"); err != nil {
			t.Fatal(err)
		}
		res, err = d.Run(t.Context(), run, nil)
		if completes(t, res, err); res.State.Word.Get() != "yes" {
			t.Errorf("%s: the answer is %q", name, res.State.Word.Get())
		}
	}
}
