package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// answerQuestion has the run go as far as it can, and asks the person at the terminal, if there is
// one, what it asks.
func (s *session) answerQuestion(d *dialog) (*dispatcher.Result[Inquiry], error) {
	res, err := s.begin()
	for d != nil && errors.Is(err, dispatcher.ErrInterrupted) {
		i := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Kind == dispatcher.KindAsked })
		if i < 0 {
			break
		}
		_ = s.progress.close() // before anything else is written
		said, ok := d.ask(res.Interrupts[i])
		if !ok {
			break
		}
		if err := s.give(res.Interrupts[i], said); err != nil {
			return nil, err
		}
		s.progress = newProgress(s.stderr, s.json)
		res, err = s.goOnAgain(res, nil)
	}
	return res, err
}

// begin is the line that the whole program is for, in its lenient and its strict form.
func (s *session) begin() (*dispatcher.Result[Inquiry], error) {
	if err := s.trySettings(); err != nil {
		return nil, err
	}
	if s.fork != "" {
		if err := s.branch(); err != nil {
			return nil, err
		}
		return s.goOn()
	}
	if s.resume {
		return s.goOn()
	}
	var holds json.RawMessage
	if s.run == "" {
		s.run = dispatcher.NewRunID()
	} else {
		res, err := s.sameQuestion()
		if err != nil {
			return nil, err
		}
		holds = res.Settings
	}
	options, err := s.settings(holds)
	if err != nil {
		return nil, err
	}
	ctx, end := s.stops.begin()
	defer end()
	input := func(q *Inquiry) { q.Query.Set(s.question) }
	if s.lib.model == nil {
		return s.dispatcher.Run(ctx, s.run, input, options...)
	}
	var last dispatcher.Item[Inquiry]
	for last, err = range s.dispatcher.Stream(ctx, s.run, input, dispatcher.Listen{Only: dispatcher.Progress}, options...) {
		s.hear(last.Event)
	}
	return last.Result, err
}

// trySettings refuses settings that the dispatcher refuses before a run is answered or forked: they
// are tried on a run that does not exist.
func (s *session) trySettings() error {
	options, err := s.settings(nil)
	if err != nil || options == nil {
		return err
	}
	_, err = s.dispatcher.Resume(context.Background(), dispatcher.NewRunID(), options...)
	if errors.Is(err, dispatcher.ErrNotFound) {
		return nil
	}
	return err
}

// sameQuestion refuses a question other than the one that a run which exists has.
func (s *session) sameQuestion() (*dispatcher.Result[Inquiry], error) {
	res, err := s.dispatcher.State(context.Background(), s.run)
	if errors.Is(err, dispatcher.ErrNotFound) {
		return res, nil
	}
	if err != nil {
		return nil, err
	}
	asked, own := strings.TrimSpace(s.question), strings.TrimSpace(res.State.Query.Get())
	switch {
	case asked == "" || asked == own:
		return res, nil
	case own == "":
		return nil, usagef("run %q asks for its question: answer with -resume -answer", s.run)
	}
	return nil, usagef("run %q has another question, “%s”", s.run, shortened(printable(own)))
}

// goOn is -resume.
func (s *session) goOn() (*dispatcher.Result[Inquiry], error) {
	ctx := context.Background()
	if s.run == "" {
		id, err := s.newest(checkpoint.StatusPending, checkpoint.StatusRunning, checkpoint.StatusInterrupted,
			checkpoint.StatusCancelled, checkpoint.StatusTimedOut, checkpoint.StatusFailed)
		if err != nil {
			return nil, err
		}
		if s.run = id; id == "" {
			return nil, errors.New("there is nothing to resume: every run is completed")
		}
	}
	res, err := s.dispatcher.State(ctx, s.run)
	if err != nil {
		return nil, err
	}
	if s.answer != nil {
		i := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Kind == dispatcher.KindAsked })
		if i < 0 {
			return nil, fmt.Errorf("run %q asks nothing: -answer is not awaited", s.run)
		}
		if err := s.give(res.Interrupts[i], *s.answer); err != nil {
			return nil, err
		}
	}
	options, err := s.settings(res.Settings)
	if err != nil {
		return nil, err
	}
	return s.goOnAgain(res, options)
}

func (s *session) goOnAgain(res *dispatcher.Result[Inquiry], options []dispatcher.RunOption) (*dispatcher.Result[Inquiry], error) {
	ctx, end := s.stops.begin()
	defer end()
	if s.lib.model != nil {
		defer s.listen(ctx, res.Cursor.Seq)()
	}
	return s.dispatcher.Resume(ctx, s.run, options...)
}

// listen shows what the model writes, as it writes it, until the function that it returns is
// called.
func (s *session) listen(ctx context.Context, since uint64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // until stop, which waits for it
		defer close(ended)
		for e, err := range s.dispatcher.Events(ctx, s.run, dispatcher.Listen{Since: since, Tail: true, Only: dispatcher.Progress}) {
			if err != nil {
				return // ctx is done, or the call tells
			}
			s.hear(e)
		}
	}()
	return func() { cancel(); <-ended }
}

// hear shows a value that a node emits. Everything else is shown when it is observed.
func (s *session) hear(e dispatcher.Event) {
	if e.Kind == dispatcher.Emitted {
		s.progress.observe(e)
	}
}

// give answers what the run asked, as a person says it.
func (s *session) give(i dispatcher.Interrupt, said string) error {
	var value any = said
	if strings.HasPrefix(i.Key, approval) {
		v, err := parseVerdict(said)
		if err != nil {
			return usagef("%v", err)
		}
		value = v
	}
	return s.dispatcher.Answer(context.Background(), s.run, i.ID, value)
}

// newest returns the id of the newest run of any of these statuses, or of all; "" if there is none.
// Runs that can't be read are passed by, and told; if there are no others, or an answer is given,
// that is the error.
func (s *session) newest(status ...checkpoint.Status) (string, error) {
	var passed error
	f := checkpoint.Filter{Status: status, Graph: s.dispatcher.Graph(), Limit: 1}
	for info, err := range checkpoint.Runs(context.Background(), s.dispatcher.Store(), f) {
		switch {
		case err != nil && info.Run == "":
			return "", err
		case err != nil:
			passed = errors.Join(passed, fmt.Errorf("run %s can't be read: %w", info.Run, err))
		case passed != nil && s.answer != nil: // that may be for one of them
			return "", errors.Join(passed, errors.New("name the run that is answered with -run"))
		default:
			if passed != nil {
				fmt.Fprintf(s.stderr, "archivist: %s\n", complaint(passed))
			}
			return info.Run, nil
		}
	}
	return "", passed
}
