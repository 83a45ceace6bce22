package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// failing makes the n-th write fail.
func failing(n int, fault memory.Fault) func(context.Context, memory.Write) memory.Fault {
	return func(_ context.Context, w memory.Write) memory.Fault {
		if w.N == n {
			return fault
		}
		return memory.None
	}
}

// noted is an entry that says something.
func noted(text string) []checkpoint.Entry {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return []checkpoint.Entry{{Kind: checkpoint.Noted, Data: data}}
}

// A log is a run of a store with appends of one entry, each of which says its place.
type log struct {
	t     *testing.T
	s     *memory.Faulty
	lease checkpoint.Lease
	head  checkpoint.Head
}

func begin(t *testing.T, s *memory.Faulty) *log {
	t.Helper()
	lease, err := s.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	return &log{t: t, s: s, lease: lease}
}

func (l *log) add() error {
	head, err := l.s.Append(l.t.Context(), l.lease, l.head, noted(fmt.Sprint(l.head.Seq+1)))
	if err == nil {
		l.head = head
	}
	return err
}

func (l *log) want(n int) {
	l.t.Helper()
	for range n {
		if err := l.add(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// entries reads the run in a store.
func entries(t *testing.T, s *memory.Faulty) (n int, err error) {
	t.Helper()
	for _, err := range s.Read(t.Context(), "run", 1, 0) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// What a synced store has acknowledged survives; an unsynced one loses as many of its last writes
// as it is told to, and never one before them.
func TestFaultyLosesTheTail(t *testing.T) {
	for _, c := range []struct {
		unsynced             bool
		synced, lose, remain int
	}{
		{false, 0, 99, 10},
		{true, 0, 0, 10}, // the death of the process alone
		{true, 0, 3, 7},
		{true, 6, 3, 7},
		{true, 8, 99, 8}, // what was synced stays
		{true, 1, 99, 1},
	} {
		s := &memory.Faulty{Unsynced: c.unsynced}
		l := begin(t, s)
		l.want(c.synced)
		s.Sync()
		l.want(10 - c.synced)
		next := s.Crash(c.lose)
		if n, err := entries(t, next); n != c.remain || err != nil {
			t.Errorf("%+v: %d entries are left, %v", c, n, err)
		}
		if info, err := next.Stat(t.Context(), "run"); err != nil || info.Owner != "" || int(info.Head.Seq) != c.remain {
			t.Errorf("%+v: Stat = %+v, %v", c, info, err)
		}
		if err := l.add(); !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("%+v: Append to the dead store = %v, want ErrClosed", c, err)
		}
	}
}

// One store can crash many times, and is each time what it was when it died.
func TestFaultyCrashesInEveryWay(t *testing.T) {
	s := &memory.Faulty{Unsynced: true}
	l := begin(t, s)
	l.want(5)
	all := make(map[int]*memory.Faulty)
	for lose := 5; lose >= 0; lose-- {
		next := s.Crash(lose)
		if lose == 5 {
			if _, err := next.Stat(t.Context(), "run"); !errors.Is(err, checkpoint.ErrNotFound) {
				t.Errorf("all is lost, and Stat = %v", err)
			}
			continue
		}
		if n, err := entries(t, next); n != 5-lose || err != nil {
			t.Errorf("%d lost: %d entries are left, %v", lose, n, err)
		}
		again := &log{t: t, s: next, head: mustStat(t, next).Head}
		lease, err := next.Acquire(t.Context(), "run", "heir")
		if err != nil {
			t.Fatal(err)
		}
		again.lease = lease
		again.want(2)
		all[lose] = next
	}
	for lose, next := range all { // what one does then, no other sees
		if n, err := entries(t, next); n != 5-lose+2 || err != nil {
			t.Errorf("%d lost, and two appended: %d entries, %v", lose, n, err)
		}
	}
}

// Whatever is written is lost in the order of writing, the last first: a crash finds what there was
// before the first of the writes that it lost.
func TestFaultyLosesWhatIsBesideTheLog(t *testing.T) {
	s := &memory.Faulty{Unsynced: true}
	l := begin(t, s)
	fork := func(run string) error {
		base := []byte("{}")
		opening := fmt.Appendf(nil, `{"origin":{"run":"parent","seq":1,"base":%q}}`, checkpoint.BaseDigest(base))
		return s.Fork(t.Context(), checkpoint.Fork{Base: base, Runs: []checkpoint.ForkedRun{
			{Run: run, Entries: []checkpoint.Entry{{Kind: checkpoint.Opened, Data: opening}}},
		}})
	}
	put := 0
	snapshot := func() error {
		put++
		return s.PutSnapshot(t.Context(), l.lease, checkpoint.Snapshot{Head: l.head, Data: fmt.Append(nil, put)})
	}
	post := func(id string) error { return s.Post(t.Context(), "run", checkpoint.Post{ID: id}) }
	var stood []string // before each write
	for _, write := range []func() error{
		l.add, func() error { return post("a") }, func() error { return post("b") }, snapshot, l.add, snapshot, snapshot, l.add, snapshot,
		func() error { return fork("first") }, func() error { return fork("second") },
		func() error { return s.PutGraph(t.Context(), "digest", []byte("{}")) },
		func() error { return s.Delete(t.Context(), "second") }, func() error { return s.Delete(t.Context(), "first") },
	} {
		stood = append(stood, tell(t, s))
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for lose := 1; lose <= len(stood); lose++ {
		next := s.Crash(lose)
		if got, want := tell(t, next), stood[len(stood)-lose]; got != want {
			t.Errorf("%d writes are lost:\n%s\nwant\n%s", lose, got, want)
		}
		for _, run := range []string{"first", "second"} {
			if err := next.Delete(t.Context(), run); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
				t.Error(err)
			}
		}
		if n := next.Bases(); n != 0 {
			t.Errorf("%d writes are lost, and %d bases outlive the forks", lose, n)
		}
	}
}

// tell says what a store has.
func tell(t *testing.T, s *memory.Faulty) string {
	t.Helper()
	page, err := s.List(t.Context(), checkpoint.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(s.Bases(), " bases")
	for _, info := range page {
		posts, err := s.Posts(t.Context(), info.Run)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("\n%s at %d:", info.Run, info.Head.Seq)
		for _, p := range posts {
			text += " " + p.ID
		}
		snap, err := s.Snapshot(t.Context(), info.Run, 0)
		text += fmt.Sprintf(" snapshot %s of %d, %v", snap.Data, snap.Head.Seq, err)
		for _, digest := range info.Bases() {
			_, err := s.Base(t.Context(), info.Run, digest)
			text += fmt.Sprint(" base ", err)
		}
	}
	_, err = s.Graph(t.Context(), "digest")
	return text + fmt.Sprint("\ngraph ", err == nil)
}

func mustStat(t *testing.T, s *memory.Faulty) checkpoint.Info {
	t.Helper()
	info, err := s.Stat(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A store that was closed in good order has all that was written.
func TestFaultyCloses(t *testing.T) {
	s := &memory.Faulty{Unsynced: true}
	l := begin(t, s)
	l.want(5)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := l.add(); !errors.Is(err, checkpoint.ErrClosed) {
		t.Errorf("Append to the closed store = %v, want ErrClosed", err)
	}
	if n, err := entries(t, s.Crash(99)); n != 5 || err != nil {
		t.Errorf("%d entries are left, %v, want 5", n, err)
	}
}

// What comes late, when the machine has died, changes nothing of what is found.
func TestFaultyStaysAsItDied(t *testing.T) {
	s := &memory.Faulty{Unsynced: true}
	s.Fail = func(_ context.Context, w memory.Write) memory.Fault {
		if w.N < 6 {
			return memory.None
		}
		s.Crash(0)
		s.Sync()
		return memory.Torn
	}
	l := begin(t, s)
	l.want(5)
	if err := l.add(); !errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Errorf("Append that tears = %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := entries(t, s.Crash(3)); n != 2 || err != nil {
		t.Errorf("%d entries are left, %v, want 2", n, err)
	}
}

// Each fault says what it says, and leaves what it leaves: in the store that lives on, after the
// death of the process, and after that of the machine.
func TestFaultyFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault             memory.Fault
		want              error
		live, dead, power int // entries that are left of three; -1: damaged or closed
	}{
		"full":     {memory.Full, checkpoint.ErrFull, 2, 2, 2},
		"vanished": {memory.Vanished, checkpoint.ErrCommitUnknown, 2, 2, 2},
		"applied":  {memory.Applied, checkpoint.ErrCommitUnknown, 3, 3, 2},
		"torn":     {memory.Torn, checkpoint.ErrCommitUnknown, -1, -1, -1},
	} {
		s := &memory.Faulty{Fail: failing(3, c.fault)}
		l := begin(t, s)
		l.want(2)
		if err := l.add(); !errors.Is(err, c.want) {
			t.Errorf("%s: Append = %v, want %v", name, err, c.want)
		}
		live, err := entries(t, s)
		if c.live < 0 && !errors.Is(err, checkpoint.ErrClosed) || c.live >= 0 && (err != nil || live != c.live) {
			t.Errorf("%s: %d entries, %v", name, live, err)
		}
		for lose, want := range []int{c.dead, c.power} {
			n, err := entries(t, s.Crash(lose))
			if want < 0 && !errors.Is(err, checkpoint.ErrCorrupt) || want >= 0 && (err != nil || n != want) {
				t.Errorf("%s: after a crash that loses %d: %d entries, %v", name, lose, n, err)
			}
		}
	}
}

// A write whose outcome nobody knows is durable with the next one that is acknowledged.
func TestFaultyAppliedBecomesDurable(t *testing.T) {
	s := &memory.Faulty{Fail: failing(2, memory.Applied)}
	l := begin(t, s)
	l.want(1)
	if err := l.add(); !errors.Is(err, checkpoint.ErrCommitUnknown) {
		t.Fatalf("Append = %v", err)
	}
	if s.Unsafe() != 1 {
		t.Errorf("%d writes are unsafe, want 1", s.Unsafe())
	}
	l.head = mustStat(t, s).Head
	l.want(1)
	if n, err := entries(t, s.Crash(s.Unsafe())); n != 3 || err != nil {
		t.Errorf("%d entries are left, %v, want 3", n, err)
	}
}

// A write hangs until its context ends, or the machine dies, and is not made. A slow one is made.
func TestFaultyHangsAndIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memory.Faulty{Fail: func(_ context.Context, w memory.Write) memory.Fault {
			if w.Method == "Post" {
				time.Sleep(time.Minute)
				return memory.None
			}
			if w.N > 1 {
				return memory.Hang
			}
			return memory.None
		}}
		l := begin(t, s)
		l.want(1)
		start := time.Now()
		if err := s.Post(t.Context(), "run", checkpoint.Post{ID: "post"}); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Post = %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := s.Append(ctx, l.lease, l.head, noted("x"))
		if !errors.Is(err, checkpoint.ErrCommitUnknown) || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("Append = %v after %v", err, time.Since(start))
		}
		ended := make(chan error)
		go func() { ended <- l.add() }() // ends with the store
		synctest.Wait()
		next := s.Crash(0)
		if err := <-ended; !errors.Is(err, checkpoint.ErrCommitUnknown) {
			t.Errorf("Append that hung when the machine died = %v", err)
		}
		if n, err := entries(t, next); n != 1 || err != nil {
			t.Errorf("%d entries are left, %v, want 1", n, err)
		}
	})
}

// A hole is made only by who asks for one, and is found; so is an append that was changed.
func TestFaultyDamage(t *testing.T) {
	for _, instead := range [][]byte{nil, []byte("something else")} {
		s := new(memory.Faulty)
		l := begin(t, s)
		l.want(5)
		if err := s.Damage("run", 3, instead); err != nil {
			t.Fatal(err)
		}
		if n, err := entries(t, s); n != 2 || !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%q instead of entry 3: %d entries, %v, want 2 and ErrCorrupt", instead, n, err)
		}
		if err := s.Damage("run", 9, nil); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Damage beyond the head = %v", err)
		}
		if _, err := s.Sealed("no run", 1); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Sealed of no run = %v", err)
		}
		if _, err := s.Sealed("run", 3); (instead == nil) != errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Sealed of entry 3, which is %q now: %v", instead, err)
		}
		if err := s.Damage("run", 3, []byte("other")); (instead == nil) != errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Damage of entry 3, which is %q now: %v", instead, err)
		}
		if n, err := entries(t, s); n != 2 || !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("after that: %d entries, %v, want 2 and ErrCorrupt", n, err)
		}
	}
}

// What a crash goes back to is not damaged.
func TestFaultyDamageIsNotOlderThanItself(t *testing.T) {
	s := &memory.Faulty{Unsynced: true}
	l := begin(t, s)
	l.want(4)
	if err := s.Damage("run", 2, []byte("something else")); err != nil {
		t.Fatal(err)
	}
	if n, err := entries(t, s.Crash(0)); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("nothing is lost: %d entries, %v, want ErrCorrupt", n, err)
	}
	if n, err := entries(t, s.Crash(1)); n != 3 || err != nil {
		t.Errorf("the last write is lost: %d entries, %v, want 3", n, err)
	}
}

// An epoch under which nothing was appended is forgotten in a crash.
func TestFaultyForgetsEpochs(t *testing.T) {
	s := new(memory.Faulty)
	l := begin(t, s)
	l.want(1)
	for range 3 {
		if err := s.Release(t.Context(), l.lease); err != nil {
			t.Fatal(err)
		}
		l.lease = begin(t, s).lease
	}
	if live, dead := mustStat(t, s).Epoch, mustStat(t, s.Crash(0)).Epoch; live != 4 || dead != 1 {
		t.Errorf("the epoch is %d, and %d after a crash, want 4 and 1", live, dead)
	}
}

// A snapshot is lost unless something was made durable after it; the log is not.
func TestFaultySnapshotsAreLate(t *testing.T) {
	s := new(memory.Faulty)
	l := begin(t, s)
	for _, late := range []bool{true, false} {
		l.want(1)
		if err := s.PutSnapshot(t.Context(), l.lease, checkpoint.Snapshot{Head: l.head, Data: []byte("state")}); err != nil {
			t.Fatal(err)
		}
		if !late {
			l.want(1)
		}
		s = s.Crash(s.Unsafe())
		_, err := s.Snapshot(t.Context(), "run", 0)
		if late != errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("nothing durable behind it: %v: Snapshot = %v", late, err)
		}
		head := l.head
		if l = begin(t, s); mustStat(t, s).Head != head {
			t.Errorf("the head is at %d, want %d", mustStat(t, s).Head.Seq, head.Seq)
		}
		l.head = head
	}
}

// Writes are counted over crashes, and named.
func TestFaultyWritesAreNamed(t *testing.T) {
	var all []string
	s := &memory.Faulty{Fail: func(_ context.Context, w memory.Write) memory.Fault {
		all = append(all, fmt.Sprint(w.N, " ", w.Method, " ", w.Run))
		return memory.None
	}}
	l := begin(t, s)
	l.want(1)
	s = s.Crash(0)
	if err := errors.Join(s.Post(t.Context(), "run", checkpoint.Post{ID: "post"}), s.PutGraph(t.Context(), "digest", nil),
		s.Delete(t.Context(), "run")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 Append run", "2 Post run", "3 PutGraph ", "4 Delete run"}; !slices.Equal(all, want) {
		t.Errorf("the writes are %q, want %q", all, want)
	}
}

// A number that is no Fault is a mistake of the test, which it is told of: nothing is written.
func TestFaultyRefusesWhatIsNoFault(t *testing.T) {
	for _, fault := range []memory.Fault{memory.None - 1, memory.Hang + 1, 77} {
		f := new(memory.Faulty)
		f.Fail = func(context.Context, memory.Write) memory.Fault { return fault }
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, fmt.Sprintf("returned %d for write 1: return a Fault", fault)) {
					t.Errorf("the panic says %q", said)
				}
			}()
			err := f.PutGraph(t.Context(), "digest", []byte("{}"))
			t.Errorf("a write with the fault %d = %v", fault, err)
		}()
		if _, err := f.Graph(t.Context(), "digest"); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("after a write with the fault %d Graph = %v", fault, err)
		}
	}
}

// A run whose only append was removed is damaged, as one of several is: it is there, and what reads
// its log is ErrCorrupt.
func TestFaultyDamageOfTheOnlyAppend(t *testing.T) {
	s := new(memory.Faulty)
	l := begin(t, s)
	l.want(1)
	if err := s.Damage("run", 1, nil); err != nil {
		t.Fatal(err)
	}
	damagedAt := func(what string, err error) {
		t.Helper()
		var damaged *checkpoint.CorruptError
		if !errors.As(err, &damaged) || damaged.Seq != 1 {
			t.Errorf("%s = %v, want a CorruptError of entry 1", what, err)
		}
	}
	look := func(s *memory.Faulty) {
		t.Helper()
		if info, err := s.Stat(t.Context(), "run"); err != nil || info.Head != l.head {
			t.Errorf("Stat = %+v, %v, want the head that the run had", info, err)
		}
		if page, err := s.List(t.Context(), checkpoint.Filter{}); err != nil || len(page) != 1 {
			t.Errorf("List = %v, %v, want the run", page, err)
		}
		_, err := entries(t, s)
		damagedAt("Read", err)
		damagedAt("Export", checkpoint.Export(t.Context(), s, "run", new(bytes.Buffer)))
		var found []uint64
		for f, err := range checkpoint.Verify(t.Context(), s, "run") {
			if found = append(found, f.Seq); err != nil {
				t.Errorf("Verify ends with %v", err)
			}
		}
		if !slices.Equal(found, []uint64{1}) {
			t.Errorf("Verify finds damage at entries %d, want 1", found)
		}
		if err := s.Damage("run", 1, nil); !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("Damage of what is gone = %v", err)
		}
	}
	look(s)
	err := s.PutSnapshot(t.Context(), l.lease, checkpoint.Snapshot{Head: l.head})
	if !errors.Is(err, checkpoint.ErrConflict) {
		t.Errorf("PutSnapshot = %v, want ErrConflict", err)
	}
	trimming, base := []byte(`{"first":1}`), []byte("{}")
	_, err = s.Trim(t.Context(), l.lease, l.head, checkpoint.Entry{Kind: checkpoint.Trimmed, Data: trimming}, base)
	if err == nil {
		t.Error("Trim of what is gone has trimmed")
	}
	look(s.Crash(0))
}
