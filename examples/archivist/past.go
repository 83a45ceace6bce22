package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/pawlgo/pawl/dispatcher"
)

// ofThePast reports whether a command is about a run that exists.
func (c *config) ofThePast() bool {
	return c.history || c.fork != "" || c.diff[0] != "" || c.blame != "" || c.record
}

// choose has a command of the past be about the newest run, unless it names one.
func (s *session) choose() error {
	if s.run != "" {
		return nil
	}
	id, err := s.newest()
	if err == nil && id == "" {
		err = errors.New("there are no runs yet")
	}
	s.run = id
	return err
}

// branch is -fork: a new run that begins at a checkpoint of another, with another question if one
// was asked. Neither what stands before the checkpoint nor the other run changes.
func (s *session) branch() error {
	if err := s.choose(); err != nil {
		return err
	}
	o := dispatcher.ForkOptions[Inquiry]{Reason: "-fork " + s.fork}
	if s.question != "" {
		if err := s.beforeItsQuestion(); err != nil {
			return err
		}
		o.Edit = func(q *Inquiry) { q.Query.Set(s.question) }
	}
	ids, err := s.dispatcher.Fork(context.Background(), s.run, s.fork, o, dispatcher.Author("the command line"))
	if err != nil {
		return err
	}
	s.origin, s.run = s.run, ids[0]
	return nil
}

// beforeItsQuestion refuses a checkpoint behind which nobody reads the question any more: a fork
// would carry another one and answer the first.
func (s *session) beforeItsQuestion() error {
	then, err := s.dispatcher.At(context.Background(), s.run, s.fork)
	switch nested := errors.Is(err, dispatcher.ErrNested); {
	case err != nil && !nested:
		return err
	case nested || then.State.RecalledContext.IsSet() || then.State.Intent.IsSet():
		return fmt.Errorf("at checkpoint %s the question was taken in already: fork with another one at 0 or 1", s.fork)
	}
	return nil
}

// An accusation is what -blame -json prints.
type accusation struct {
	Run     string    `json:"run"`
	Cell    string    `json:"cell"`
	Writers []culprit `json:"writers"`
}

// A culprit is one who wrote to a cell.
type culprit struct {
	Address string    `json:"address"` // of the entry
	Kind    string    `json:"kind"`
	Path    string    `json:"path,omitempty"` // of a visit
	Attempt int       `json:"attempt,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
}

// accuse is -blame.
func (s *session) accuse(stdout io.Writer) error {
	if err := s.choose(); err != nil {
		return err
	}
	all, err := s.dispatcher.Blame(context.Background(), s.run, "", s.blame)
	if err != nil {
		return err
	}
	found := accusation{Run: s.run, Cell: s.blame, Writers: []culprit{}}
	for _, w := range all[0].Writers {
		found.Writers = append(found.Writers, culprit{
			fmt.Sprintf("%s@%d", w.Run, w.Seq), string(w.Kind), w.Path, w.Attempt, w.By, w.At,
		})
	}
	if s.json {
		return writeJSON(stdout, found)
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, w := range found.Writers {
		who := w.Path
		if w.By != "" {
			who = printable(w.By)
		}
		fmt.Fprintf(t, "%s\t%s %s\t%s\n", w.Address, w.Kind, who, w.At.Local().Format("2006-01-02 15:04:05.000"))
	}
	return t.Flush()
}
