package badgerstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// A store needs a directory, and one that this process has open says so.
func TestEdgesOpen(t *testing.T) {
	t.Parallel()
	var e *checkpoint.ArgumentError
	_, err := badgerstore.Open(t.Context(), "", small)
	if !errors.As(err, &e) || e.Argument != "directory" {
		t.Errorf("Open of no directory returns %v", err)
	}
	dir := t.TempDir()
	open(t, dir)
	_, err = badgerstore.Open(t.Context(), dir, small)
	if !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "locked by this process") {
		t.Errorf("Open again returns %v, want that this process has it", err)
	}
}

// A Store that nobody opened is closed, and kills nobody.
func TestEdgesZeroStoreIsClosed(t *testing.T) {
	var s badgerstore.Store
	if _, err := s.Acquire(t.Context(), "run", "owner"); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Acquire: %v", err)
	}
	if _, err := s.Stat(t.Context(), "run"); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Stat: %v", err)
	}
	if _, err := s.List(t.Context(), checkpoint.Filter{}); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("List: %v", err)
	}
	if err := s.PutGraph(t.Context(), strings.Repeat("0", 64), []byte("{}")); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("PutGraph: %v", err)
	}
	if _, err := s.Graph(t.Context(), strings.Repeat("0", 64)); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Graph: %v", err)
	}
	if err := s.Close(); err != nil && !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}
