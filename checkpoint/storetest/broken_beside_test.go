package storetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A set is a set of texts, and of bytes by them.
type set struct {
	mu  sync.Mutex
	all map[string][]byte
}

func newSet() *set { return &set{all: make(map[string][]byte)} }

func (s *set) add(key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key] = value
}

func (s *set) get(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.all[key]
	return value, ok
}

func (s *set) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}

func (s *set) clone() *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &set{all: maps.Clone(s.all)}
}

// drainsFirst drains messages before it looks whether it may append.
type drainsFirst struct {
	sound
	gone *set
}

func (s *drainsFirst) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	for _, e := range entries {
		if e.Post != "" {
			s.gone.add(e.Post, nil)
		}
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

func (s *drainsFirst) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	return slices.DeleteFunc(all, func(p checkpoint.Post) bool {
		_, gone := s.gone.get(p.ID)
		return gone
	}), err
}

// lastPost is content with any message of the id.
type lastPost struct{ sound }

func (s lastPost) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if err := s.Faulty.Post(ctx, run, p); !errors.Is(err, checkpoint.ErrConflict) {
		return err
	}
	return nil
}

// dropsPosts drops the messages for which it has no room.
type dropsPosts struct{ sound }

func (s dropsPosts) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if err := s.Faulty.Post(ctx, run, p); !errors.Is(err, checkpoint.ErrFull) {
		return err
	}
	return nil
}

// postOnce refuses a message that it has.
type postOnce struct{ sound }

func (s postOnce) Post(ctx context.Context, run string, p checkpoint.Post) error {
	all, err := s.Posts(ctx, run)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(q checkpoint.Post) bool { return q.ID == p.ID }) {
		return checkpoint.ErrConflict
	}
	return s.Faulty.Post(ctx, run, p)
}

// collated has messages in the order of a language.
type collated struct{ sound }

func (s collated) Posts(ctx context.Context, run string) ([]checkpoint.Post, error) {
	all, err := s.Faulty.Posts(ctx, run)
	slices.SortFunc(all, func(a, b checkpoint.Post) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.ID), strings.ToLower(b.ID)), cmp.Compare(b.ID, a.ID))
	})
	return all, err
}

// lender hands out what it keeps.
type lender struct {
	sound
	graphs *set
}

func (s *lender) Graph(ctx context.Context, digest string) ([]byte, error) {
	if g, ok := s.graphs.get(digest); ok {
		return g, nil
	}
	g, err := s.Faulty.Graph(ctx, digest)
	if err == nil {
		s.graphs.add(digest, g)
	}
	return g, err
}

// newestSnapshot looks at no position.
type newestSnapshot struct{ sound }

func (s newestSnapshot) Snapshot(ctx context.Context, run string, _ uint64) (checkpoint.Snapshot, error) {
	return s.Faulty.Snapshot(ctx, run, 0)
}

// oneSnapshot keeps all rules, and no snapshot but the newest.
type oneSnapshot struct{ sound }

func (s oneSnapshot) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	snap, err := s.Faulty.Snapshot(ctx, run, 0)
	if err == nil && upTo > 0 && snap.Head.Seq > upTo {
		return checkpoint.Snapshot{}, checkpoint.ErrNotFound
	}
	return snap, err
}

// samePage begins a page with the run behind which it should begin.
type samePage struct{ sound }

func (s samePage) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Faulty.List(ctx, f)
	if err != nil || f.After == "" {
		return page, err
	}
	last, err := s.Stat(ctx, f.After)
	page = append([]checkpoint.Info{last}, page...)
	return page[:min(len(page), f.Page())], err
}

// byName lists runs by their ids.
type byName struct{ sound }

func (s byName) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Faulty.List(ctx, f)
	slices.SortFunc(page, func(a, b checkpoint.Info) int { return cmp.Compare(a.Run, b.Run) })
	return page, err
}

// lean leaves something out of its listings.
type lean struct {
	sound
	forget func(*checkpoint.Info)
}

func (s lean) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	page, err := s.Faulty.List(ctx, f)
	for i := range page {
		s.forget(&page[i])
	}
	return page, err
}

// lenient leaves out of a filter what can't be.
type lenient struct{ sound }

func (s lenient) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	f.Limit = max(f.Limit, 0)
	f.Status = slices.DeleteFunc(slices.Clone(f.Status), func(one checkpoint.Status) bool {
		return checkpoint.Filter{Status: []checkpoint.Status{one}}.Check() != nil
	})
	return s.Faulty.List(ctx, f)
}

// fine takes the times of a filter as they are given.
type fine struct{ sound }

func (s fine) List(ctx context.Context, f checkpoint.Filter) ([]checkpoint.Info, error) {
	most := f.Page()
	since, before := f.Since, f.Before
	f.Since, f.Before, f.Limit = time.Time{}, time.Time{}, math.MaxInt
	page, err := s.Faulty.List(ctx, f)
	page = slices.DeleteFunc(page, func(i checkpoint.Info) bool {
		return !since.IsZero() && i.Created.Before(since) || !before.IsZero() && !i.Created.Before(before)
	})
	return page[:min(len(page), most)], err
}

// deaf tells followers nothing of deletions.
type deaf struct{ sound }

func (s deaf) Follow(string) (<-chan struct{}, func()) { return make(chan struct{}), func() {} }

// open can't be closed.
type open struct{ sound }

func (open) Close() error { return nil }

// renamed keeps a run under another id than it is given.
type renamed struct {
	sound
	name func(string) string
}

func lower(id string) string { return strings.ToLower(id) }

func cut(id string) string { return id[:min(len(id), 254)] }

func (s renamed) Acquire(ctx context.Context, run, owner string) (checkpoint.Lease, error) {
	return s.Faulty.Acquire(ctx, s.name(run), owner)
}

func (s renamed) Read(ctx context.Context, run string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return s.Faulty.Read(ctx, s.name(run), from, to)
}

func (s renamed) Stat(ctx context.Context, run string) (checkpoint.Info, error) {
	return s.Faulty.Stat(ctx, s.name(run))
}

func (s renamed) Post(ctx context.Context, run string, p checkpoint.Post) error {
	return s.Faulty.Post(ctx, s.name(run), p)
}

func (s renamed) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	info, err := s.Faulty.Stat(ctx, l.Run)
	if err == nil && after.Seq == 0 {
		after = info.Head // as one who finds a row where he inserts one
	}
	return s.Faulty.Append(ctx, l, after, entries)
}
