package state

// A Slab is memory for drafts, taken from the allocator several at a time. No draft gets memory
// that another one had; drafts of one piece are freed together. The zero Slab is empty. It belongs
// to one goroutine, its drafts to whoever gets them. For dispatchers.
type Slab struct {
	schema *Schema
	first  addr
	taken  uintptr // bytes behind first, of room: a place that moves along is a write more for a collector to see
	room   uintptr
	// Most is how many drafts have memory taken for them at once; 0 means one. Large ones are
	// fewer.
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

// Slabs are memory for what [Schema.ParseDeltaIn] gives out, taken from the allocator several at a
// time and not used again: what is of one piece is freed together. The zero Slabs are empty, and
// belong to one goroutine. For dispatchers.
type Slabs struct {
	boxes []box
	most  int // boxes in the last piece
	lists []parsedList
	parts []part
}

// slabItems is how many of each are taken at once.
const slabItems = 16

// sharing is the length of the longest JSON that gets memory which others have a part of: a piece
// in which a single value is in use holds on to the JSON of all of them, 64 KiB.
const sharing = 4 << 10

// A parsedList is what most deltas do to a list: they append one element.
type parsedList struct {
	listWrites
	last chunk
	room [1]*box
}
