package badgerstore

import "context"

// What a piece of something large may have before it is written.
const (
	partBytes = 128 << 10
	partKeys  = 256
)

// A packer writes many keys in pieces that share the transactions of others.
type packer struct {
	s     *Store
	fresh func() *request // a request that keys are added to
	part  *request        // keys that are not yet written; nil if there are none
}

// write submits what has been gathered, which is something.
func (p *packer) write(ctx context.Context) error {
	q := p.part
	p.part = nil
	return p.s.submitPiece(ctx, q)
}

// room returns the request that a value of that size can join, having written the one before if
// need be.
func (p *packer) room(ctx context.Context, size int) (*request, error) {
	if q := p.part; q != nil && (q.bytes+size > partBytes || q.keys() >= partKeys) {
		if err := p.write(ctx); err != nil {
			return nil, err
		}
	}
	if p.part == nil {
		p.part = p.fresh()
	}
	return p.part, nil
}

func (p *packer) set(ctx context.Context, key, value []byte) error {
	q, err := p.room(ctx, len(value))
	if err == nil {
		q.set(key, value)
	}
	return err
}

// add adds data that is packed. The data of a bare append is copied.
func (p *packer) add(ctx context.Context, x parcel) error {
	if x.bare() {
		x.data = append([]byte(nil), x.data...)
	}
	q, err := p.room(ctx, len(x.data))
	if err != nil {
		return err
	}
	return p.s.putParcel(ctx, q, x)
}

// blob packs data and adds it.
func (p *packer) blob(ctx context.Context, at place, data []byte) error {
	x, err := p.s.pack(at, data)
	if err != nil {
		return err
	}
	return p.add(ctx, x)
}

// numbering returns a request that sets the number of the next run, whatever else it does: it may
// have nothing but keys to remove.
func numbering() *request {
	q := newRequest()
	q.numbers = true
	return q
}

// remover returns a function that removes keys.
func (s *Store) remover(ctx context.Context) func(keys [][]byte) error {
	return func(keys [][]byte) error {
		q := numbering()
		for _, key := range keys {
			q.delete(key)
		}
		return s.submitBulk(ctx, q)
	}
}
