package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// digestOf is the digest of a state, of a Work or of the reference.
func digestOf(state any) string {
	text, err := json.Marshal(state)
	if err != nil {
		panic(fmt.Sprintf("a state without JSON: %v", err))
	}
	return sum(string(text))
}

// sum is the hex SHA-256 of a text.
func sum(text string) string {
	b := sha256.Sum256([]byte(text))
	return hex.EncodeToString(b[:])
}

// A reading is all that the store says of a run.
type reading struct {
	Run         string            `json:"run"`
	Graph       string            `json:"graph"`
	Status      checkpoint.Status `json:"status"`
	Waits       int               `json:"waits"`       // interrupts that wait for a person
	Superstep   int               `json:"superstep"`   // the last one of the run's own frame
	Digest      string            `json:"digest"`      // of its state
	Checkpoints []string          `json:"checkpoints"` // digests of the run's own frame, from superstep 1
	Done        []string          `json:"done"`        // paths of visits that are durable, and not voided
	Findings    []string          `json:"findings"`    // what is wrong with it
	State       json.RawMessage   `json:"state"`
}

// read folds the log, and verifies it.
func (v *victim) read(ctx context.Context) (*reading, error) {
	res, err := v.d.State(ctx, v.run)
	if err != nil {
		return nil, err
	}
	r := &reading{
		Run: v.run, Graph: v.graph, Status: res.Status, Waits: len(res.Interrupts),
		Superstep: res.Superstep, Digest: digestOf(res.State),
	}
	if r.State, err = json.Marshal(res.State); err != nil {
		return nil, err
	}
	for e, err := range v.d.Events(ctx, v.run, dispatcher.Listen{States: true}) {
		if err != nil {
			return nil, err
		}
		if err := r.add(e); err != nil {
			return nil, err
		}
	}
	for finding, err := range checkpoint.Verify(ctx, v.store, v.run) {
		if err != nil {
			return nil, err
		}
		r.Findings = append(r.Findings, finding.String())
	}
	return r, nil
}

// add takes in one event of the log.
func (r *reading) add(e dispatcher.Event) error {
	switch e.Kind {
	case dispatcher.VisitDone:
		r.Done = append(r.Done, e.Path)
	case dispatcher.VisitsVoided:
		var paths []string
		if err := json.Unmarshal(e.Value, &paths); err != nil {
			return err
		}
		r.Done = slices.DeleteFunc(r.Done, func(path string) bool { return slices.Contains(paths, path) })
	case dispatcher.SuperstepEnded:
		if e.Path != "" {
			return nil
		}
		r.Checkpoints = append(r.Checkpoints, sum(string(e.State)))
		if len(r.Checkpoints) != e.Step {
			r.Findings = append(r.Findings, "superstep "+strconv.Itoa(e.Step)+" out of order")
		}
	}
	return nil
}

// A wrongError says what a run has become that it can't be.
type wrongError struct{ what string }

func (e *wrongError) Error() string { return "wrong: " + e.what }

// check compares the reading with the digests of the reference.
func (r *reading) check(want []string) error {
	if len(r.Findings) > 0 {
		return &wrongError{r.Findings[0]}
	}
	if len(r.Checkpoints) >= len(want) {
		return &wrongError{fmt.Sprintf("%d supersteps, the reference has %d", len(r.Checkpoints), len(want)-1)}
	}
	for i, digest := range r.Checkpoints {
		if digest != want[i+1] {
			return &wrongError{fmt.Sprintf("superstep %d has the digest %s, of the reference it is %s", i+1, digest, want[i+1])}
		}
	}
	if r.Superstep != len(r.Checkpoints) {
		return &wrongError{fmt.Sprintf("the run is at superstep %d, its log at %d", r.Superstep, len(r.Checkpoints))}
	}
	if r.Digest != want[r.Superstep] {
		return &wrongError{fmt.Sprintf("the state has the digest %s, of the reference at superstep %d it is %s", r.Digest, r.Superstep, want[r.Superstep])}
	}
	if r.Status == checkpoint.StatusCompleted && r.Superstep != len(want)-1 {
		return &wrongError{fmt.Sprintf("completed at superstep %d of %d", r.Superstep, len(want)-1)}
	}
	return nil
}
