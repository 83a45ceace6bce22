package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// An item is what -open lists of one payment that is not completed.
type item struct {
	Run    string            `json:"run"`
	Status checkpoint.Status `json:"status"`
	Waits  []wait            `json:"waits"`
	Doubts []inDoubt         `json:"doubts"` // what a resume will not do again
}

// An inDoubt is an effect that was begun, and nobody knows whether it happened.
type inDoubt struct {
	Path      string          `json:"path"`
	Key       string          `json:"key"`
	ID        string          `json:"id"` // its reference at the bank
	Operation string          `json:"operation"`
	Touches   []string        `json:"touches"`
	Input     json.RawMessage `json:"input"`
	Begun     time.Time       `json:"begun"`
	Advice    []string        `json:"advice"` // commands, and when to give them
}

// list is -open: nothing runs. Payments that can't be read are its error, when the others are
// listed.
func (s *session) list(ctx context.Context, stdout io.Writer) error {
	runs := []string{s.run}
	var errs []error
	if s.run == "" {
		var err error
		if runs, errs, err = s.all(ctx); err != nil {
			return err
		}
	}
	items := []item{}
	for _, run := range runs {
		o, err := s.dispatcher.Open(ctx, run)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		items = append(items, s.itemOf(o))
	}
	if len(items) > 0 || len(errs) == 0 {
		errs = append(errs, s.tellItems(stdout, items))
	}
	return errors.Join(errs...)
}

// tellItems writes what -open lists.
func (s *session) tellItems(stdout io.Writer, items []item) error {
	if s.json {
		return writeJSON(stdout, items)
	}
	for _, it := range items {
		fmt.Fprintf(stdout, "%s is %s\n", it.Run, it.Status)
		for _, d := range it.Doubts {
			fmt.Fprintf(stdout, "  %s is in doubt since %s: %s\n", d.Operation, d.Begun.Local().Format(time.DateTime), d.Input)
			for _, line := range d.Advice {
				fmt.Fprintf(stdout, "    %s\n", line)
			}
		}
		for _, w := range it.Waits {
			fmt.Fprintf(stdout, "  %s waits: %s\n", w.Path, w.Question)
		}
		if slices.ContainsFunc(it.Waits, func(w wait) bool { return w.Key == string(bank.Charge) }) {
			fmt.Fprintf(stdout, "    to approve it: %s\n    to reject it: %s\n", s.command("-run", it.Run, "-approve"), s.command("-run", it.Run, "-reject"))
		}
	}
	return nil
}

func (s *session) itemOf(o *dispatcher.Opened) item {
	it := item{o.Run, o.Status, waitsOf(o.Interrupts), []inDoubt{}}
	for _, e := range o.InDoubt() {
		it.Doubts = append(it.Doubts, inDoubt{
			e.Path, e.Key, e.ID, e.Declared.Operation, e.Declared.Touches, e.Input, e.Begun,
			[]string{
				fmt.Sprintf("to look for its reference, %s: %s", e.ID, s.command("-statement")),
				"if it is there: " + s.command("-run", o.Run, "-resolve", "happened:NUMBER"),
				"if it is not: " + s.command("-run", o.Run, "-resolve", "not-happened:REASON"),
			},
		})
	}
	return it
}

// all are the payments that are not completed, newest first. Those of which nothing can be told may
// be among them: passed says which.
func (s *session) all(ctx context.Context) (ids []string, passed []error, err error) {
	f := checkpoint.Filter{Status: unfinished, Graph: s.dispatcher.Graph()}
	for info, err := range checkpoint.Runs(ctx, s.dispatcher.Store(), f) {
		switch {
		case err != nil && info.Run == "":
			return nil, nil, err
		case err != nil:
			passed = append(passed, fmt.Errorf("payment %q can't be read: %w", info.Run, err))
		default:
			ids = append(ids, info.Run)
		}
	}
	return ids, passed, nil
}

// pass tells of payments that are passed by.
func (s *session) pass(passed []error) {
	for _, err := range passed {
		fmt.Fprintf(s.stderr, "payments: %s\n", complaint(err))
	}
}

// doubted is the id of the only payment of which something is known to be in doubt.
func (s *session) doubted(ctx context.Context) (string, error) {
	all, passed, err := s.all(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, id := range all {
		o, err := s.dispatcher.Open(ctx, id)
		switch {
		case err != nil:
			passed = append(passed, err)
		case len(o.InDoubt()) > 0:
			ids = append(ids, id)
		}
	}
	switch {
	case len(ids) == 0 && len(passed) > 0:
		return "", errors.Join(passed...)
	case len(ids) == 0:
		return "", errors.New("nothing is in doubt")
	case len(ids) == 1:
		s.pass(passed)
		return ids[0], nil
	}
	return "", usagef("of %d payments a transfer is in doubt: name one with -run, of these: %s", len(ids), strings.Join(ids, ", "))
}

// settle is -resolve: a payment has one effect that can be in doubt.
func (s *session) settle(ctx context.Context) error {
	found, err := parseFinding(s.resolve)
	if err != nil {
		return err
	}
	o, err := s.dispatcher.Open(ctx, s.run)
	if err != nil {
		return err
	}
	doubts := o.InDoubt()
	if len(doubts) != 1 {
		return fmt.Errorf("of payment %q nothing is in doubt", s.run)
	}
	if err := s.look(ctx, found, doubts[0]); err != nil {
		return err
	}
	r, err := found.resolution(doubts[0])
	if err != nil {
		return err
	}
	return s.dispatcher.Resolve(ctx, s.run, doubts[0].Path, doubts[0].Key, r, dispatcher.Author(s.author()))
}

// look compares a finding with the books of the bank, where a transfer has the key of its effect as
// its reference: a number that was mistyped, or is that of another payment, decides nothing.
func (s *session) look(ctx context.Context, f finding, e dispatcher.OpenEffect) error {
	books, err := s.bank.Statement(ctx)
	if err != nil {
		return err
	}
	sent := books.Of(e.ID)
	switch {
	case f.number == "" && len(sent) > 0:
		return fmt.Errorf("the bank has made the transfer of payment %q: it is happened:%s", s.run, sent[0].Number)
	case f.number != "" && !slices.ContainsFunc(sent, func(t bank.Sent) bool { return t.Number == f.number }):
		return fmt.Errorf("the bank has no transfer %q with the reference of payment %q, %s; to see what it has: %s",
			f.number, s.run, e.ID, s.command("-statement"))
	}
	return nil
}
