package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Rows that were measured before an error are beside it.
func TestFloorsBesideAnError(t *testing.T) {
	s := session{quick: true, rounds: 1, length: 10, dir: filepath.Join(t.TempDir(), "none"), only: []string{"floor/superstep", "floor/badger"}}
	rows, err := floors(s)
	if err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("floors = %v, want that there is no such directory", err)
	}
	if len(rows) != 1 || rows[0].Name != "floor/superstep-1KB" {
		t.Errorf("rows %+v, want floor/superstep-1KB alone", rows)
	}
}
