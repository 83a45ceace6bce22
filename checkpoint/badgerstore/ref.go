package badgerstore

import (
	"errors"
	"slices"
)

// A ref is a change of the number of runs that refer to a base.
type ref struct {
	hold   *hold // that it belongs to
	base   *base
	by     int
	makes  bool // the request writes the base, which is not there before
	heals  bool // the request writes the base over one that can't be read
	large  bool // in these pieces:
	pieces attempt
	undone int // as many of the base's as there were when it was found to be kept

	was shelf // of the base, before this was admitted
}

// writes reports whether the request writes the base.
func (r *ref) writes() bool { return r.makes || r.heals }

// errBaseMoved: a base has come or gone since the request was made. The call makes it anew.
var errBaseMoved = errors.New("badgerstore: a base has come or gone")

// counts changes what q changes of the bases' counts, and adds the keys that say so. It returns
// errBaseMoved, and changes nothing, if a base is not as q takes it to be, and its damage if q
// gives up a base of which nobody knows how it is kept. The store's mutex is held.
func (q *request) counts() error {
	for _, r := range q.refs {
		if r.by > 0 && (r.makes != (r.base.count == 0) || !r.writes() && r.undone != r.base.undone) {
			return errBaseMoved
		}
		if r.by < 0 && r.base.damage != nil { // what would be left of it nobody knows
			return r.base.damage
		}
	}
	q.later = 0 // they are among the others now
	for i := range q.refs {
		r := &q.refs[i]
		b := r.base
		b.inFlight++
		r.was, b.shelf = b.shelf, r.changed(b.shelf)
		if r.writes() {
			b.writing++
		}
		if r.heals || b.count == 0 {
			q.abandon(r)
		}
		key := nameKey(countKey, b.digest)
		if b.count > 0 {
			q.set(key, frameNumber(key, b.count))
			continue
		}
		q.delete(key)
		q.delete(nameKey(r.hold.s.kinds.base, b.digest))
	}
	return nil
}

// changed returns what r makes of the shelf of its base.
func (r *ref) changed(is shelf) shelf {
	if r.by < 0 && is.count <= uint64(-r.by) { // a damaged store may count too few
		return shelf{}
	}
	is.count += uint64(r.by)
	if r.writes() {
		is.large, is.pieces, is.damage = r.large, r.pieces, nil
	}
	return is
}

// abandon adds the mark of the pieces that the base had before r, if it was in any.
func (q *request) abandon(r *ref) {
	if r.was.large {
		mark := piecesKeyOf(r.base.digest, r.was.pieces)
		q.set(mark, frame(mark))
		r.hold.gone = append(r.hold.gone, mark)
	}
}

// counted ends what counts began, of the last request first. The store's mutex is held.
func (q *request) counted(durable bool) {
	for i := range slices.Backward(q.refs) { // each puts back what it found
		r := &q.refs[i]
		b := r.base
		b.inFlight--
		if r.writes() {
			b.writing--
		}
		if durable {
			continue
		}
		b.shelf = r.was
		if r.writes() {
			b.undone++
		}
	}
}
