package dispatcher_test

import (
	"encoding/json"
	"strconv"

	"github.com/pawlgo/pawl/state"
)

// cells is the state of random graphs: one cell of every kind.
type cells struct {
	V state.Value[string]
	L state.List[string]
	N state.Sum[int]
	M state.Map[string, string]
	E state.Set[string]
	F state.Fold[joined]
}

// grouped is another state type, for graphs that are embedded.
type grouped struct{ Group cells }

func itself(c *cells) *cells           { return c }
func ofGroup(g *grouped) *cells        { return &g.Group }
func inputs(c *cells)                  { c.write(fill(input, "input", "")) }
func (j joined) Merge(o joined) joined { return joined{j.Text + o.Text} }

// joined merges by joining texts: in another order the text is another one.
type joined struct{ Text string }

// input is what every run is given.
var input = []cellOp{{Cell: "V", Do: "set", Val: "question "}, {Cell: "L", Do: "append", Val: "first "}}

func (c *cells) json() string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// look reads every cell, as node code does, into a text that tells all of it.
func (c *cells) look() string {
	var g glance
	g.cell('V', c.V.Get())
	g.cell('L')
	for _, v := range c.L.All() {
		g.add(v)
	}
	g.cell('N', strconv.Itoa(c.N.Get()))
	g.cell('M')
	for k, v := range c.M.All() {
		g.add(k)
		g.add(v)
	}
	g.cell('E')
	for v := range c.E.All() {
		g.add(v)
	}
	g.cell('F', c.F.Get().Text)
	return string(g)
}

// A glance is what look gathers.
type glance []byte

func (g *glance) cell(name byte, values ...string) {
	*g = append(*g, name, '\n')
	for _, v := range values {
		g.add(v)
	}
}

func (g *glance) add(value string) {
	*g = append(*g, value...)
	*g = append(*g, '\n')
}

func (c *cells) write(writes []cellOp) {
	for _, w := range writes {
		switch w.Cell + " " + w.Do {
		case "V set":
			c.V.Set(w.Val)
		case "V clear":
			c.V.Clear()
		case "L append":
			c.L.Append(w.Val)
		case "L replace":
			c.L.Replace([]string{w.Val})
		case "L truncate":
			c.L.Truncate(min(w.Num, c.L.Len()))
		case "L set":
			if c.L.Len() == 0 {
				c.L.Replace(nil)
				continue
			}
			c.L.SetAt(w.Num%c.L.Len(), w.Val)
		case "N add":
			c.N.Add(w.Num)
		case "N set":
			c.N.Set(w.Num)
		case "M put":
			c.M.Put(w.Key, w.Val)
		case "M delete":
			c.M.Delete(w.Key)
		case "M replace":
			c.M.Replace(map[string]string{w.Key: w.Val})
		case "M clear":
			c.M.Clear()
		case "E add":
			c.E.Add(w.Key)
		case "E remove":
			c.E.Remove(w.Key)
		case "E clear":
			c.E.Clear()
		case "F merge":
			c.F.Merge(joined{w.Val})
		case "F set":
			c.F.Set(joined{w.Val})
		default:
			panic("no such write: " + w.String())
		}
	}
}
