package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/agent/script"
)

// whatIf forks the run of a world and lets the fork go on. It returns what the fork came to, and
// the prompts that it took.
func (w *world) whatIf(t *testing.T, at string, o dispatcher.ForkOptions[Mind], heard *[]script.Prompt) (*Mind, []script.Prompt) {
	t.Helper()
	before := len(*heard)
	ids, err := w.Fork(t.Context(), "r", at, o)
	if err != nil {
		t.Fatal(err)
	}
	w.restart(t)
	res, err := w.Resume(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	return res.State, (*heard)[before:]
}

// A fork takes from the log of the run whatever the edit does not change: the model is asked for
// nothing before the edit's first consequence, and no tool is used again.
func TestAWhatIfForkAsksNothingBeforeItsConsequence(t *testing.T) {
	var heard []script.Prompt
	w := newWorld(t, func(p script.Prompt) script.Line {
		heard = append(heard, p)
		return script.Mountaineer(p)
	})
	first := w.goes(t, compare, "").State
	used := w.used.Load()

	// Nothing is different: no call, from wherever it begins.
	for _, at := range []string{"0", "1", "work/1@3", "work/2@1", "2"} {
		m, prompts := w.whatIf(t, at, dispatcher.ForkOptions[Mind]{}, &heard)
		if m.Answer.Get() != first.Answer.Get() || m.Spent.Get() != first.Spent.Get() || len(prompts) > 0 || w.used.Load() != used {
			t.Errorf("forked at %s: %q, %d calls of the model and %d of tools", at, m.Answer.Get(), len(prompts), w.used.Load()-used)
		}
	}

	// For whom the answer is written is seen by the last node alone: one call, which tells.
	child := dispatcher.ForkOptions[Mind]{Effects: dispatcher.ReuseOrLive, Edit: func(m *Mind) { m.Audience.Set("a child") }}
	for _, at := range []string{"0", "1", "work/2@1", "2"} {
		m, prompts := w.whatIf(t, at, child, &heard)
		if m.Answer.Get() != "For a child: "+difference || len(prompts) != 1 || w.used.Load() != used {
			t.Fatalf("forked at %s: %q, %d calls of the model and %d of tools", at, m.Answer.Get(), len(prompts), w.used.Load()-used)
		}
		if p := prompts[0]; p.Tools != nil || !strings.Contains(string(p.Material), `"audience":"a child"`) {
			t.Errorf("forked at %s: the call was %s", at, p.Material)
		}
	}

	// Another task after the first round: that one stays, all others think anew.
	other := dispatcher.ForkOptions[Mind]{Effects: dispatcher.ReuseOrLive, Edit: func(m *Mind) {
		m.Task.Set("How much higher is Ben Nevis than Mont Blanc?")
	}}
	m, prompts := w.whatIf(t, "work/1@3", other, &heard)
	if m.Answer.Get() != "Ben Nevis is -3461 metres higher than Mont Blanc." || len(prompts) != 3 || w.used.Load() != used+1 {
		t.Errorf("another task: %q, %d calls of the model and %d of tools", m.Answer.Get(), len(prompts), w.used.Load()-used)
	}

	// The run itself knows nothing of all that.
	if res := w.goes(t, compare, ""); res.State.Answer.Get() != first.Answer.Get() {
		t.Errorf("the run that was forked answers %q", res.State.Answer.Get())
	}
}

// A note that the run has written, its fork takes from the log: nobody is asked to approve it
// again, and it is not written again.
func TestAWhatIfForkWritesNothing(t *testing.T) {
	var heard []script.Prompt
	w := newWorld(t, func(p script.Prompt) script.Line {
		heard = append(heard, p)
		return script.Mountaineer(p)
	})
	task := compare + " Note it down in alps.txt."
	w.says(t, w.goes(t, task, "note"), dispatcher.Approve)
	w.goes(t, "", "")
	before, used := w.noted(t), w.used.Load()
	child := dispatcher.ForkOptions[Mind]{Effects: dispatcher.ReuseOrLive, Edit: func(m *Mind) { m.Audience.Set("a child") }}
	m, prompts := w.whatIf(t, "0", child, &heard)
	if m.Answer.Get() != "For a child: "+difference || len(prompts) != 1 || w.used.Load() != used || !maps.Equal(w.noted(t), before) {
		t.Errorf("%q, %d calls of the model and %d of tools, notes %q", m.Answer.Get(), len(prompts), w.used.Load()-used, w.noted(t))
	}
	if s, _ := m.Steps.Get("03.1"); s.Status != Completed || s.Tool.Output != "noted in alps.txt" {
		t.Errorf("the step is %+v", s)
	}
}
