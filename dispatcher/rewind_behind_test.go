package dispatcher_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// What held a run behind a visit holds neither its forks nor the run once it is rewound: it
// waited for somebody, and nothing that waits is inherited.
func TestRewindBehindAnInterruptAfter(t *testing.T) {
	quiet(t)
	var w witness
	store := new(memory.Store)
	d := process(t, line(t, &w, nil), store, dispatcher.Options{InterruptAfter: []string{"a"}})
	res, err := d.Run(t.Context(), run, nil)
	rests(t, res, err, checkpoint.StatusInterrupted, "b")
	w.took()
	forks, err := d.Fork(t.Context(), run, "1", dispatcher.ForkOptions[Tale]{Into: []string{"fork"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Rewind(t.Context(), run, "1", dispatcher.RewindOptions{}, dispatcher.Author("ann")); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(forks, run) {
		if res, err := d.State(t.Context(), id); err != nil || len(res.Interrupts) != 0 {
			t.Errorf("%s waits for %v, %v", id, res.Interrupts, err)
		}
		if res, err := d.Run(t.Context(), id, nil); err != nil {
			t.Errorf("%s: %v, %v", id, res.Status, err)
		}
	}
	w.expect(t, "b", "c", "b", "c")
}
