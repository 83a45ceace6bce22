package main

import (
	"path/filepath"
	"testing"

	"github.com/pawlgo/pawl/record"
)

// -record prints what the run decided, asked and ended with, as a record that anybody can verify.
// Of a run that has gone on since it is another version, which names the one before; else the same.
func TestRecord(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	print := func() *record.Record {
		t.Helper()
		o := archivist(t, "-store", store, "-run", "maze", "-record").exits(t, 0)
		r, err := record.Decode([]byte(o.stdout))
		if err != nil {
			t.Fatalf("%v:\n%s", err, o.stdout)
		}
		if hash, err := r.Hash(); err != nil || hash != r.ContentHash {
			t.Errorf("the hash is %s, %v, and the record says %s", hash, err, r.ContentHash)
		}
		return r
	}
	archivist(t, "-store", store, "-run", "maze", "-cancel-at", "compose-loop/1/compose", "What's a book about a labyrinth?").exits(t, 3)
	first := print()
	if first.Task.Status != record.TaskBlocked && first.Task.Status != record.TaskInProgress || len(first.ResumePoints) == 0 || first.Task.Goal != "What's a book about a labyrinth?" {
		t.Errorf("of a run that was cancelled: task %+v, resume points %+v", first.Task, first.ResumePoints)
	}
	if len(first.Decisions) != 1 || first.Decisions[0].ID != "intent" {
		t.Errorf("decided %+v", first.Decisions)
	}
	if again := print(); again.ContentHash != first.ContentHash {
		t.Error("of the same position there are two records")
	}
	archivist(t, "-store", store, "-run", "maze").exits(t, 0)
	last := print()
	if last.Task.Status != record.TaskCompleted || last.ParentCRHash != first.ContentHash || len(last.ResumePoints) > 0 {
		t.Errorf("of a run that is completed: task %+v, parent %q, resume points %+v", last.Task, last.ParentCRHash, last.ResumePoints)
	}
	archivist(t, "-store", store, "-run", "absent", "-record").complains(t, 1, "absent")
}
