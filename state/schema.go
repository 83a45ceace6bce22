package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// A Kind names the type of a cell.
type Kind string

const (
	KindValue Kind = "value" // a [Value]
	KindWhole Kind = "whole" // a [Whole]
	KindList  Kind = "list"  // a [List]
	KindMap   Kind = "map"   // a [Map]
	KindSet   Kind = "set"   // a [Set]
	KindSum   Kind = "sum"   // a [Sum]
	KindFold  Kind = "fold"  // a [Fold]
)

// core says which core a cell has.
type core uint8

const (
	coreValue core = iota
	coreList
	coreKeyed
	coreSum
	coreFold
)

var cores = map[Kind]core{
	KindValue: coreValue, KindWhole: coreValue, KindList: coreList, KindMap: coreKeyed,
	KindSet: coreKeyed, KindSum: coreSum, KindFold: coreFold,
}

// CellInfo describes a cell.
type CellInfo struct {
	Name string `json:"name"` // that of the JSON; cells of nested structs have dots
	Kind Kind   `json:"kind"`
	// Type is that of the cell's JSON: of a List or Set a list, of a Map a map.
	Type Type `json:"type"`
}

// String says what the cell is made of: sum of int, map of string to []int.
func (c CellInfo) String() string {
	of := c.Type.String()
	switch {
	case (c.Kind == KindList || c.Kind == KindSet) && c.Type.Elem != nil:
		of = c.Type.Elem.String()
	case c.Kind == KindMap && c.Type.Key != nil && c.Type.Elem != nil:
		of = c.Type.Key.String() + " to " + c.Type.Elem.String()
	}
	return fmt.Sprintf("%s of %s", c.Kind, of)
}

// cell is what the untyped side knows of a cell.
type cell struct {
	CellInfo
	core  core
	set   bool // KindSet
	num   num  // KindSum
	off   uintptr
	label []byte // the name as the key of an object, with its colon
	// merge is the Merge of a Fold; nil in a parsed schema.
	merge func(a, b *box, more []written) (*box, error)
}

// A Schema is a state type without its type parameter. It is immutable.
type Schema struct {
	cells  []cell
	offs   []uintptr // of the cells
	clean  []uintptr // of the words that hold what is clean in them
	folds  bool      // some cell is a Fold
	checks bool      // the state has a Check method
	goType reflect.Type
	json   []byte

	// How to handle the struct in memory.
	size  uintptr
	block func(n int) (first addr, made int) // n of them in a row, zero, or some more that cost nothing
	clone func(addr) addr
	copy  func(to, from addr)
	value func(addr) any
	check func(addr) error
}

// Of reads the state type S: a struct of cells, or a [Whole]. It reports all that is
// wrong with S, naming the fields and what to write instead.
func Of[S any]() (*Schema, error) {
	t := reflect.TypeFor[S]()
	cells, err := cellsOf(t)
	if err != nil {
		return nil, err
	}
	s := &Schema{goType: t, checks: reflect.PointerTo(t).Implements(checker)}
	s.size = t.Size()
	s.block = func(n int) (addr, int) {
		if n == 1 {
			return addrOf(new(S)), 1
		}
		row := slices.Grow([]S(nil), n)
		return first(row), cap(row)
	}
	s.clone = func(p addr) addr {
		q := new(S)
		*q = *at[S](p)
		return addrOf(q)
	}
	s.copy = func(to, from addr) { *at[S](to) = *at[S](from) }
	s.value = func(p addr) any { return at[S](p) }
	s.check = func(p addr) error {
		if c, ok := any(at[S](p)).(interface{ Check() error }); ok {
			return c.Check()
		}
		return nil
	}
	return s, s.finish(cells)
}

// finish fills in what follows from the cells.
func (s *Schema) finish(cells []cell) error {
	s.cells = cells
	for i := range s.cells {
		c := &s.cells[i]
		c.core, c.set = cores[c.Kind], c.Kind == KindSet
		c.label = append(appendString(nil, c.Name), ':')
		s.offs = append(s.offs, c.off)
		s.clean = append(s.clean, cleanWords(c)...)
		s.folds = s.folds || c.Kind == KindFold
		if c.Kind != KindSum {
			continue
		}
		switch c.Type.Kind {
		case "int32":
			c.num = num32
		case "float64":
			c.num = numFloat
		}
	}
	var err error
	s.json, err = json.Marshal(struct {
		Cells []CellInfo `json:"cells"`
	}{s.Cells()})
	return err
}

// Cells describes the cells, in the order of their fields.
func (s *Schema) Cells() []CellInfo {
	infos := make([]CellInfo, len(s.cells))
	for i := range s.cells {
		infos[i] = s.cells[i].CellInfo
	}
	return infos
}

// MarshalJSON writes what [ParseSchema] reads. Equal schemas have equal JSON.
func (s *Schema) MarshalJSON() ([]byte, error) { return bytes.Clone(s.json), nil }

// ParseSchema makes a schema from the JSON of another. Its images and deltas have no Go
// values; it folds what the other folds, but [Merge] does nothing.
func ParseSchema(b []byte) (*Schema, error) {
	var in struct {
		Cells []CellInfo `json:"cells"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("state: no schema: %w", err)
	}
	cells := make([]cell, len(in.Cells))
	fields := make([]reflect.StructField, len(in.Cells))
	seen := map[string]bool{}
	for i, info := range in.Cells {
		if err := info.check(seen); err != nil {
			return nil, fmt.Errorf("state: no schema: cell %q: %w", info.Name, err)
		}
		cells[i].CellInfo = info
		fields[i] = reflect.StructField{Name: fmt.Sprintf("C%d", i), Type: coreTypes[cores[info.Kind]]}
	}
	t := reflect.StructOf(fields)
	for i := range cells {
		cells[i].off = t.Field(i).Offset
	}
	s := &Schema{}
	s.size = t.Size()
	s.block = func(n int) (addr, int) { return reflect.MakeSlice(reflect.SliceOf(t), n, n).UnsafePointer(), n }
	s.copy = func(to, from addr) { reflect.NewAt(t, to).Elem().Set(reflect.NewAt(t, from).Elem()) }
	s.clone = func(p addr) addr {
		q, _ := s.block(1)
		s.copy(q, p)
		return q
	}
	s.value = func(addr) any { return nil }
	s.check = func(addr) error { return nil }
	return s, s.finish(cells)
}

var coreTypes = map[core]reflect.Type{
	coreValue: reflect.TypeFor[valueCell](),
	coreList:  reflect.TypeFor[listCell](),
	coreKeyed: reflect.TypeFor[keyedCell](),
	coreSum:   reflect.TypeFor[sumCell](),
	coreFold:  reflect.TypeFor[foldCell](),
}

// check refuses what no schema says.
func (c *CellInfo) check(seen map[string]bool) error {
	if _, ok := cores[c.Kind]; !ok {
		return fmt.Errorf("unknown kind %q", c.Kind)
	}
	if seen[c.Name] {
		return errors.New("there are two of that name")
	}
	seen[c.Name] = true
	ok := true
	switch c.Kind {
	case KindList, KindSet:
		ok = c.Type.Kind == "list"
	case KindMap:
		ok = c.Type.Kind == "map"
	case KindSum:
		k := c.Type.Kind // own was said of numbers that marshal themselves, which were added as int64
		ok = k == "own" || k == "int" || k == "int32" || k == "int64" || k == "float64"
	}
	if !ok || !c.Type.valid(0, 0) {
		return errType
	}
	return nil
}

// agrees reports whether deltas of o can be applied to images of s.
func (s *Schema) agrees(o *Schema) bool {
	return s == o || o != nil && s.goType == o.goType && (s.goType != nil || bytes.Equal(s.json, o.json))
}
