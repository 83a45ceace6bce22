package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

const (
	replyIn = 5 * time.Second // for a reply of the bank
	pause   = 50 * time.Millisecond
)

// A session is one command at work on the store.
type session struct {
	*config
	bank       *bank.Client
	store      *badgerstore.Store
	dispatcher *dispatcher.Dispatcher[Payment]
	stderr     io.Writer
}

// open opens all that a command needs.
func open(ctx context.Context, c *config, client *bank.Client, stderr io.Writer) (*session, error) {
	dir, err := c.directory()
	if err != nil {
		return nil, err
	}
	if len(c.modes()) > 0 {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("there are no payments in %s", dir) // and no store is made of it
		}
	}
	graph, err := newGraph(&Desk{client, replyIn, pause})
	if err != nil {
		return nil, err
	}
	s := &session{config: c, bank: client, stderr: stderr}
	s.store, err = badgerstore.Open(ctx, dir, badgerstore.Options{MemTableSize: 8 << 20}) // payments are small
	if err != nil {
		return nil, err
	}
	s.dispatcher, err = dispatcher.New(graph, s.store, dispatcher.Options{Observe: s.observe, Gates: gates()})
	if err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// work makes a payment, or goes on with one, and tells what came of it.
func (s *session) work(ctx context.Context, stdout io.Writer) error {
	for _, f := range s.faults {
		if err := s.bank.Misbehave(ctx, f); err != nil {
			return err
		}
	}
	res, err := s.pay(ctx)
	var rest *dispatcher.Rest
	if err != nil && !errors.As(err, &rest) {
		return err
	}
	if terr := s.tell(stdout, res); terr != nil {
		return terr
	}
	return err
}

// pay is the line that the whole program is for, in its lenient and its strict form.
func (s *session) pay(ctx context.Context) (*dispatcher.Result[Payment], error) {
	if len(s.modes()) > 0 {
		return s.goOn(ctx)
	}
	if s.run == "" {
		s.run = dispatcher.NewRunID()
	}
	s.order.Number = s.run
	res, err := s.dispatcher.State(ctx, s.run)
	switch {
	case err == nil && res.State.Order.Get() != s.order:
		return nil, usagef("payment %q is another one, of %s", s.run, res.State.Order.Get())
	case err != nil && !errors.Is(err, dispatcher.ErrNotFound):
		return nil, err
	}
	return s.dispatcher.Run(ctx, s.run, func(p *Payment) { p.Order.Set(s.order) })
}

// goOn decides what was asked for, and resumes.
func (s *session) goOn(ctx context.Context) (*dispatcher.Result[Payment], error) {
	if s.run == "" {
		which := s.newest
		if s.resolve != "" {
			which = s.doubted
		}
		id, err := which(ctx)
		if err != nil {
			return nil, err
		}
		s.run = id
	}
	if err := s.decide(ctx); err != nil {
		return nil, err
	}
	return s.dispatcher.Resume(ctx, s.run)
}

// decide is -approve, -reject and -resolve.
func (s *session) decide(ctx context.Context) error {
	switch {
	case s.approve:
		return s.answer(ctx, dispatcher.Approve)
	case s.reject:
		return s.answer(ctx, dispatcher.Reject)
	case s.resolve != "":
		return s.settle(ctx)
	}
	return nil
}

// answer says whether what a payment waits for may be done.
func (s *session) answer(ctx context.Context, v dispatcher.Verdict) error {
	res, err := s.dispatcher.State(ctx, s.run)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(res.Interrupts, func(i dispatcher.Interrupt) bool { return i.Kind == dispatcher.KindEffect })
	if i < 0 {
		return fmt.Errorf("payment %q does not wait for an approval; to see what waits: %s", s.run, s.command("-open"))
	}
	return s.dispatcher.Answer(ctx, s.run, res.Interrupts[i].ID, v, dispatcher.Author(s.author()))
}

// unfinished are the statuses of runs that can go on.
var unfinished = []checkpoint.Status{
	checkpoint.StatusPending, checkpoint.StatusRunning, checkpoint.StatusInterrupted,
	checkpoint.StatusCancelled, checkpoint.StatusTimedOut, checkpoint.StatusFailed,
}

// newest is the id of the newest payment that is not completed, of those that can be read.
func (s *session) newest(ctx context.Context) (string, error) {
	ids, passed, err := s.all(ctx)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0 && len(passed) > 0:
		return "", errors.Join(passed...)
	case len(ids) == 0:
		return "", errors.New("every payment is completed")
	case len(passed) > 0 && (s.approve || s.reject): // one of them may be meant
		return "", errors.Join(append(passed, errors.New("name the payment with -run"))...)
	}
	s.pass(passed)
	return ids[0], nil
}
