package state

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A Number is what a [Sum] adds up.
type Number interface {
	~int | ~int32 | ~int64 | ~float64
}

// num says how the bits of a sumCell are read: the other numbers are sign-extended.
type num uint8

const (
	num64 num = iota
	num32
	numFloat
)

// add returns a+b, and false if that is out of range.
func (k num) add(a, b uint64) (uint64, bool) {
	if k == numFloat {
		return floatBits(math.Float64frombits(a) + math.Float64frombits(b))
	}
	x, y := int64(a), int64(b)
	z := x + y
	if k == num32 {
		return uint64(z), z == int64(int32(z))
	}
	return uint64(z), (z > x) == (y > 0)
}

// floatBits refuses what JSON can't say; minus zero is zero.
func floatBits(f float64) (uint64, bool) {
	if f == 0 {
		return 0, true
	}
	return math.Float64bits(f), !math.IsNaN(f) && !math.IsInf(f, 0)
}

func (k num) append(dst []byte, bits uint64) []byte {
	if k == numFloat {
		return appendFloat(dst, math.Float64frombits(bits))
	}
	return strconv.AppendInt(dst, int64(bits), 10)
}

func (k num) size(bits uint64) int {
	if k != numFloat && bits < 10 {
		return 1
	}
	var buf [32]byte
	return len(k.append(buf[:0], bits))
}

func (k num) parse(raw []byte) (uint64, error) {
	if k != numFloat && len(raw) == 1 && raw[0]-'0' <= 9 { // as most of what is added
		return uint64(raw[0] - '0'), nil
	}
	switch k {
	case numFloat:
		f, err := strconv.ParseFloat(text(raw), 64)
		bits, _ := floatBits(f)
		return bits, err
	case num32:
		n, err := strconv.ParseInt(text(raw), 10, 32)
		return uint64(n), err
	}
	n, err := strconv.ParseInt(text(raw), 10, 64)
	return uint64(n), err
}

// fault says in the words of this package what parse returned.
func (k num) fault(err error) error {
	switch k {
	case numFloat:
		return numberFault(err, "float64", "want a number")
	case num32:
		return numberFault(err, "int32", "want a whole number")
	}
	return numberFault(err, "int64", "want a whole number")
}

// sumCell is the core of Sum. Numbers have no memory to share, so a copy is free.
type sumCell struct {
	w    *mark
	cur  uint64
	pend uint64 // opSet: the value, opAdd: what is added to cur
}

func (c *sumCell) see(k num) uint64 {
	switch c.w.does() {
	case opSet:
		return c.pend
	case opAdd:
		sum, _ := k.add(c.cur, c.pend)
		return sum
	}
	return c.cur
}

func (c *sumCell) add(k num, d uint64) bool {
	_, fits := k.add(c.see(k), d)
	pend, o := d, opAdd
	if was := c.w.does(); was != opNone {
		var ok bool
		pend, ok = k.add(c.pend, d)
		fits, o = fits && ok, was
	}
	if !fits {
		c.w = c.w.failed(ErrOverflow)
		return false
	}
	c.pend, c.w = pend, c.w.with(o)
	return true
}

func (c *sumCell) set(v uint64) { c.pend, c.w = v, c.w.with(opSet) }

// A Sum is a cell that adds up: parallel additions merge, Set conflicts with any other write. A sum
// that overflows, or that becomes NaN or infinite, fails the visit or the superstep. The zero Sum
// is 0. A sum is a number in JSON, also if N has a marshaller of its own.
//
// The last digits of a sum of floats depend on the order of additions. What an inner frame has
// added is added to the outer one as one number, so behind a Loop a Sum may differ from the one by
// which the loop has decided.
type Sum[N Number] struct {
	_ [0]*N
	c sumCell
}

func numOf[N Number]() num {
	if N(1)/N(2) != 0 {
		return numFloat
	}
	if quarter := N(1 << 30); quarter*4 == 0 {
		return num32
	}
	return num64
}

func bitsOf[N Number](n N) (uint64, bool) {
	if numOf[N]() == numFloat {
		return floatBits(float64(n))
	}
	return uint64(int64(n)), true
}

// A notFinite is the [ErrOverflow] of a number that was given, and that JSON can't say.
type notFinite float64

func (f notFinite) Error() string { return fmt.Sprintf("state: a sum can't take %v", float64(f)) }
func (notFinite) Unwrap() error   { return ErrOverflow }

// Get returns the sum.
func (s *Sum[N]) Get() N {
	bits := s.c.see(numOf[N]())
	if numOf[N]() == numFloat {
		return N(math.Float64frombits(bits))
	}
	return N(int64(bits))
}

// Add adds n. It is a write also if n is 0.
func (s *Sum[N]) Add(n N) {
	bits, ok := bitsOf(n)
	if !ok {
		s.c.w = s.c.w.failed(notFinite(n))
		return
	}
	s.c.add(numOf[N](), bits)
}

// Set sets the sum to n.
func (s *Sum[N]) Set(n N) {
	bits, ok := bitsOf(n)
	if !ok {
		s.c.w = s.c.w.failed(notFinite(n))
		return
	}
	s.c.set(bits)
}

// MarshalJSON returns the sum.
func (s Sum[N]) MarshalJSON() ([]byte, error) {
	k := numOf[N]()
	return k.append(nil, s.c.see(k)), nil
}

// UnmarshalJSON sets the sum.
func (s *Sum[N]) UnmarshalJSON(b []byte) error {
	switch numOf[N]() {
	case numFloat:
		return setFrom[float64](s, b)
	case num32:
		return setFrom[int32](s, b)
	}
	return setFrom[int64](s, b)
}

// setFrom sets s to the JSON of a W, which is what N is made of.
func setFrom[W int32 | int64 | float64, N Number](s *Sum[N], b []byte) error {
	var n W
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	s.Set(N(n))
	return nil
}
