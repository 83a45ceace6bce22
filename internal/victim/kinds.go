package main

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

// kinds are the words for errors, the first that fits.
var kinds = []struct {
	err  error
	word string
}{
	{dispatcher.ErrCompleted, "completed"},
	{dispatcher.ErrStillRunning, "still-running"},
	{dispatcher.ErrStuck, "stuck"},
	{dispatcher.ErrNotAwaited, "not-awaited"},
	{checkpoint.ErrBusy, "busy"},
	{checkpoint.ErrLocked, "locked"},
	{checkpoint.ErrFull, "full"},
	{checkpoint.ErrCommitUnknown, "unknown"},
	{checkpoint.ErrCorrupt, "corrupt"},
	{checkpoint.ErrVersion, "version"},
	{checkpoint.ErrFenced, "fenced"},
	{checkpoint.ErrConflict, "conflict"},
	{checkpoint.ErrExists, "exists"},
	{checkpoint.ErrNotFound, "not-found"},
	{checkpoint.ErrTooLarge, "too-large"},
	{checkpoint.ErrClosed, "closed"},
	{context.DeadlineExceeded, "deadline"},
	{context.Canceled, "cancelled"},
	{syscall.EIO, "io"},
}

// kindOf is the word for an error. That of a run which rests is its status, or, if a visit has
// failed, how: panic, error, timeout.
func kindOf(err error) string {
	var rest *dispatcher.Rest
	var node *dispatcher.NodeError
	var wrong *wrongError
	var argument *checkpoint.ArgumentError
	switch {
	case errors.As(err, &argument):
		return "argument"
	case errors.As(err, &wrong):
		return "wrong"
	case errors.As(err, &rest) && errors.As(rest.Cause, &node):
		return string(node.Kind)
	case rest != nil:
		return strings.ToLower(string(rest.Status))
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.word
		}
	}
	return "other"
}

func isRest(err error) bool {
	var rest *dispatcher.Rest
	return errors.As(err, &rest)
}
