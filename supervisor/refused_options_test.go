package supervisor_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// What no call of the dispatcher would take, whatever the run is, is refused before anything waits
// with it, with the error of that call.
func TestOptionsThatTheDispatcherRefusesAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store memory.Store
		d := process(t, line(t, "line", 1, nil), &store, dispatcher.Options{Limits: dispatcher.Limits{ValueBytes: 100}})
		s := supervise(t, &store, supervisor.Options{Observe: func(e supervisor.Event) {
			if e.Run != "run" {
				t.Errorf("told %v", e)
			}
		}}, d)
		completes(t, submit(t, s, d, "", "run"))
		for name, options := range map[string][]dispatcher.RunOption{
			"an empty key":          {dispatcher.Labels(map[string]string{"": "x"})},
			"a secret label":        {dispatcher.Labels(map[string]string{"password": "hunter2hunter2"})},
			"no correlation":        {dispatcher.Correlation("")},
			"settings of no JSON":   {dispatcher.Settings(func() {}, "ann")},
			"settings too large":    {dispatcher.Settings(strings.Repeat("x", 101), "ann")},
			"an author with a line": {dispatcher.Settings(1, "ann\n")},
			"one twice":             {dispatcher.Correlation("a"), dispatcher.Correlation("b")},
		} {
			_, called := d.Continue(t.Context(), "run", options...)
			cause := func(err error) (any, string) {
				var option *dispatcher.OptionError
				var limit *dispatcher.LimitError
				var secret *dispatcher.SecretError
				switch {
				case errors.As(err, &option):
					return *option, option.Error()
				case errors.As(err, &limit):
					return *limit, limit.Error()
				case errors.As(err, &secret):
					return *secret, secret.Error()
				}
				return nil, ""
			}
			want, text := cause(called)
			_, submitted := supervisor.Submit(t.Context(), s, d, "", "none", nil, options...)
			_, continued := s.Continue(t.Context(), "", "run", options...)
			for _, err := range []error{submitted, continued} {
				got, _ := cause(err)
				if want == nil || !reflect.DeepEqual(got, want) || !strings.HasSuffix(err.Error(), `of graph "line": `+strings.TrimPrefix(text, "dispatcher: ")) {
					t.Errorf("%s: %v, want %v", name, err, called)
				}
			}
		}
		good := []dispatcher.RunOption{
			dispatcher.Labels(map[string]string{"tenant": "t"}), dispatcher.Correlation("c"), dispatcher.Settings(1, "ann"), dispatcher.Manual(), {},
		}
		task, err := supervisor.Submit(t.Context(), s, d, "", "run", nil, good[2:]...)
		if err != nil {
			t.Fatal(err)
		}
		completes(t, task)
		if _, err := s.Continue(t.Context(), "", "run", good...); err != nil { // that they are not the run's its call says
			t.Errorf("Continue with options that can be: %v", err)
		}
	})
}

// A stranger is a Runner that is no dispatcher, and tells neither its store nor what it refuses.
type stranger struct {
	of *dispatcher.Dispatcher[parcel]
}

func (s stranger) Graph() string { return s.of.Graph() }

func (s stranger) Continue(ctx context.Context, run string, options ...dispatcher.RunOption) (*dispatcher.Result[struct{}], error) {
	return s.of.Continue(ctx, run, options...)
}

// A Runner that is no dispatcher is believed: what it refuses its call says.
func TestARunnerThatIsNoDispatcher(t *testing.T) {
	var store memory.Store
	left(t, "line", 2, &store, "run")
	s := supervise(t, &store, supervisor.Options{}, stranger{process(t, line(t, "line", 2, nil), &store, dispatcher.Options{})})
	task, err := s.Continue(t.Context(), "", "run", dispatcher.Correlation(""))
	if err != nil {
		t.Fatal(err)
	}
	var refused *dispatcher.OptionError
	if _, err := task.Wait(t.Context()); !errors.As(err, &refused) || refused.Option != "Correlation" {
		t.Errorf("Wait = %v", err)
	}
	if r, err := s.Recover(t.Context()); err != nil || !slices.Equal(r.Rested, []string{"run"}) {
		t.Errorf("Recover = %+v, %v", r, err)
	}
}
