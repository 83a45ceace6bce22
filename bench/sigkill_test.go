//go:build rivals

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What processes have written says which visits were executed, and how often. Nothing was if there is no file.
func TestReadVisits(t *testing.T) {
	for _, test := range []struct {
		name   string
		visits []int
		more   string // behind them
		n      int
		want   string // of the error, of the work or of reading
	}{
		{"all", visits(0, visitsNeeded), "", visitsNeeded, ""},
		{"some again", append(visits(0, 300), visits(290, visitsNeeded)...), "", visitsNeeded + 10, ""},
		{"one skipped, one again", append(append(visits(0, 7), 0), visits(8, visitsNeeded)...), "", visitsNeeded, "without visit 7"},
		{"no file", nil, "", 0, "without visit 0"},
		{"no such visit", []int{visitsNeeded}, "", 0, "has a visit 320"},
		{"half a visit", visits(0, visitsNeeded), "x", 0, "half a visit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "executed")
			var text []byte
			for _, v := range test.visits {
				text = binary.BigEndian.AppendUint16(text, uint16(v))
			}
			if text = append(text, test.more...); text != nil {
				if err := os.WriteFile(path, text, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			known, n, err := readVisits(path)
			if err == nil {
				err = known.all()
			}
			if n != test.n {
				t.Errorf("%d visits, want %d", n, test.n)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
