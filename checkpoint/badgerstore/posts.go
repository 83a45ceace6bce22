package badgerstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// Post implements [checkpoint.Store].
func (s *Store) Post(ctx context.Context, id string, p checkpoint.Post) error {
	if err := p.Check(); err != nil {
		return err
	}
	r, err := s.pin(ctx, id)
	if err != nil {
		return err
	}
	defer s.leave(r)
	// One at a time, for each looks whether the one before it has written its id.
	if err := s.beginTurn(ctx, &r.posting); err != nil {
		return err
	}
	defer s.endTurn(&r.posting)
	key, num, err := s.postKey(ctx, r, &p)
	if key == nil || err != nil {
		return err
	}
	q := newRequest()
	q.rule, q.run, q.num, q.post = alive, r, num, key
	data, err := encodePost(id, p)
	if err != nil {
		return err
	}
	if err := s.putBlob(ctx, q, place{run: id, key: key}, data); err != nil {
		return err
	}
	return s.submit(ctx, q) // the committer tells those who watch
}

// claimed reports whether one of entries drains what nobody has posted.
func claimed(entries []checkpoint.Entry) bool {
	return slices.ContainsFunc(entries, func(e checkpoint.Entry) bool { return e.Claims })
}

// unposted returns ErrConflict if a message waits under an id that an entry claims. Who calls it
// has the turn.
func (s *Store) unposted(ctx context.Context, id string, entries []checkpoint.Entry) error {
	v, f, err := s.look(ctx, id)
	if err != nil {
		return err
	}
	defer v.close()
	for i := range entries {
		e := &entries[i]
		if !e.Claims || checkpoint.CheckPostID(e.Post) != nil { // none can have that id
			continue
		}
		value, err := v.get(append(runKey(postKey, f.num), e.Post...))
		if err != nil {
			return err
		}
		if value != nil {
			return checkpoint.Claimed(id, e.Post)
		}
	}
	return nil
}

// postKey returns the key to write p under, or nil if the run has that message already, and the
// number of the run. It says in p when that is posted. Who calls it has the turn.
func (s *Store) postKey(ctx context.Context, r *run, p *checkpoint.Post) ([]byte, uint64, error) {
	id := r.id
	v, f, err := s.look(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	defer v.close()
	key := append(runKey(postKey, f.num), p.ID...)
	value, err := v.get(key)
	if err != nil {
		return nil, 0, err
	}
	if value == nil {
		p.At = s.behind(v, r, f.num)
		return key, f.num, nil
	}
	old, err := v.post(id, key, value)
	if err != nil {
		return nil, 0, checkpoint.Corrupt(id, 0, err)
	}
	if !old.Says(*p) {
		return nil, 0, fmt.Errorf("%w: run %q: post %q says something else",
			checkpoint.ErrConflict, id, p.ID)
	}
	return nil, 0, nil
}

// behind is the time, or if the run has a message of that or of a later one, as from before a clock
// was set back, the instant behind that. It reads the messages once, as long as the run is in
// memory, and again where some were drained while the last was later than the clock.
func (s *Store) behind(v *view, r *run, num uint64) time.Time {
	at := s.board.Now()
	s.mu.Lock()
	last := r.posted
	s.mu.Unlock()
	if last.IsZero() {
		last = v.lastPosted(r.id, num)
	}
	if !at.After(last) {
		at = last.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.posted = at
	return at
}

// lastPosted returns when the newest message of the run was posted. One that can't be read is no
// reason to refuse another, and counts for nothing.
func (v *view) lastPosted(id string, num uint64) (last time.Time) {
	it, err := v.iterator(runKey(postKey, num), false)
	if err != nil {
		return last
	}
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		_ = it.Item().Value(func(value []byte) error {
			p, err := v.post(id, it.Item().Key(), value)
			if err == nil && p.At.After(last) {
				last = p.At
			}
			return err
		})
	}
	return last
}

// Posts implements [checkpoint.Store].
func (s *Store) Posts(ctx context.Context, id string) ([]checkpoint.Post, error) {
	v, f, err := s.look(ctx, id)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if !f.inbox.known() {
		keys, posts, err := v.posts(id, f.num)
		if err == nil {
			s.remember(f, keys)
		}
		return posts, err
	}
	var posts []checkpoint.Post
	for _, key := range f.inbox.keys {
		value, err := v.get([]byte(key))
		if err != nil {
			return nil, err
		}
		if value == nil {
			return nil, checkpoint.Corrupt(id, 0, checkpoint.Damage("a message is missing"))
		}
		p, err := v.post(id, []byte(key), value)
		if err != nil {
			return nil, checkpoint.Corrupt(id, 0, err)
		}
		posts = append(posts, p)
	}
	return posts, nil
}

// posts looks for the messages of a run, and returns their keys too.
func (v *view) posts(id string, num uint64) (keys []string, posts []checkpoint.Post, err error) {
	it, err := v.iterator(runKey(postKey, num), false)
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().Key()
		err := it.Item().Value(func(value []byte) error {
			p, err := v.post(id, key, value)
			keys, posts = append(keys, string(key)), append(posts, p)
			return err
		})
		if err != nil {
			return nil, nil, checkpoint.Corrupt(id, 0, err)
		}
	}
	return keys, posts, nil
}

// postMost is the largest post: it has to fit into the append that drains it, beside others.
const postMost = MaxAppend / 2

// encodePost returns the data of a post of that run.
func encodePost(run string, p checkpoint.Post) ([]byte, error) {
	if n := len(p.Kind) + len(p.Data); n > postMost {
		return nil, fmt.Errorf("%w: run %q: post %q has %d bytes, the limit is %d",
			checkpoint.ErrTooLarge, run, p.ID, n, postMost)
	}
	var w writer
	w.string(p.ID)
	w.string(p.Kind)
	w.uint(uint64(p.At.Unix()))
	w.uint(uint64(p.At.Nanosecond()))
	return append(w.b, p.Data...), nil
}

// post reads what encodePost wrote from a blob.
func (v *view) post(run string, key, value []byte) (checkpoint.Post, error) {
	_, data, err := v.blob(run, key, value, 0)
	if err != nil {
		return checkpoint.Post{}, err
	}
	r := reader{b: data}
	p := checkpoint.Post{ID: r.string(), Kind: r.string()}
	p.At = time.Unix(int64(r.uint()), int64(r.uint())).UTC()
	if r.bad {
		return checkpoint.Post{}, checkpoint.Damage("a post can't be read")
	}
	if len(r.b) > 0 {
		p.Data = json.RawMessage(slices.Clone(r.b))
	}
	return p, nil
}
