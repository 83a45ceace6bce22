package badgerstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

// The environment in which this test binary is another process that works on a store.
const (
	childDir  = "PAWL_CHILD_DIR"
	childMode = "PAWL_CHILD_MODE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir, os.Getenv(childMode)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child opens the store and appends to many runs until it is killed. It says what it was
// told to be durable.
func child(dir, mode string) error {
	ctx := context.Background()
	open := badgerstore.Open
	if mode == "unsynced" {
		open = badgerstore.OpenUnsynced
	}
	s, err := open(ctx, dir, small)
	if err != nil {
		return err
	}
	var say sync.Mutex
	errs := make(chan error)
	if round, ok := strings.CutPrefix(mode, "forks "); ok {
		first, err := strconv.Atoi(round) // ids are not used again
		if err != nil {
			return err
		}
		for w := range 3 {
			go func() { errs <- forkstoreChild(ctx, s, first*3+w, &say) }() // ends with the process
		}
		return <-errs
	}
	for r := range 8 {
		go func() { errs <- work(ctx, s, fmt.Sprintf("run-%d", r), &say) }() // ends with the process
	}
	return <-errs
}

func work(ctx context.Context, s *badgerstore.Store, run string, say *sync.Mutex) error {
	l, err := s.Acquire(ctx, run, "child")
	if err != nil {
		return err
	}
	var head checkpoint.Head
	if info, err := s.Stat(ctx, run); err == nil {
		head = info.Head
	}
	text := noise(6_000) // memory tables fill up
	for {
		n := int(head.Seq)
		e := checkpoint.Entry{
			Kind: checkpoint.Done, Step: n + 1, Path: run,
			Delta: fmt.Appendf(nil, "{\"n\":%d,\"text\":%q}", n, text[:n*131%5000]),
		}
		if n%10 == 9 {
			e.Kind = checkpoint.Waiting // writes the row as well
		}
		if head, err = s.Append(ctx, l, head, []checkpoint.Entry{e, e}); err != nil {
			return err
		}
		if n%50 == 0 {
			snap := checkpoint.Snapshot{Head: head, Data: []byte(noise(1 << 20))}
			if err := s.PutSnapshot(ctx, l, snap); err != nil {
				return err
			}
		}
		say.Lock()
		fmt.Println(run, head.Seq)
		say.Unlock()
	}
}

// A process is killed at some moment, again and again: everything that it was told to be
// durable is there, every append is whole, and the next process goes on.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	rounds, _ := strconv.Atoi(os.Getenv("PAWL_KILLS"))
	if rounds == 0 {
		rounds = 10
	}
	for _, mode := range []string{"synced", "unsynced"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			acked := make(map[string]uint64)
			for round := range rounds {
				runAndKill(t, dir, mode, 40+round*37%400, acked)
				checkAcked(t, dir, acked)
				if t.Failed() {
					t.Fatalf("in round %d", round)
				}
			}
			if len(acked) == 0 {
				t.Error("nothing was ever durable")
			}
		})
	}
}

// runAndKill kills a child once it has said that many lines.
func runAndKill(t *testing.T, dir, mode string, lines int, acked map[string]uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir, childMode+"="+mode)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ { // what was said before the end counts, to the last line
		run, seq, _ := strings.Cut(scanner.Text(), " ")
		number, err := strconv.ParseUint(seq, 10, 64)
		if err != nil {
			t.Errorf("the child says %q", scanner.Text())
		}
		acked[run] = max(acked[run], number)
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
}

func checkAcked(t *testing.T, dir string, acked map[string]uint64) {
	t.Helper()
	s, err := badgerstore.Open(t.Context(), dir, small)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for run, seq := range acked {
		info, err := s.Stat(t.Context(), run)
		if err != nil || info.Head.Seq < seq || info.Head.Seq%2 != 0 {
			t.Errorf("%s is at %d, %v, and was durable at %d", run, info.Head.Seq, err, seq)
			continue
		}
		n := uint64(0)
		for e, err := range s.Read(t.Context(), run, 1, 0) {
			if err != nil {
				t.Error(err)
				break
			}
			if n++; e.Path != run || e.Seq != n || e.Step != int(n-1)/2*2+1 {
				t.Errorf("entry %d of %s is %+v", n, run, e)
				break
			}
		}
		if n != info.Head.Seq {
			t.Errorf("%s has %d entries, its head is %d", run, n, info.Head.Seq)
		}
		_, err = s.Snapshot(t.Context(), run, 0)
		if err != nil && !errors.Is(err, checkpoint.ErrNotFound) { // it may have been killed before
			t.Errorf("Snapshot of %s = %v", run, err)
		}
	}
}
