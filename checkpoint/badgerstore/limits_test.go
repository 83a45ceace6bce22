package badgerstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// Without room on the device appends are refused, the store can be read, and when there is
// room again it goes on.
func TestFull(t *testing.T) {
	t.Parallel()
	o := small
	o.FreeSpace = 1 << 20
	s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	opened(t, s, err)
	var left atomic.Int64
	left.Store(1 << 30)
	s.FreeWith(func() (int64, error) { return left.Load(), nil })
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	left.Store(1<<20 - 1)
	big := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(12<<20))}}
	for name, err := range map[string]error{
		"Append of much": second(s.Append(t.Context(), l, head, big)), // asks again
		"Append":         second(s.Append(t.Context(), l, head, oneEntry)),
		"Post":           s.Post(t.Context(), "run-0", checkpoint.Post{ID: "post"}),
	} {
		if name != "Append" && !errors.Is(err, checkpoint.ErrFull) {
			t.Errorf("%s = %v, want ErrFull", name, err)
		}
	}
	if info, err := s.Stat(t.Context(), "run-0"); err != nil || info.Head.Seq == 0 {
		t.Errorf("Stat = %+v, %v", info, err)
	}
	left.Store(1 << 30)
	info, err := s.Stat(t.Context(), "run-0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), l, info.Head, oneEntry); err != nil {
		t.Errorf("Append = %v", err)
	}
	o.FreeSpace = 1 << 60
	if _, err := badgerstore.Open(t.Context(), t.TempDir(), o); !errors.Is(err, checkpoint.ErrFull) {
		t.Errorf("Open without room = %v, want ErrFull", err)
	}
}

// An Open that finds no room for a new store leaves nothing that it has made, and what was there as
// it was.
func TestFullBeforeTheStoreIsMade(t *testing.T) {
	t.Parallel()
	o := small
	o.FreeSpace = math.MaxInt64
	full := func(dir string) {
		t.Helper()
		_, err := badgerstore.Open(t.Context(), dir, o)
		if !errors.Is(err, checkpoint.ErrFull) || !strings.Contains(err.Error(), dir) ||
			!strings.Contains(err.Error(), "to open the store takes 9223372036854775807, of Options.FreeSpace") {
			t.Errorf("Open without room = %v, want ErrFull of %s, and how much it takes", err, dir)
		}
	}
	top := t.TempDir()
	full(filepath.Join(top, "a", "store"))
	full(top)
	if entries, err := os.ReadDir(top); err != nil || len(entries) > 0 {
		t.Errorf("Open has left %v, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(top, "text"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *checkpoint.ArgumentError // whatever room there is
	if _, err := badgerstore.Open(t.Context(), top, o); !errors.As(err, &refused) {
		t.Errorf("Open of what is no store = %v, want an ArgumentError", err)
	}
}

// What an earlier process has left to be removed, and there is no room to, stays and keeps no store
// from being opened: it is removed once there is room.
func TestSweepWithoutRoom(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Fatal(err)
	}
	mark, left := badgerstore.DeletedKey(s, 7), badgerstore.LogKey(7, 3)
	put(t, s, mark, badgerstore.Frame(mark, []byte("a run")))
	put(t, s, left, []byte("left behind"))
	for _, free := range []int64{0, 1 << 40} {
		s.FreeWith(func() (int64, error) { return free, nil })
		if err := s.SweepAll(t.Context()); err != nil {
			t.Errorf("with %d bytes free: %v", free, err)
		}
		for _, key := range [][]byte{mark, left} {
			if _, there := valuesOf(t, s)[string(key)]; there != (free == 0) {
				t.Errorf("with %d bytes free: the key %q is there: %t", free, key, there)
			}
		}
	}
	if err := forkstoreGrow(t.Context(), s, "run", 1); err != nil {
		t.Error(err)
	}
}

// However much Options.FreeSpace is, it has to be free beside what compactions need.
func TestFreeSpaceIsNotTooMuchToAdd(t *testing.T) {
	t.Parallel()
	of := closedStore(t) // with tables, which compactions need room for
	o := small
	o.FreeSpace = math.MaxInt64
	s, err := badgerstore.Open(t.Context(), of.dir, o)
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, checkpoint.ErrFull) || !strings.Contains(err.Error(), "lower Options.FreeSpace") {
		t.Errorf("Open = %v, want ErrFull and what to do", err)
	}
}

// Without room for what is in memory to become tables the store is not closed, for Badger would
// take the process with it: Close says so at once, and when there is room the store closes by
// itself.
func TestCloseWithoutRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	head, err := s.Append(t.Context(), acquire(t, s, 1)[0], checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	s.FreeWith(func() (int64, error) { return left.Load(), nil })
	for range 2 {
		if err := s.Close(); !errors.Is(err, checkpoint.ErrFull) {
			t.Errorf("Close = %v, want ErrFull", err)
		}
	}
	if _, err := badgerstore.Open(t.Context(), dir, small); !errors.Is(err, checkpoint.ErrLocked) || !strings.Contains(err.Error(), "has no room") {
		t.Errorf("Open of what could not be closed = %v, want ErrLocked, and that room may be missing", err)
	}
	left.Store(1 << 30)
	for s, err = badgerstore.Open(t.Context(), dir, small); errors.Is(err, checkpoint.ErrLocked); {
		s, err = badgerstore.Open(t.Context(), dir, small)
	}
	opened(t, s, err)
	if info, err := s.Stat(t.Context(), "run-0"); err != nil || info.Head != head {
		t.Errorf("Stat = %+v, %v, want the head %+v", info, err, head)
	}
}

// What is in memory needs its own room, and that alone, also where the name of the store's
// directory is a pattern that matches others, or nothing.
func TestRoomOfADirectoryNamedLikeAPattern(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	o := small
	o.FreeSpace = 1
	var left atomic.Int64
	left.Store(1 << 40)
	appends := make(map[*badgerstore.Store]func(bytes int) error)
	names := make(map[*badgerstore.Store]string)
	for _, name := range []string{"plain", "{x}", "[", "a[b]", "a?", "a*", `a\b`} {
		s, err := badgerstore.OpenUnsynced(t.Context(), filepath.Join(top, name), o)
		if err != nil && runtime.GOOS == "windows" { // where some of them are no names
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		names[s], appends[s] = name, appending(t, s, &left)
		if err := appends[s](2 << 20); err != nil {
			t.Fatal(err)
		}
	}
	for s, name := range names {
		left.Store(2 << 20)
		if err := appends[s](400 << 10); !errors.Is(err, checkpoint.ErrFull) {
			t.Errorf("%q: Append without room = %v, want ErrFull", name, err)
		}
		left.Store(4 << 20)
		if err := appends[s](1 << 10); err != nil {
			t.Errorf("%q: Append = %v", name, err)
		}
	}
	left.Store(3 << 19)
	for s, name := range names {
		if err := s.Close(); !errors.Is(err, checkpoint.ErrFull) {
			t.Errorf("%q: Close without room = %v, want ErrFull", name, err)
		}
	}
	left.Store(1 << 40)
	for _, name := range names { // each is open once the one before it has closed by itself
		again, err := badgerstore.OpenUnsynced(t.Context(), filepath.Join(top, name), o)
		for errors.Is(err, checkpoint.ErrLocked) {
			again, err = badgerstore.OpenUnsynced(t.Context(), filepath.Join(top, name), o)
		}
		opened(t, again, err)
	}
}

// appending returns a call that appends so many bytes to a run of its own, when so many are left on
// the device.
func appending(t *testing.T, s *badgerstore.Store, left *atomic.Int64) func(bytes int) error {
	l := acquire(t, s, 1)[0]
	var head checkpoint.Head
	return func(bytes int) error {
		s.FreeWith(func() (int64, error) { return left.Load(), nil }) // it is asked again
		entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(bytes))}}
		next, err := s.Append(t.Context(), l, head, entries)
		if err == nil {
			head = next
		}
		return err
	}
}

// An append that drains hundreds of messages is atomic whatever else is in it, and a message that
// many of its entries drain is one.
func TestAppendDrainsManyPosts(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	l := acquire(t, s, 1)[0]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	for name, posts := range map[string]int{"many": 500, "one": 1} {
		entries := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(500<<10))}}
		for i := range 7000 {
			id := fmt.Sprintf("%s-%d", strings.Repeat("p", 200), i%posts)
			if i < posts {
				if err := s.Post(t.Context(), l.Run, checkpoint.Post{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			if i < posts || posts == 1 {
				entries = append(entries, checkpoint.Entry{Kind: checkpoint.Noted, Post: id})
			}
		}
		if head, err = s.Append(t.Context(), l, head, entries); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if posts, err := s.Posts(t.Context(), l.Run); err != nil || len(posts) > 0 {
			t.Errorf("%s: %d messages are left, %v", name, len(posts), err)
		}
		read := 0
		for _, err := range s.Read(t.Context(), l.Run, 0, 0) {
			if read++; err != nil {
				t.Fatal(err)
			}
		}
		if read != int(head.Seq) {
			t.Errorf("%s: the log has %d entries, want %d", name, read, head.Seq)
		}
	}
}

// What is larger than the limits is ErrTooLarge and changes nothing.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	leases := acquire(t, s, 2)
	l, fresh := leases[0], leases[1]
	head, err := s.Append(t.Context(), l, checkpoint.Head{}, oneEntry)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", badgerstore.MaxAppend)
	for name, c := range map[string]struct {
		lease checkpoint.Lease
		after checkpoint.Head
		entry checkpoint.Entry
	}{
		"a delta": {l, head, checkpoint.Entry{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", text)}},
		"labels": {fresh, checkpoint.Head{}, checkpoint.Entry{
			Kind: checkpoint.Opened, Data: fmt.Appendf(nil, `{"labels":{"a":%q}}`, text[:1<<20]),
		}},
	} {
		_, err := s.Append(t.Context(), c.lease, c.after, []checkpoint.Entry{c.entry})
		if !errors.Is(err, checkpoint.ErrTooLarge) {
			t.Errorf("Append of %s = %v, want ErrTooLarge", name, err)
		}
	}
	post := checkpoint.Post{ID: "post", Kind: "answer", Data: fmt.Appendf(nil, "%q", text[:badgerstore.MaxAppend/2])}
	if err := s.Post(t.Context(), l.Run, post); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Errorf("Post of more than half an append = %v, want ErrTooLarge", err)
	}
	if posts, err := s.Posts(t.Context(), l.Run); err != nil || len(posts) > 0 {
		t.Errorf("Posts = %d of them, %v", len(posts), err)
	}
	many := make([]checkpoint.Entry, 20_000)
	for i := range many {
		many[i] = checkpoint.Entry{Kind: checkpoint.Answered, Post: fmt.Sprint(i)}
	}
	if _, err := s.Append(t.Context(), l, head, many); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Errorf("Append that drains too many posts = %v, want ErrTooLarge", err)
	}
	if _, err := s.Append(t.Context(), l, head, oneEntry); err != nil {
		t.Error(err)
	}
}

// A run whose labels are as long as they may be is trimmed, goes on and comes to rest as any other,
// however it was made.
func TestLongestLabelsComeToRest(t *testing.T) {
	t.Parallel()
	s := openUnsynced(t, t.TempDir())
	base := []byte("{}")
	opening := func(n int, origin *checkpoint.Origin) []checkpoint.Entry {
		data, err := json.Marshal(checkpoint.Opening{
			Graph: "graph", Digest: "digest", Labels: map[string]string{"a": strings.Repeat("x", n)}, Origin: origin,
		})
		if err != nil {
			t.Fatal(err)
		}
		return []checkpoint.Entry{{Kind: checkpoint.Opened, Data: data}}
	}
	lease := func(run string) checkpoint.Lease {
		l, err := s.Acquire(t.Context(), run, "owner")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, begin := range map[string]func(run string, n int) error{
		"Append": func(run string, n int) error {
			l := lease(run)
			return errors.Join(second(s.Append(t.Context(), l, checkpoint.Head{}, opening(n, nil))), s.Release(t.Context(), l))
		},
		"Fork": func(run string, n int) error {
			origin := &checkpoint.Origin{Run: "parent", Seq: 2, Base: checkpoint.BaseDigest(base)}
			return s.Fork(t.Context(), checkpoint.Fork{Base: base, Runs: []checkpoint.ForkedRun{{Run: run, Entries: opening(n, origin)}}})
		},
		"Restore": func(run string, n int) error {
			envelope, _, err := checkpoint.Seal(nil, checkpoint.Head{}, time.Now(), 1, opening(n, nil))
			if err != nil {
				t.Fatal(err)
			}
			l := lease(run)
			_, err = s.Restore(t.Context(), l, checkpoint.Archive{Envelopes: func(yield func([]byte, error) bool) { yield(envelope, nil) }})
			return errors.Join(err, s.Release(t.Context(), l))
		},
	} {
		longest, fits, most := "", 500_000, 530_000
		for most-fits > 1 {
			n := (fits + most) / 2
			run := fmt.Sprint(name, " ", n)
			switch err := begin(run, n); {
			case err == nil:
				longest, fits = run, n
			case errors.Is(err, checkpoint.ErrTooLarge):
				most = n
			default:
				t.Fatal(err)
			}
		}
		l := lease(longest)
		info, err := s.Stat(t.Context(), longest)
		if err != nil {
			t.Fatal(err)
		}
		head := info.Head
		for _, kind := range []checkpoint.Kind{checkpoint.Waiting, checkpoint.Answered, checkpoint.Completed, checkpoint.TurnBegun, checkpoint.Failed} {
			if head, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: kind}}); err != nil {
				t.Fatalf("%s: Append of an entry of kind %s = %v", name, kind, err)
			}
		}
		data, err := json.Marshal(checkpoint.Trimming{First: head.Seq, Base: checkpoint.BaseDigest(base)})
		if err != nil {
			t.Fatal(err)
		}
		if head, err = s.Trim(t.Context(), l, head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: data}, base); err != nil {
			t.Errorf("%s: Trim = %v", name, err)
		}
		if _, err = s.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Completed}}); err != nil {
			t.Errorf("%s: Append behind a Trim = %v", name, err)
		}
	}
}

// Many large appends wait for room in the queue, and small ones do not wait for them all.
func TestLargeAppendsShareGroups(t *testing.T) {
	t.Parallel()
	o := small
	o.Waiting = 1 << 20
	var most atomic.Int64
	o.Observe = func(g checkpoint.Group) { most.Store(max(most.Load(), int64(g.Bytes))) }
	s, err := badgerstore.Open(t.Context(), t.TempDir(), o)
	opened(t, s, err)
	big := []checkpoint.Entry{{Kind: checkpoint.Done, Delta: fmt.Appendf(nil, "%q", noise(4<<20))}}
	var all sync.WaitGroup
	for i, l := range acquire(t, s, 12) {
		all.Go(func() {
			var head checkpoint.Head
			entries := oneEntry
			if i < 4 {
				entries = big
			}
			for range 3 {
				var err error
				if head, err = s.Append(t.Context(), l, head, entries); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if most.Load() > 600<<10 {
		t.Errorf("a group had %d bytes", most.Load())
	}
}
