package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrBase: a [Difference] is applied to a state that is not the one it begins at.
var ErrBase = errors.New("state: the difference begins at another state")

// A Difference is what one state has that another has not. The order of the members of objects
// makes no difference. The zero Difference is that of nothing and nothing: its From is no digest.
type Difference struct {
	// From and To are digests of the two states: SHA-256, in hexadecimal, of what they hold
	// with the members of objects in order.
	From  string           `json:"from"`
	To    string           `json:"to"`
	Cells []CellDifference `json:"cells,omitempty"` // that differ, in the order of the schema

	kept bool // it comes from JSON
}

// UnmarshalJSON implements [json.Unmarshaler].
func (d *Difference) UnmarshalJSON(data []byte) error {
	type plain Difference
	var p plain
	if err := json.Unmarshal(data, &p); err != nil {
		return err
	}
	*d = Difference(p)
	d.kept = true
	return nil
}

// A CellDifference is how one cell differs.
type CellDifference struct {
	Cell string `json:"cell"`
	Kind Kind   `json:"kind"`
	// Before and After are all that the cell holds; nil where it is zero.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Changes are what differs inside, in order.
	Changes []Change `json:"changes"`
}

// A Change is the smallest part of a cell that differs: a key, an element, a member. Before
// is nil if it was added, After if it was removed.
type Change struct {
	Path   string          `json:"path"` // Word, Said[3], Notes["a"]["title"]
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// String tells the change on one line: Word: "teh" → "the". It cuts long values short.
func (c Change) String() string {
	switch {
	case c.Before == nil:
		return "+ " + c.Path + ": " + shorten(c.After)
	case c.After == nil:
		return "- " + c.Path + ": " + shorten(c.Before)
	}
	return "  " + c.Path + ": " + shorten(c.Before) + " → " + shorten(c.After)
}

func shorten(raw []byte) string {
	const most = 120
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "…"
}

// String tells every change on a line of its own.
func (d Difference) String() string {
	var b strings.Builder
	for i := range d.Cells {
		for _, c := range d.Cells[i].Changes {
			b.WriteString(c.String() + "\n")
		}
	}
	return b.String()
}

// Diff returns what to has that from has not. Their schemas may differ: a cell that is missing in
// one of them is zero there.
func Diff(from, to Image) (Difference, error) {
	a, err := contents(from)
	if err != nil {
		return Difference{}, err
	}
	b, err := contents(to)
	if err != nil {
		return Difference{}, err
	}
	d := Difference{From: a.digest(), To: b.digest()}
	seen := map[string]bool{}
	for _, cell := range slices.Concat(to.s.Cells(), from.s.Cells()) {
		if seen[cell.Name] {
			continue
		}
		seen[cell.Name] = true
		x, was := a.values[cell.Name]
		y, is := b.values[cell.Name]
		if was == is && bytes.Equal(ordered(x), ordered(y)) {
			continue
		}
		c := CellDifference{Cell: cell.Name, Kind: cell.Kind, Before: a.raw[cell.Name], After: b.raw[cell.Name]}
		if x == nil || y == nil { // null, or nothing
			c.Changes = []Change{{Path: cell.Name, Before: c.Before, After: c.After}}
		} else {
			c.Changes = differences(nil, cell.Name, x, y, cell.Kind == KindSet)
		}
		d.Cells = append(d.Cells, c)
	}
	return d, nil
}

// Apply returns the state that d leads to from base, which stays as it is. [ErrBase] if d
// begins at another state.
func (d Difference) Apply(base Image) (Image, error) {
	c, err := contents(base)
	if err != nil {
		return Image{}, err
	}
	if is := c.digest(); is != d.From {
		return Image{}, fmt.Errorf("%w: %.12s and not %.12s", ErrBase, d.From, is)
	}
	for _, cell := range d.Cells {
		if cell.After == nil {
			delete(c.raw, cell.Cell)
			continue
		}
		if !json.Valid(cell.After) {
			return Image{}, fmt.Errorf("state: the difference says of cell %q what is no JSON: take it from Diff, or from its JSON", cell.Cell)
		}
		if c.raw[cell.Cell] = cell.After; d.kept {
			c.raw[cell.Cell] = json.RawMessage(unescape.Replace(string(cell.After)))
		}
	}
	next, err := base.s.Parse(ordered(c.raw))
	if err != nil {
		return Image{}, err
	}
	if c, err = contents(next); err != nil {
		return Image{}, err
	}
	if is := c.digest(); is != d.To {
		return Image{}, fmt.Errorf("state: the difference says that it leads to %.12s, and leads to %.12s", d.To, is)
	}
	return next, nil
}

// unescape undoes what json.Marshal does to <, > and & in a difference that is kept as JSON: a
// state has them as they are, but in what a json.RawMessage, or a MarshalJSON of somebody's own,
// has escaped itself. It passes by escaped backslashes.
var unescape = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// A content is what a state holds, by cell.
type content struct {
	raw    map[string]json.RawMessage
	values map[string]any
}

func contents(i Image) (c content, err error) {
	data := i.AppendJSON(nil)
	if err = json.Unmarshal(data, &c.raw); err != nil {
		return c, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return c, decoder.Decode(&c.values)
}

func (c *content) digest() string {
	sum := sha256.Sum256(ordered(c.values))
	return hex.EncodeToString(sum[:])
}

// ordered is the JSON of a decoded value, the members of objects in order; nil for nothing.
func ordered(v any) []byte {
	if v == nil {
		return nil
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("state: decoded JSON can't be encoded: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// differences adds what differs between x, at path, and y. set: x and y are sets.
func differences(all []Change, path string, x, y any, set bool) []Change {
	a, b := ordered(x), ordered(y)
	if bytes.Equal(a, b) {
		return all
	}
	switch x := x.(type) {
	case map[string]any:
		if y, ok := y.(map[string]any); ok {
			return memberDifferences(all, path, x, y)
		}
	case []any:
		y, ok := y.([]any)
		switch {
		case ok && set:
			return elementDifferences(all, path, x, y)
		case ok:
			return listDifferences(all, path, x, y)
		}
	}
	return append(all, Change{Path: path, Before: a, After: b})
}

func memberDifferences(all []Change, path string, x, y map[string]any) []Change {
	keys := slices.Sorted(maps.Keys(x))
	for key := range y {
		if _, ok := x[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		a, was := x[key]
		b, is := y[key]
		at := path + "[" + strconv.Quote(key) + "]"
		switch {
		case !was:
			all = append(all, Change{Path: at, After: present(b)})
		case !is:
			all = append(all, Change{Path: at, Before: present(a)})
		case a == nil && b != nil || a != nil && b == nil:
			all = append(all, Change{Path: at, Before: present(a), After: present(b)})
		default:
			all = differences(all, at, a, b, false)
		}
	}
	return all
}

// present is the JSON of a value that is there, though it may be null.
func present(v any) []byte {
	if v == nil {
		return []byte("null")
	}
	return ordered(v)
}

// elementDifferences compares sets, whose elements are in order.
func elementDifferences(all []Change, path string, x, y []any) []Change {
	was, is := map[string]bool{}, map[string]bool{}
	for _, v := range x {
		was[string(present(v))] = true
	}
	for _, v := range y {
		is[string(present(v))] = true
	}
	for _, v := range slices.Sorted(maps.Keys(was)) {
		if !is[v] {
			all = append(all, Change{Path: path, Before: json.RawMessage(v)})
		}
	}
	for _, v := range slices.Sorted(maps.Keys(is)) {
		if !was[v] {
			all = append(all, Change{Path: path, After: json.RawMessage(v)})
		}
	}
	return all
}

// listDifferences compares what lies between the same beginning and the same end, element by
// element. Places are those of the list in which the element is.
func listDifferences(all []Change, path string, x, y []any) []Change {
	same := func(a, b any) bool { return bytes.Equal(present(a), present(b)) }
	first := 0
	for first < min(len(x), len(y)) && same(x[first], y[first]) {
		first++
	}
	last := 0
	for last < min(len(x), len(y))-first && same(x[len(x)-1-last], y[len(y)-1-last]) {
		last++
	}
	at := func(i int) string { return path + "[" + strconv.Itoa(i) + "]" }
	for i := first; i < max(len(x), len(y))-last; i++ {
		switch {
		case i >= len(x)-last:
			all = append(all, Change{Path: at(i), After: present(y[i])})
		case i >= len(y)-last:
			all = append(all, Change{Path: at(i), Before: present(x[i])})
		case x[i] == nil || y[i] == nil:
			if !same(x[i], y[i]) {
				all = append(all, Change{Path: at(i), Before: present(x[i]), After: present(y[i])})
			}
		default:
			all = differences(all, at(i), x[i], y[i], false)
		}
	}
	return all
}
