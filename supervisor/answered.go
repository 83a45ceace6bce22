package supervisor

import (
	"context"

	"github.com/pawlgo/pawl/checkpoint"
)

// goesOn reports whether a run that rests is one that Recover goes on with, as Options.Answered
// says.
func (s *Supervisor) goesOn(ctx context.Context, info *checkpoint.Info) (bool, error) {
	if !s.options.Answered || info.Status != checkpoint.StatusInterrupted {
		return false, nil
	}
	if logged, err := s.answered(ctx, info); logged || err != nil {
		return logged, err
	}
	posts, err := s.store.Posts(ctx, info.Run)
	for _, p := range posts {
		if p.Kind == checkpoint.PostAnswer || p.Kind == checkpoint.PostResolution { // which nobody has taken into the log
			return true, nil
		}
	}
	return false, err
}

// answered reports whether the log says that something has ended for which the run waits. It is
// read from its end, where the run has come to rest, unless somebody has said much of it since.
func (s *Supervisor) answered(ctx context.Context, info *checkpoint.Info) (bool, error) {
	first := max(info.First, 1)
	for n := uint64(1); ; n *= 8 {
		from := first
		if info.Head.Seq >= first+n {
			from = info.Head.Seq + 1 - n
		}
		ended, rested := false, from == first
		for e, err := range s.store.Read(ctx, info.Run, from, info.Head.Seq) {
			if err != nil {
				return false, err
			}
			switch e.Kind {
			case checkpoint.Waiting:
				ended, rested = false, true
			case checkpoint.Answered, checkpoint.EffectEnded:
				ended = true
			}
		}
		if rested || ended {
			return ended, nil
		}
	}
}
