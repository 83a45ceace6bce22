package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// keeper is who makes records.
var keeper = record.Author{Type: dag.System, ID: "archivist"}

// tellRecord is -record: the record of the run as it stands becomes a version in a ledger, in the
// same store, and is printed if the whole chain of versions is what was written.
func (s *session) tellRecord(stdout io.Writer) error {
	if err := s.choose(); err != nil {
		return err
	}
	ctx := context.Background()
	at, err := s.dispatcher.State(ctx, s.run)
	if err != nil {
		return err
	}
	r, err := record.From(ctx, s.dispatcher, s.run, record.Options{Goal: at.State.Query.Get(), Author: keeper})
	if err != nil {
		return err
	}
	r.ID = s.run
	ledger, err := record.NewLedger(s.store, record.LedgerOptions{})
	if err != nil {
		return err
	}
	last, err := ledger.Create(ctx, r, keeper)
	if errors.Is(err, record.ErrExists) {
		last, err = ledger.Advance(ctx, s.run, r, keeper)
	}
	if err != nil {
		return err
	}
	verdict, err := ledger.Verify(ctx, s.run)
	if err == nil && !verdict.Valid {
		err = fmt.Errorf("version %d of the record is not what was written: %s", verdict.BrokenAt, verdict.Reason)
	}
	if err != nil {
		return err
	}
	text, err := last.Record.Encode()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if s.json {
		b.Write(text)
	} else if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = stdout.Write(b.Bytes())
	return err
}
