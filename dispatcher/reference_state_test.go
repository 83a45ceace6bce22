package dispatcher_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// A refState is what the cells of a state hold. Its JSON is that of cells.
type refState struct {
	V string
	L []string
	N int
	M map[string]string
	E []string // sorted
	F joined
}

func (s refState) json() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// look is what a node reads in this state.
func (s refState) look() string {
	var g glance
	g.cell('V', s.V)
	g.cell('L', s.L...)
	g.cell('N', strconv.Itoa(s.N))
	g.cell('M')
	for _, k := range slices.Sorted(maps.Keys(s.M)) {
		g.add(k)
		g.add(s.M[k])
	}
	g.cell('E', s.E...)
	g.cell('F', s.F.Text)
	return string(g)
}

// with returns the state after writes, in their order.
func (s refState) with(writes []cellOp) refState {
	s.L, s.M, s.E = append([]string{}, s.L...), maps.Clone(s.M), append([]string{}, s.E...)
	if s.M == nil {
		s.M = map[string]string{}
	}
	for _, w := range writes {
		s.write(w)
	}
	return s
}

func (s *refState) write(w cellOp) {
	place, found := slices.BinarySearch(s.E, w.Key)
	switch w.Cell + " " + w.Do {
	case "V set":
		s.V = w.Val
	case "V clear":
		s.V = ""
	case "L append":
		s.L = append(s.L, w.Val)
	case "L replace":
		s.L = []string{w.Val}
	case "L truncate":
		s.L = s.L[:min(w.Num, len(s.L))]
	case "L set":
		if len(s.L) > 0 {
			s.L[w.Num%len(s.L)] = w.Val
		}
	case "N add":
		s.N += w.Num
	case "N set":
		s.N = w.Num
	case "M put":
		s.M[w.Key] = w.Val
	case "M delete":
		delete(s.M, w.Key)
	case "M replace":
		s.M = map[string]string{w.Key: w.Val}
	case "M clear":
		s.M = map[string]string{}
	case "E add":
		if !found {
			s.E = slices.Insert(s.E, place, w.Key)
		}
	case "E remove":
		if found {
			s.E = slices.Delete(s.E, place, place+1)
		}
	case "E clear":
		s.E = []string{}
	case "F merge":
		s.F.Text += w.Val
	case "F set":
		s.F.Text = w.Val
	default:
		panic("no such write: " + w.String())
	}
}

// merging are the writes that go together with others to the same cell: those to V, L, N
// and F always, those to M on different keys, those to E unless one adds what the other
// removes. All others are exclusive.
var merging = map[string]bool{
	"L append": true, "N add": true, "F merge": true,
	"M put": true, "M delete": true, "E add": true, "E remove": true,
}

// conflict returns which two of deltas don't merge, the first two for the first cell for
// which there are any, or nil.
func conflict(deltas [][]cellOp) []int {
	for _, cell := range []string{"V", "L", "N", "M", "E", "F"} {
		for i, a := range deltas {
			for k, b := range deltas[i+1:] {
				if clashOf(cell, a, b) {
					return []int{i, i + 1 + k}
				}
			}
		}
	}
	return nil
}

func clashOf(cell string, a, b []cellOp) bool {
	x, aloneX := touched(cell, a)
	y, aloneY := touched(cell, b)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	if aloneX || aloneY {
		return true
	}
	for key, last := range x {
		other, both := y[key]
		if both && (cell == "M" || cell == "E" && last != other) {
			return true
		}
	}
	return false
}

// touched returns what a delta does last to each key of a cell, and whether any of its
// writes to the cell is exclusive.
func touched(cell string, delta []cellOp) (last map[string]string, alone bool) {
	last = map[string]string{}
	for _, w := range delta {
		if w.Cell == cell {
			last[w.Key] = w.Do
			alone = alone || !merging[w.Cell+" "+w.Do]
		}
	}
	return last, alone
}
