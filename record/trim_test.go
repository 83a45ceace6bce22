package record_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
)

// A run that is trimmed while its record is made, be it a fork, has one that tells what is there
// then; a run that is deleted is not there.
func TestRecordBesideATrim(t *testing.T) {
	nodes := []string{"a", "b", "c", "d"}
	line := func(s checkpoint.Store) *dispatcher.Dispatcher[Inquiry] {
		return inquire(t, s, nodes, nothing, nothing, nothing, nothing)
	}
	was := &memory.Faulty{}
	_, err := line(was).Run(t.Context(), "r", nil)
	done(t, err)
	forks, err := line(was).Fork(t.Context(), "r", "1", dispatcher.ForkOptions[Inquiry]{Into: []string{"fork"}})
	done(t, err)
	_, err = line(was).Run(t.Context(), forks[0], nil)
	done(t, err)
	done(t, line(was).Trim(t.Context(), "r", dispatcher.Retention{Last: 3}))
	for _, id := range []string{"r", "fork"} {
		whole := show(from(t, line(was.Crash(0)), id, record.Options{}))
		for _, what := range []string{"trimmed", "deleted"} {
			for n, hit := 1, true; hit; n++ {
				hit = false
				s, call := was.Crash(0), 0
				s.FailRead = func(context.Context, string, string) error {
					if call++; call != n {
						return nil
					}
					if hit = true; what == "deleted" {
						return s.Store.Delete(t.Context(), id)
					}
					return line(&s.Store).Trim(t.Context(), id, dispatcher.Retention{Last: 1})
				}
				r, err := record.From(t.Context(), line(s), id, record.Options{})
				switch {
				case what == "deleted" && errors.Is(err, checkpoint.ErrNotFound):
				case err != nil:
					t.Errorf("%s, %s before call %d of the store: %v", id, what, n, err)
				default:
					if got := show(r); got != whole && got != show(from(t, line(&s.Store), id, record.Options{})) {
						t.Errorf("%s, %s before call %d of the store: the record is neither that of before nor that of then:\n%s", id, what, n, got)
					}
				}
			}
		}
	}
}
