package main

import (
	"context"
	"fmt"
	"io"

	"github.com/pawlgo/pawl/state"
)

// A comparison is what -diff -json prints.
type comparison struct {
	Run   string                 `json:"run"`
	From  string                 `json:"from"` // addresses
	To    string                 `json:"to"`
	Cells []state.CellDifference `json:"cells"`
}

// compare is -diff.
func (s *session) compare(stdout io.Writer) error {
	if err := s.choose(); err != nil {
		return err
	}
	d, err := s.dispatcher.Diff(context.Background(), s.run, s.diff[0], s.diff[1])
	if err != nil {
		return err
	}
	if s.json {
		cells := append([]state.CellDifference{}, d.Cells...)
		return writeJSON(stdout, comparison{s.run, d.From.Address(), d.To.Address(), cells})
	}
	for _, cell := range d.Cells {
		for _, change := range cell.Changes {
			if _, err := fmt.Fprintln(stdout, printable(change.String())); err != nil {
				return err
			}
		}
	}
	return nil
}
