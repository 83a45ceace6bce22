package state

import "strconv"

// AppendJSON appends d as an object by cell: what a log holds and [Schema.ParseDelta]
// reads. Equal deltas give equal bytes.
func (d Delta) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range d.n {
		if i > 0 {
			dst = append(dst, ',')
		}
		p := d.part(i)
		c := &d.s.cells[p.cell]
		dst = append(dst, c.label...)
		dst = append(dst, '{')
		switch p.op {
		case opList:
			dst = p.list().appendJSON(dst)
		case opKeys:
			dst = p.keys().appendJSON(dst, c.set)
		default:
			dst = p.appendJSON(dst, c)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

var opLabels = [...]string{
	opSet: `"set":`, opClear: `"clear":true`, opAdd: `"add":`, opMerge: `"merge":`, opMerged: `"merged":`,
}

func (p *part) appendJSON(dst []byte, c *cell) []byte {
	dst = append(dst, opLabels[p.op]...)
	switch {
	case p.op == opClear:
		return dst
	case c.core == coreSum:
		return c.num.append(dst, p.num)
	}
	return p.box().append(dst)
}

// comma appends a comma unless dst ends where an object begins.
func comma(dst []byte) []byte {
	if dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

func (w *listWrites) appendJSON(dst []byte) []byte {
	if w.replaced {
		return w.tail.appendJSON(append(dst, `"replace":`...))
	}
	if w.cut {
		dst = strconv.AppendInt(append(dst, `"truncate":`...), int64(w.keep), 10)
	}
	if w.at != nil {
		dst = append(comma(dst), `"at":{`...)
		w.at.each(func(i int, b *box) bool {
			dst = strconv.AppendInt(append(comma(dst), '"'), int64(i), 10)
			dst = b.append(append(dst, `":`...))
			return true
		})
		dst = append(dst, '}')
	}
	if w.tail.n > 0 {
		dst = w.tail.appendJSON(append(comma(dst), `"append":`...))
	}
	return dst
}

// size is the length of appendJSON's output.
func (w *listWrites) size() int {
	if w.replaced {
		return len(`"replace":`) + w.tail.size()
	}
	size, parts := 0, 0
	if w.cut {
		size, parts = len(`"truncate":`)+num64.size(uint64(w.keep)), 1
	}
	if w.at != nil {
		size, parts = size+len(`"at":{}`)+w.at.len()-1, parts+1
		w.at.each(func(i int, b *box) bool {
			size += num64.size(uint64(i)) + len(`"":`) + b.size()
			return true
		})
	}
	if w.tail.n > 0 {
		size, parts = size+len(`"append":`)+w.tail.size(), parts+1
	}
	return size + max(parts-1, 0)
}

// puts and dels yield what was written and what was deleted.
func (w *keyedWrites) puts(yield func(string, *box) bool) {
	w.keys.each(func(k string, v *box) bool { return v == nil || yield(k, v) })
}

func (w *keyedWrites) dels(yield func(string, *box) bool) {
	w.keys.each(func(k string, v *box) bool { return v != nil || yield(k, v) })
}

// count returns how many keys were written and deleted.
func (w *keyedWrites) count() (puts, dels int) {
	w.puts(func(string, *box) bool { puts++; return true })
	return puts, w.keys.len() - puts
}

func (w *keyedWrites) appendJSON(dst []byte, set bool) []byte {
	put, del := `"put":`, `"delete":[`
	if set {
		put, del = `"add":`, `"remove":[`
	}
	if w.clear {
		dst = append(dst, `"clear":true`...)
	}
	puts, dels := w.count()
	if puts > 0 {
		dst = appendMembers(append(comma(dst), put...), set, w.puts)
	}
	if dels == 0 {
		return dst
	}
	dst = append(comma(dst), del...)
	first := true
	w.dels(func(k string, _ *box) bool {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if set {
			dst = append(dst, k...)
		} else {
			dst = appendString(dst, k)
		}
		return true
	})
	return append(dst, ']')
}

// size is the length of appendJSON's output.
func (w *keyedWrites) size(set bool) int {
	put, del := len(`"put":{}`), len(`"delete":[]`)
	if set {
		put, del = len(`"add":[]`), len(`"remove":[]`)
	}
	size, parts := 0, 0
	if w.clear {
		size, parts = len(`"clear":true`), 1
	}
	puts, dels := w.count()
	if puts > 0 {
		size, parts = size+put+puts-1, parts+1
	}
	if dels > 0 {
		size, parts = size+del+dels-1, parts+1
	}
	w.keys.each(func(k string, v *box) bool {
		switch {
		case v != nil:
			size += memberSize(k, v, set)
		case set:
			size += len(k)
		default:
			size += stringSize(k)
		}
		return true
	})
	return size + max(parts-1, 0)
}

// Size is the length of what AppendJSON appends.
func (d *Delta) Size() int {
	size := 2 + max(d.n-1, 0)
	for i := range d.n {
		p := d.part(i)
		c := &d.s.cells[p.cell]
		size += len(c.label) + 2
		switch {
		case p.op == opList:
			size += p.list().size()
		case p.op == opKeys:
			size += p.keys().size(c.set)
		case c.core == coreSum:
			size += len(opLabels[p.op]) + c.num.size(p.num)
		case p.op == opClear:
			size += len(opLabels[p.op])
		default:
			size += len(opLabels[p.op]) + p.box().size()
		}
	}
	return size
}

// MaxValue returns the size of the largest single value in d, and its cell.
func (d *Delta) MaxValue() (cell string, bytes int) {
	for i := range d.n {
		p := d.part(i)
		c := &d.s.cells[p.cell]
		if n := p.largest(c); n > bytes {
			cell, bytes = c.Name, n
		}
	}
	return cell, bytes
}

func (p *part) largest(c *cell) int {
	n := 0
	switch {
	case p.op == opList:
		see := func(_ int, b *box) bool { n = max(n, b.size()); return true }
		p.list().at.each(see)
		p.list().tail.each(0, p.list().tail.n, see)
	case p.op == opKeys:
		p.keys().puts(func(k string, b *box) bool { n = max(n, memberSize(k, b, c.set)); return true })
	case c.core == coreSum:
		n = c.num.size(p.num)
	case p.op != opClear:
		n = p.box().size()
	}
	return n
}
