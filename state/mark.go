package state

// An op says what a draft did to a cell, or what a delta does.
type op uint8

const (
	opNone   op = iota // nothing, but an attempt may have failed
	opSet              // Value, Whole, Sum, Fold
	opClear            // Value, Whole
	opAdd              // Sum
	opMerge            // Fold: an operand
	opMerged           // Fold: replaces the operand that an image has recorded
	opList             // see listWrites
	opKeys             // see keyedWrites
)

// A mark says that something is pending in a cell. Marks are immutable, so a struct copy
// of a cell is another cell.
type mark struct {
	op  op
	err error // the first value that could not be stored
}

var marks = [...]mark{opSet: {op: opSet}, opAdd: {op: opAdd}, opMerge: {op: opMerge}}

// does is the op of a mark; nil is a clean cell.
func (m *mark) does() op {
	if m == nil {
		return opNone
	}
	return m.op
}

// with returns the mark of m after o.
func (m *mark) with(o op) *mark {
	if m != nil && m.err != nil {
		return &mark{o, m.err}
	}
	return &marks[o]
}

// failed returns the mark of m after a write that failed with err.
func (m *mark) failed(err error) *mark {
	if m != nil && m.err != nil {
		return m
	}
	return &mark{m.does(), err}
}
