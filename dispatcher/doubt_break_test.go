package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// doubtBreaks are ways in which a function ends that does not return, and what is said of them.
var doubtBreaks = map[string]struct {
	breaks func()
	says   string
}{
	"a panic":                   {func() { panic(errFire) }, "panic: " + errFire.Error()},
	"runtime.Goexit":            {runtime.Goexit, "called runtime.Goexit"},
	"an error whose text exits": {func() { panic(brokenError{func(error) string { runtime.Goexit(); return "" }}) }, "called runtime.Goexit"},
	"a value whose text exits":  {func() { panic(brokenText{}) }, "called runtime.Goexit"},
}

// A brokenText is a value whose text ends the goroutine.
type brokenText struct{}

func (brokenText) String() string { runtime.Goexit(); return "" }

// An attempt in which the function of an effect breaks, and that breaks with it, ends as one that
// returns that the effect is in doubt, if it is the last one: a panic says as little as an error of
// what the other side did. With a person asked it waits for that, whatever attempts are left.
func TestDoubtPoliciesOfABreak(t *testing.T) {
	for name, c := range doubtBreaks {
		for doubt, want := range map[dag.Doubt]string{
			dag.DoubtTells: "failed in_doubt", dag.DoubtFails: "failed in_doubt", dag.DoubtAsks: "interrupted doubt",
		} {
			for policy, p := range map[string]dag.Policy{
				"one attempt": {}, "final by its Retry": {Attempts: 3, Retry: func(error) bool { return true }}, "attempts left": {Attempts: 3},
			} {
				if policy == "attempts left" && doubt == dag.DoubtTells {
					continue // another one is told: TestEffectsThatBlast
				}
				name := fmt.Sprintf("%s, %s, %s", name, doubt, policy)
				calls, visits := 0, 0
				g := effectNode(t, func(ctx context.Context, s *Tale) error {
					visits++
					return effectOnce(func(context.Context, int) (string, error) {
						calls++
						c.breaks()
						return "", nil
					}, dag.InDoubt(doubt))(ctx, s)
				}, p)
				store := new(memory.Store)
				d := process(t, g, store, dispatcher.Eager(dispatcher.Options{}))
				res, err := d.Run(t.Context(), run, nil)
				if got := doubtOutcome(res); got != want || calls != 1 || visits != 1 {
					t.Errorf("%s: the run is %s, want %s, and the effect was done %d times in %d attempts: %v", name, got, want, calls, visits, err)
					continue
				}
				sameMachine(t, d, run)
				if doubt == dag.DoubtAsks {
					asksOfABreak(t, d, res, name, c.says)
					continue
				}
				var failed *dispatcher.NodeError
				var told *dag.InDoubtError
				if !errors.As(err, &failed) || !strings.Contains(string(failed.Stack), "doubt_break_test.go") || !errors.As(err, &told) ||
					!strings.Contains(err.Error(), c.says) || !errors.Is(told, errFire) && name[:7] == "a panic" {
					t.Errorf("%s: the error is %v, with the stack %s", name, err, failed.Stack)
				}
				res, err = process(t, g, store, dispatcher.Options{}).State(t.Context(), run)
				if err != nil || doubtOutcome(res) != want || !strings.Contains(res.Failures[0].Message, c.says) {
					t.Errorf("%s: another process reads %+v, %v", name, res.Failures, err)
				}
			}
		}
	}
}

// asksOfABreak expects that who is asked about the effect is told how its function broke, and is
// asked again if it does so again.
func asksOfABreak(t *testing.T, d *dispatcher.Dispatcher[Tale], res *dispatcher.Result[Tale], name, says string) {
	t.Helper()
	var q checkpoint.DoubtQuestion
	if err := json.Unmarshal(res.Interrupts[0].Question, &q); err != nil || !strings.HasPrefix(q.Error, says) || says[0] == 'p' && !strings.Contains(q.Error, "doubt_break_test.go:") {
		t.Errorf("%s: the question is %s, %v", name, res.Interrupts[0].Question, err)
	}
	if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.NotHappened("no such charge")); err != nil {
		t.Fatal(name, err)
	}
	res, err := d.Resume(t.Context(), run)
	if got := doubtOutcome(res); got != "interrupted doubt" {
		t.Errorf("%s: behind a resolution the run is %s: %v", name, got, err)
	}
	if err := d.Resolve(t.Context(), run, "pay", "charge", dispatcher.Happened("by hand")); err != nil {
		t.Fatal(name, err)
	}
	if res, err = d.Resume(t.Context(), run); res.State.Word.Get() != "by hand" {
		t.Errorf("%s: the receipt is %q: %v", name, res.State.Word.Get(), err)
	}
}

// A node that breaks while an effect of it is in doubt fails as one that returns an error then: by
// the panic, but if that is the error of the effect, or by what the effect declares. What has
// ended, or did not happen, or is replayable, is in no doubt.
func TestDoubtOfANodeThatBreaks(t *testing.T) {
	lost := func(context.Context, int) (string, error) { return "", errDoubtReset }
	breaks := func(context.Context, int) (string, error) { panic(errFire) }
	charge := func(ctx context.Context, f func(context.Context, int) (string, error), options ...dag.EffectOption) error {
		_, err := dag.Effect(ctx, "charge", 5, f, options...)
		return err
	}
	for _, test := range []struct {
		name    string
		node    func(ctx context.Context, declared dag.EffectOption) error
		want    [3]string // DoubtTells, DoubtAsks, DoubtFails
		message string    // of the failure
	}{
		{"with something else", func(ctx context.Context, declared dag.EffectOption) error {
			_ = charge(ctx, lost, declared)
			panic("smoke")
		}, [3]string{"failed panic", "interrupted doubt", "failed in_doubt"}, "smoke"},
		{"with the error of the effect", func(ctx context.Context, declared dag.EffectOption) error {
			panic(fmt.Errorf("it must not fail: %w", charge(ctx, lost, declared)))
		}, [3]string{"failed in_doubt", "interrupted doubt", "failed in_doubt"}, errDoubtReset.Error()},
		{"with what the function panicked with", func(ctx context.Context, declared dag.EffectOption) error {
			defer func() { panic(recover()) }()
			return charge(ctx, breaks, declared)
		}, [3]string{"failed in_doubt", "interrupted doubt", "failed in_doubt"}, errFire.Error()},
		{"since a goroutine of it did", func(ctx context.Context, declared dag.EffectOption) error {
			broke := make(chan any)
			go func() {
				defer func() { broke <- recover() }()
				_ = charge(ctx, breaks, declared)
			}()
			panic(fmt.Sprint("in a goroutine: ", <-broke))
		}, [3]string{"failed in_doubt", "interrupted doubt", "failed in_doubt"}, errFire.Error()},
		{"behind an effect that has ended", func(ctx context.Context, declared dag.EffectOption) error {
			_ = charge(ctx, func(context.Context, int) (string, error) { return "paid", nil }, declared)
			panic("smoke")
		}, [3]string{"failed panic", "failed panic", "failed panic"}, "smoke"},
		{"behind an effect that did not happen", func(ctx context.Context, declared dag.EffectOption) error {
			panic(charge(ctx, func(context.Context, int) (string, error) { return "", dag.NotDone }, declared))
		}, [3]string{"failed panic", "failed panic", "failed panic"}, dag.NotDone.Error()},
		{"in an effect that is replayable", func(ctx context.Context, declared dag.EffectOption) error {
			return charge(ctx, breaks, declared, dag.Replayable)
		}, [3]string{"failed panic", "failed panic", "failed panic"}, errFire.Error()},
	} {
		for i, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtAsks, dag.DoubtFails} {
			g := effectNode(t, func(ctx context.Context, _ *Tale) error { return test.node(ctx, dag.InDoubt(doubt)) }, dag.Policy{})
			d := process(t, g, new(memory.Store), dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			if got := doubtOutcome(res); got != test.want[i] {
				t.Errorf("%s, %s: the run is %s, want %s: %v", test.name, doubt, got, test.want[i], err)
			}
			if len(res.Failures) > 0 && !strings.Contains(res.Failures[0].Message, test.message) {
				t.Errorf("%s, %s: the failure is %q", test.name, doubt, res.Failures[0].Message)
			}
			sameMachine(t, d, run)
		}
	}
}

// A node that survives that the function of its effect breaks, and then breaks by something else,
// fails by both: who reads of the failure finds the doubt, what the function broke by, and what the
// node did.
func TestDoubtOfANodeThatBreaksAgain(t *testing.T) {
	quiet(t)
	panics, exits := func(err error) func() { return func() { panic(err) } }, runtime.Goexit
	for name, c := range map[string]struct {
		effect, node func()
		says, then   string
	}{
		"panics, then another": {panics(errFire), panics(errWeather), "panic: " + errFire.Error(), "panic: " + errWeather.Error()},
		"panics, then Goexit":  {panics(errFire), exits, "panic: " + errFire.Error(), "called runtime.Goexit"},
		"Goexit, then a panic": {exits, panics(errWeather), "called runtime.Goexit", "panic: " + errWeather.Error()},
		"panics, then around it": {
			panics(errFire), panics(fmt.Errorf("%w: %w", errWeather, errFire)), "panic: " + errFire.Error(), "panic: " + errWeather.Error() + ": ",
		},
	} {
		for _, doubt := range []dag.Doubt{dag.DoubtTells, dag.DoubtFails} {
			g := effectNode(t, func(ctx context.Context, _ *Tale) error {
				survived := make(chan struct{})
				go func() {
					defer close(survived)
					defer func() { _ = recover() }()
					_, _ = dag.Effect(ctx, "charge", 5, func(context.Context, int) (int, error) { c.effect(); return 0, nil }, dag.InDoubt(doubt))
				}()
				<-survived
				c.node()
				return nil
			}, dag.Policy{})
			store := new(memory.Store)
			res, err := process(t, g, store, dispatcher.Options{}).Run(t.Context(), run, nil)
			var n *dispatcher.NodeError
			var told *dag.InDoubtError
			if doubtOutcome(res) != "failed in_doubt" || !errors.As(err, &n) || !errors.As(err, &told) || told.Key != "charge" {
				t.Errorf("%s, %s: the run is %s: %v", name, doubt, doubtOutcome(res), err)
				continue
			}
			for what, is := range map[string]error{errFire.Error(): errFire, errWeather.Error(): errWeather} {
				if broke := strings.Contains(c.says+c.then, what); errors.Is(err, is) != broke {
					t.Errorf("%s, %s: that %q is found is not %t in %v", name, doubt, what, broke, err)
				}
			}
			if stack := string(n.Stack); strings.Count(stack, "goroutine ") < 2 || !strings.Contains(stack, "dag.Effect") || !strings.Contains(stack, "visit).body") {
				t.Errorf("%s, %s: the stack is not that of both:\n%s", name, doubt, stack)
			}
			res, err = process(t, g, store, dispatcher.Options{}).State(t.Context(), run)
			for _, text := range []string{n.Err.Error(), res.Failures[0].Message} {
				if is, then, _ := strings.Cut(text, "; then "); err != nil || !strings.Contains(is, c.says) || !strings.HasPrefix(then, c.then) {
					t.Errorf("%s, %s: the error is %q, %v", name, doubt, text, err)
				}
			}
		}
	}
}

// Of two effects of one attempt whose functions break, the second with the node, each is told of
// once: the one that has the visit fail, and behind it the one by which the node breaks. Both are
// in doubt, and both can be said.
func TestDoubtOfTwoEffectsThatBreak(t *testing.T) {
	for doubts, want := range map[[2]dag.Doubt]string{
		{dag.DoubtTells, dag.DoubtTells}: "b", {dag.DoubtTells, dag.DoubtFails}: "b", {dag.DoubtAsks, dag.DoubtFails}: "b",
		{dag.DoubtFails, dag.DoubtTells}: "a b", {dag.DoubtFails, dag.DoubtAsks}: "a b", {dag.DoubtFails, dag.DoubtFails}: "a b",
	} {
		for _, second := range []error{errFire, errWeather} {
			d := process(t, effectNode(t, func(ctx context.Context, s *Tale) error {
				begun, broken := make(chan struct{}), make(chan struct{}) // b, and a
				go func() {
					defer close(broken)
					defer func() { _ = recover() }()
					_, _ = dag.Effect(ctx, "a", 5, func(context.Context, int) (string, error) { <-begun; panic(errFire) }, dag.InDoubt(doubts[0]))
				}()
				receipt, err := dag.Effect(ctx, "b", 5, func(context.Context, int) (string, error) {
					close(begun)
					<-broken
					panic(second)
				}, dag.InDoubt(doubts[1]))
				<-broken
				s.Word.Set(receipt)
				return err
			}, dag.Policy{}), new(memory.Store), dispatcher.Options{})
			res, err := d.Run(t.Context(), run, nil)
			var first *dag.InDoubtError
			if doubtOutcome(res) != "failed in_doubt" || !errors.As(err, &first) || !strings.HasPrefix(want, first.Key) || !errors.Is(err, second) {
				t.Fatalf("%v: the run is %s: %v", doubts, doubtOutcome(res), err)
			}
			var told []string
			for _, text := range strings.Split(res.Failures[0].Message, "; then ") {
				key, _, _ := strings.Cut(strings.TrimPrefix(text, `dag: effect "`), `"`)
				told = append(told, key)
			}
			if got := strings.Join(told, " "); got != want {
				t.Errorf("%v: it tells of %s, want %s: %s", doubts, got, want, res.Failures[0].Message)
			}
			for _, key := range []string{"a", "b"} {
				if err := d.Resolve(t.Context(), run, "pay", key, dispatcher.Happened(key+" by hand")); err != nil {
					t.Errorf("%v: %s: %v", doubts, key, err)
				}
			}
			res, err = d.Resume(t.Context(), run)
			if completes(t, res, err); res.State.Word.Get() != "b by hand" {
				t.Errorf("%v: the receipt is %q", doubts, res.State.Word.Get())
			}
		}
	}
}

// The effect by which the node broke is told of, also if another one has broken behind that, in a
// function that the node had deferred.
func TestDoubtOfAnEffectThatBreaksBehindTheNode(t *testing.T) {
	d := process(t, effectNode(t, func(ctx context.Context, s *Tale) error {
		defer func() {
			broken := make(chan struct{})
			go func() {
				defer close(broken)
				defer func() { _ = recover() }()
				_, _ = dag.Effect(ctx, "a", 5, func(context.Context, int) (string, error) { panic(errFire) })
			}()
			<-broken
		}()
		_, err := dag.Effect(ctx, "b", 5, func(context.Context, int) (string, error) { panic(errWeather) })
		return err
	}, dag.Policy{}), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), run, nil)
	var doubt *dag.InDoubtError
	if doubtOutcome(res) != "failed in_doubt" || !errors.As(err, &doubt) || doubt.Key != "b" || !errors.Is(err, errWeather) || errors.Is(err, errFire) {
		t.Errorf("the run is %s: %v, want it to tell of b alone", doubtOutcome(res), err)
	}
	if open, err := d.Open(t.Context(), run); err != nil || len(open.Effects) != 2 {
		t.Errorf("%d effects are open, %v, want both", len(open.Effects), err)
	}
}
