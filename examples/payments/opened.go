package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
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
	Advice    string          `json:"advice"`
}

// list is -open: nothing runs.
func (s *session) list(ctx context.Context, stdout io.Writer) error {
	runs := []string{s.run}
	if s.run == "" {
		var err error
		if runs, err = s.all(ctx); err != nil {
			return err
		}
	}
	items := []item{}
	for _, run := range runs {
		o, err := s.dispatcher.Open(ctx, run)
		if err != nil {
			return err
		}
		items = append(items, itemOf(o))
	}
	if s.json {
		return writeJSON(stdout, items)
	}
	for _, it := range items {
		fmt.Fprintf(stdout, "%s is %s\n", it.Run, it.Status)
		for _, d := range it.Doubts {
			fmt.Fprintf(stdout, "  %s is in doubt since %s: %s\n    %s\n",
				d.Operation, d.Begun.Local().Format(time.DateTime), d.Input, d.Advice)
		}
		for _, w := range it.Waits {
			fmt.Fprintf(stdout, "  %s waits: %s\n", w.Path, w.Question)
		}
	}
	return nil
}

func itemOf(o *dispatcher.Opened) item {
	it := item{o.Run, o.Status, waitsOf(o.Interrupts), []inDoubt{}}
	for _, e := range o.InDoubt() {
		it.Doubts = append(it.Doubts, inDoubt{
			e.Path, e.Key, e.ID, e.Declared.Operation, e.Declared.Touches, e.Input, e.Begun, e.Advice,
		})
	}
	return it
}

// all are the payments that are not completed, newest first.
func (s *session) all(ctx context.Context) ([]string, error) {
	var ids []string
	f := checkpoint.Filter{Status: unfinished, Graph: s.dispatcher.Graph()}
	for {
		page, err := s.store.List(ctx, f)
		if err != nil || len(page) == 0 {
			return ids, err
		}
		for _, info := range page {
			ids = append(ids, info.Run)
		}
		f.After = ids[len(ids)-1]
	}
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
	r, err := found.resolution(doubts[0])
	if err != nil {
		return err
	}
	return s.dispatcher.Resolve(ctx, s.run, doubts[0].Path, doubts[0].Key, r, dispatcher.Author(s.author()))
}
