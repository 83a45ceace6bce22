package memory

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// An image is what a Store held at some time. It shares the sealed appends, which never change.
type image struct {
	runs   map[string]*run
	made   uint64
	graphs map[string][]byte
	bases  map[string]*base
}

// image returns what the store holds now.
func (s *Store) image() *image {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&image{s.runs, s.made, s.graphs, s.bases}).clone()
}

// clone copies what a Store changes in place.
func (i *image) clone() *image {
	c := &image{made: i.made, graphs: maps.Clone(i.graphs)}
	c.runs, c.bases = make(map[string]*run, len(i.runs)), make(map[string]*base, len(i.bases))
	for id, r := range i.runs {
		copied := *r
		copied.appends, copied.block = slices.Clip(r.appends), nil
		copied.posts = maps.Clone(r.posts)
		copied.snapshots = slices.Clone(r.snapshots)
		c.runs[id] = &copied
	}
	for digest, b := range i.bases {
		copied := *b
		c.bases[digest] = &copied
	}
	return c
}

// boot gives a new store what a machine finds when it is up again: nobody's leases, and no epoch
// but those under which something is stored.
func (s *Store) boot(i *image) {
	i = i.clone()
	s.runs, s.made, s.graphs, s.bases = i.runs, i.made, i.graphs, i.bases
	for id, r := range s.runs {
		r.info.Owner = ""
		if !r.exists() {
			delete(s.runs, id)
			continue
		}
		for _, last := range r.appends[max(0, len(r.appends)-1):] {
			if e, err := checkpoint.Unseal(last.data); err == nil {
				r.info.Epoch = e.Epoch
			}
		}
	}
}

// sealed returns a copy of the append that holds entry seq.
func (s *Store) sealed(id string, seq uint64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, at, err := s.appendOf(id, seq)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(r.appends[at].data), nil
}

// damage changes what is stored of an append. Images share the list of appends, so it is copied.
func (s *Store) damage(id string, seq uint64, sealed []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, at, err := s.appendOf(id, seq)
	if err != nil {
		return err
	}
	r.appends = slices.Clone(r.appends)
	if sealed == nil {
		r.appends = slices.Delete(r.appends, at, at+1)
		return nil
	}
	r.appends[at].data = sealed
	return nil
}

// halve stores half of the last append of a run. Who reads may have the list of appends, so it is
// copied.
func (s *Store) halve(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	r.appends = slices.Clone(r.appends)
	last := &r.appends[len(r.appends)-1]
	last.data = last.data[:len(last.data)/2]
}

// appendOf returns where the append stands that holds entry seq.
func (s *Store) appendOf(id string, seq uint64) (r *run, at int, err error) {
	if r, err = s.run(id); err != nil {
		return nil, 0, err
	}
	at = holding(r.appends, seq)
	if at == len(r.appends) {
		return nil, 0, fmt.Errorf("%w: entry %d of run %q", checkpoint.ErrNotFound, seq, id)
	}
	if a := r.appends[at]; seq < a.first || seq > r.info.Head.Seq || a.endsBefore(seq) {
		return nil, 0, fmt.Errorf("%w: entry %d of run %q", checkpoint.ErrNotFound, seq, id)
	}
	return r, at, nil
}

// endsBefore reports whether the append surely has no entry seq: it is the last one before an
// append that was removed.
func (e *envelope) endsBefore(seq uint64) bool {
	sealed, err := checkpoint.Unseal(e.data)
	return err == nil && sealed.First == e.first && sealed.Last() < seq
}
