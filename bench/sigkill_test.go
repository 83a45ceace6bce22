//go:build rivals

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What processes have written says which visits were executed, and how often. Nothing was if there
// is no file.
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
			executed, err := readVisits(path)
			if err == nil {
				var known seen
				known.add(executed)
				err = known.all()
			}
			if len(executed) != test.n {
				t.Errorf("%d visits, want %d", len(executed), test.n)
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// Each process is held to what it executes again itself: what another one has spared doesn't count
// for it. Without a kill before it nothing may be executed again.
func TestProcesses(t *testing.T) {
	type process struct {
		executed []int
		killed   bool
	}
	for _, test := range []struct {
		name        string
		processes   []process
		again, died int
		err         bool
	}{
		{"none is killed", []process{{visits(0, visitsNeeded), false}, {nil, false}}, 0, 0, false},
		{"8 behind each of two kills", []process{{visits(0, 16), true}, {visits(8, 32), true}, {visits(24, visitsNeeded), false}}, 8, 2, false},
		{"16 behind one kill, none behind another", []process{{visits(0, 16), true}, {visits(0, 32), true}, {visits(32, visitsNeeded), false}}, 16, 2, false},
		{"the same twice", []process{{visits(0, 8), true}, {visits(0, 8), true}, {visits(0, visitsNeeded), false}}, 8, 2, false},
		{"twice in a process", []process{{visits(0, 8), true}, {append(visits(8, visitsNeeded), 9), false}}, 1, 1, false},
		{"killed before it executed any", []process{{nil, true}, {visits(0, 16), true}, {nil, true}, {visits(8, visitsNeeded), false}}, 8, 1, false},
		{"again without a kill", []process{{visits(0, visitsNeeded), false}, {visits(0, 3), false}}, 0, 0, true},
		{"twice without a kill before", []process{{append(visits(0, 8), 7), true}}, 0, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p processes
			var executed []int
			var err error
			for _, one := range test.processes {
				executed = append(executed, one.executed...)
				err = errors.Join(err, p.add(executed, one.killed))
			}
			if p.again != test.again || p.died != test.died || (err != nil) != test.err {
				t.Errorf("%d again, %d killed, %v; want %d, %d, an error: %v", p.again, p.died, err, test.again, test.died, test.err)
			}
		})
	}
}
