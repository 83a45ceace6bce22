package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
)

// unwritten are the calls that write nothing, by their names.
func unwritten(ctx context.Context, s *memory.Faulty) map[string]error {
	lease := checkpoint.Lease{Run: "run", Epoch: 1, Owner: "owner"}
	errs := make(map[string]error)
	_, errs["Acquire"] = s.Acquire(ctx, "run", "another")
	_, errs["Renew"] = s.Renew(ctx, lease)
	errs["Release"] = s.Release(ctx, lease)
	for _, err := range s.Read(ctx, "run", 1, 0) {
		errs["Read"] = err
	}
	for _, err := range s.Envelopes(ctx, "run") {
		errs["Envelopes"] = err
	}
	_, errs["Stat"] = s.Stat(ctx, "run")
	_, errs["List"] = s.List(ctx, checkpoint.Filter{})
	_, errs["Posts"] = s.Posts(ctx, "run")
	_, errs["Snapshot"] = s.Snapshot(ctx, "run", 0)
	_, errs["Base"] = s.Base(ctx, "run", "digest")
	_, errs["Graph"] = s.Graph(ctx, "digest")
	return errs
}

// Whatever writes nothing can fail, by the name of the method and of the run, and has changed
// nothing then.
func TestFaultyReadsFail(t *testing.T) {
	s := new(memory.Faulty)
	l := begin(t, s)
	l.want(1)
	broken := errors.New("broken")
	asked := make(map[string]string)
	s.FailRead = func(_ context.Context, method, run string) error {
		asked[method] = run
		return broken
	}
	errs := unwritten(t.Context(), s)
	for method, err := range errs {
		want := "run"
		if method == "List" || method == "Graph" {
			want = ""
		}
		if run, ok := asked[method]; !ok || run != want || err != broken {
			t.Errorf("%s = %v, and FailRead was asked of run %q: %v", method, err, run, ok)
		}
	}
	if len(asked) != len(errs) {
		t.Errorf("FailRead was asked of %v", asked)
	}
	l.want(1) // writes are asked for by Fail
	fail := s.FailRead
	s.FailRead = nil
	if info := mustStat(t, s); info.Owner != "owner" || info.Epoch != 1 || info.Head.Seq != 2 {
		t.Errorf("calls that failed left %+v", info)
	}
	s.FailRead = fail
	if _, err := s.Crash(0).Stat(t.Context(), "run"); err != broken {
		t.Errorf("Stat after a crash = %v, want that of the same disk", err)
	}
}

// What writes nothing can be slow, and hang until its context ends.
func TestFaultyReadsHangAndAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memory.Faulty)
		begin(t, s).want(1)
		s.FailRead = func(ctx context.Context, method, _ string) error {
			if method == "Stat" {
				time.Sleep(time.Minute)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		start := time.Now()
		if info := mustStat(t, s); info.Head.Seq != 1 || time.Since(start) != time.Minute {
			t.Errorf("Stat = %+v after %v", info, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := s.List(ctx, checkpoint.Filter{}); err != context.DeadlineExceeded {
			t.Errorf("List = %v", err)
		}
		if waited := time.Since(start); waited != time.Hour+time.Minute {
			t.Errorf("List hung until %v had passed, want an hour and a minute", waited)
		}
	})
}

// What is spoiled is damaged for all that need it, over crashes, and nothing else is.
func TestFaultySpoils(t *testing.T) {
	for part, wants := range map[checkpoint.Part][]string{
		checkpoint.PartPosts:    {"Posts"},
		checkpoint.PartSnapshot: {"Snapshot"},
		checkpoint.PartBase:     {"Base"},
		checkpoint.PartInfo: {
			"Acquire", "Renew", "Release", "Read", "Envelopes", "Stat", "List", "Posts", "Snapshot", "Base",
		},
	} {
		s := new(memory.Faulty)
		l := begin(t, s)
		l.want(2)
		s.Spoil("run", part)
		if err := l.add(); errors.Is(err, checkpoint.ErrCorrupt) != (part == checkpoint.PartInfo) {
			t.Errorf("the %s is spoiled, and Append = %v", part, err)
		}
		s = s.Crash(0)
		errs := unwritten(t.Context(), s)
		for _, method := range wants {
			var where *checkpoint.CorruptError
			if !errors.As(errs[method], &where) || where.Run != "run" {
				t.Errorf("the %s is spoiled, and %s = %v", part, method, errs[method])
			}
			delete(errs, method)
		}
		for method, err := range errs {
			if errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("the %s is spoiled, and %s = %v", part, method, err)
			}
		}
	}
}

// A machine that has died is closed, whatever would have gone wrong with its disk.
func TestFaultyIsClosedOnceItDied(t *testing.T) {
	for fault := memory.None; fault <= memory.Hang; fault++ {
		s := new(memory.Faulty)
		l := begin(t, s)
		l.want(1)
		s.Fail = func(context.Context, memory.Write) memory.Fault { return fault }
		s.FailRead = func(context.Context, string, string) error { return errors.New("broken") }
		s.Spoil("run", checkpoint.PartInfo)
		s.Crash(0)
		errs := unwritten(t.Context(), s)
		errs["Append"] = l.add()
		errs["Post"] = s.Post(t.Context(), "run", checkpoint.Post{ID: "post", Kind: "note"})
		errs["PutSnapshot"] = s.PutSnapshot(t.Context(), l.lease, checkpoint.Snapshot{})
		errs["PutGraph"] = s.PutGraph(t.Context(), "digest", []byte("{}"))
		errs["Delete"] = s.Delete(t.Context(), "run")
		_, errs["Trim"] = s.Trim(t.Context(), l.lease, l.head, checkpoint.Entry{})
		_, errs["Restore"] = s.Restore(t.Context(), l.lease, checkpoint.Archive{})
		for method, err := range errs {
			if !errors.Is(err, checkpoint.ErrClosed) {
				t.Errorf("with fault %d set %s = %v, want ErrClosed", fault, method, err)
			}
		}
	}
}
