package state

// A Slab is memory for drafts, taken from the allocator several at a time. No draft gets memory that
// another one had; drafts of one piece are freed together. The zero Slab is empty. It belongs to one
// goroutine, its drafts to whoever gets them. For dispatchers.
type Slab struct {
	schema *Schema
	first  addr
	taken  uintptr // bytes behind first, of room: a place that moves along is a write more for a collector to see
	room   uintptr
	// Most is how many drafts have memory taken for them at once; 0 means one. Large ones are fewer.
	Most int
}

// slabBytes is what is taken at once at most, unless one draft is larger.
const slabBytes = 16 << 10

// Draft returns what i.Draft would return.
func (l *Slab) Draft(i Image) Image {
	if l.taken == l.room || l.schema != i.s {
		l.refill(i.s)
	}
	d := Image{after(l.first, l.taken), i.s}
	l.taken += i.s.size
	i.s.copy(d.p, i.p)
	d.clean()
	return d
}

func (l *Slab) refill(s *Schema) {
	l.schema = s
	first, drafts := s.block(max(1, min(l.Most, slabBytes/max(int(s.size), 1))))
	l.first, l.taken, l.room = first, 0, uintptr(drafts)*s.size
}
