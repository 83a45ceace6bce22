package badgerstore_test

import (
	"errors"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Who loses a race for the head is told ErrConflict when the winner is durable and can be seen; if
// the write of both fails he has not lost, and is told what the winner is.
func TestLoserIsToldWhenTheWinnerCanBeSeen(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, outcome := range []error{nil, broken} {
		s := openUnsynced(t, t.TempDir())
		began, goOn := make(chan struct{}), make(chan error)
		stops := false // the committer alone looks at it, but for when it waits
		s.CommitWith(func(next func() error) error {
			if stops {
				began <- struct{}{}
				if err := <-goOn; err != nil {
					return err
				}
			}
			return next()
		})
		l := acquire(t, s, 2)
		head, err := s.Append(t.Context(), l[0], checkpoint.Head{}, oneEntry)
		if err != nil {
			t.Fatal(err)
		}
		stops = true
		bystander, racers := make(chan error, 1), make(chan error, 2)
		go func() { bystander <- second(s.Append(t.Context(), l[1], checkpoint.Head{}, oneEntry)) }() // waited for below
		<-began
		for range 2 {
			go func() { racers <- second(s.Append(t.Context(), l[0], head, oneEntry)) }() // waited for below
		}
		forkstoreQueued(s, 2)
		goOn <- nil
		<-began // both are in the group that is being written
		select {
		case err := <-racers:
			t.Errorf("who races was told %v while nothing could be seen of it", err)
		default:
		}
		stops = false
		goOn <- outcome
		lost := 0
		for range 2 {
			err := <-racers
			if errors.Is(err, checkpoint.ErrConflict) {
				lost++
				continue
			}
			if outcome == nil && err != nil || outcome != nil && !errors.Is(err, checkpoint.ErrCommitUnknown) {
				t.Errorf("the write ended with %v, and a racer was told %v", outcome, err)
			}
		}
		if want := map[bool]int{true: 1, false: 0}[outcome == nil]; lost != want {
			t.Errorf("the write ended with %v, and %d racers were told ErrConflict, want %d", outcome, lost, want)
		}
		if err := <-bystander; err != nil {
			t.Error(err)
		}
	}
}
