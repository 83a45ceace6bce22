package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/internal/lacking"
)

// syncs are the calls by which a store has things written to the disk, commits those of its
// committer.
const (
	syncs   = "msync,fsync,fdatasync"
	commits = "fdatasync"
)

// An injury makes syncs of a process go wrong, by strace.
type injury struct {
	calls string
	how   string // as strace has it: error=EIO:when=3
	told  string // the files in which strace tells of it begin so: each thread has its own, in which no line is split
}

// newInjury skips the test where strace is not there, or may not trace.
func newInjury(t *testing.T, calls, how string) *injury {
	t.Helper()
	i := &injury{calls, how, filepath.Join(t.TempDir(), "strace")}
	if out, err := exec.CommandContext(t.Context(), "strace", "-f", "-o", i.told, "-e", "inject="+calls+":"+how, "true").CombinedOutput(); err != nil {
		lacking.Skip(t, fmt.Sprintf("syncs that fail need strace: %v: %s", err, out))
	}
	return i
}

// words are what a process is run with.
func (i *injury) words() []string {
	return []string{"strace", "-ff", "-qq", "-y", "-o", i.told, "-e", "trace=" + i.calls, "-e", "inject=" + i.calls + ":" + i.how}
}

// done tells the syncs that went wrong, each with the path that it was of.
func (i *injury) done(t *testing.T) (hurt []string) {
	t.Helper()
	files, err := filepath.Glob(i.told + ".*")
	if err != nil || len(files) == 0 {
		t.Fatalf("strace tells nothing: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "(INJECTED)") {
				hurt = append(hurt, line)
			}
		}
	}
	return hurt
}

// The n-th sync of a thread fails, or that and all behind it: the process ends in time, says that
// what it does not know is unknown, and the run goes on from what was acknowledged. PAWL_EACH=1
// lets each in turn fail, PAWL_EACH=2 every second one, also of a run with which tables are written
// and compacted.
func TestSyncThatFails(t *testing.T) {
	t.Parallel()
	graphs := []string{"line50"}
	if count("PAWL_EACH", 0) > 0 {
		graphs = append(graphs, "big")
	}
	for _, graph := range graphs {
		for name, when := range map[string]string{"once": "%d", "for ever": "%d+"} {
			t.Run(graph+" "+name, func(t *testing.T) {
				t.Parallel()
				ends := make(map[string]int)
				for n := range someSyncs {
					end, hurt := failSync(t, graph, newInjury(t, syncs, "error=EIO:when="+fmt.Sprintf(when, n)))
					if t.Failed() {
						t.Fatalf("sync %d of a thread", n)
					}
					if !hurt {
						break
					}
					ends[end]++
				}
				t.Logf("what came of it: %v", ends)
				// How many syncs are those of opening the store is not said, nor which thread
				// commits.
				if end, _ := failSync(t, graph, newInjury(t, commits, "error=EIO:when="+fmt.Sprintf(when, 2))); end != "unknown" {
					t.Errorf("the second commit of a thread was hurt, and it came to %q", end)
				}
			})
		}
	}
}

// someSyncs yields the numbers of syncs to hurt, as long as there are any.
func someSyncs(yield func(int) bool) {
	each, few := count("PAWL_EACH", 0), []int{1, 2, 4, 7, 12}
	for n := 1; each > 0 || n <= 12; n++ {
		wanted := slices.Contains(few, n)
		if each > 0 {
			wanted = n%each == 0
		}
		if wanted && !yield(n) {
			return
		}
	}
}

// failSync hurts a run, and tells what came of it, and whether any sync was hurt.
func failSync(t *testing.T, graph string, i *injury) (came string, hurt bool) {
	t.Helper()
	p := newPatient(t, filepath.Join(t.TempDir(), "store"), "run", graph, 1, "-grace", "2s", "-closing", "2s")
	e := p.watch(p.command("start", i.words()...), nil)
	syncs := i.done(t)
	hurt, came = len(syncs) > 0, "completed"
	switch {
	case e.status == 1 && len(e.kinds) > 0:
		came = e.kinds[0]
	case e.status != 0:
		t.Errorf("%s: exit status %d, %q: %s", i.how, e.status, e.kinds, e.stderr)
	}
	if slices.Contains(e.kinds, "other") || len(e.kinds) > 2 {
		t.Errorf("%s: it says %q, which does not tell what it was: %s", i.how, e.kinds, e.stderr)
	}
	// One sync is tried for what it is worth: that of the directory above a store that is made. No
	// other may fail unnoticed.
	above, err := filepath.EvalSymlinks(filepath.Dir(p.dir))
	if err != nil {
		t.Fatal(err)
	}
	silent := slices.IndexFunc(syncs, func(sync string) bool { return !strings.Contains(sync, "<"+above+">") })
	if came == "completed" && silent >= 0 {
		t.Errorf("%s: the run is completed, as if nothing had been hurt; %d syncs were, %q among them", i.how, len(syncs), syncs[silent])
	}
	if !hurt && !e.done {
		t.Errorf("%s: nothing was hurt: exit status %d, %q: %s", i.how, e.status, e.kinds, e.stderr)
	}
	if err := p.examine(t.Context()); err != nil {
		t.Errorf("%s: then, whole again: %v", i.how, err)
		return came, hurt
	}
	p.heal()
	return came, hurt
}

// Every sync takes two minutes, from one in the middle of the run on: the call ends in time, and so
// does the closing of the store, before even one of them has; and what was acknowledged is there.
// The process itself is ended, since strace does not let it go before. The deadline is counted from
// when the store is open, and leaves a slow disk the time to come to the first of these syncs.
func TestSyncThatHangs(t *testing.T) {
	t.Parallel()
	i := newInjury(t, commits, "delay_exit=120000000:when=3+")
	p := newPatient(t, filepath.Join(t.TempDir(), "store"), "run", "line50", 1, "-within", "20s", "-grace", "500ms", "-closing", "500ms")
	e, _ := p.strike(p.command("start", i.words()...), moment{errs: 2, after: 110 * time.Second}, kill)
	if want := []string{"stuck", "deadline"}; !slices.Equal(e.kinds, want) {
		t.Errorf("before any of these syncs had ended it said %q, want %q: of the call, and of closing the store: %s", e.kinds, want, e.stderr)
	}
	p.flags = nil
	if err := p.examine(t.Context()); err != nil {
		t.Error(err)
	}
	p.heal()
}
