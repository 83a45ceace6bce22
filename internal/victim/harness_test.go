package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// asVictim is set in the environment of a process that is this test binary and a victim.
const asVictim = "PAWL_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(asVictim) != "" {
		main()
	}
	os.Exit(m.Run())
}

// memtable is small: tables are written while a run goes on.
const memtable = 4 << 20

// count returns the number in an environment variable, by which a long form is asked for.
func count(name string, short int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return short
}

// dice are the random numbers of a test. PAWL_SEED=n throws again what n has thrown.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(count("PAWL_SEED", int(time.Now().UnixNano()>>8)))
	t.Logf("PAWL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A patient is one run, of which a test knows all that victims have said.
type patient struct {
	t     *testing.T
	dir   string
	run   string
	graph string
	seed  int64
	flags []string

	want    []string        // digests of the reference
	acked   int             // the newest superstep that was acknowledged
	durable map[string]bool // paths of visits that may not begin again
	status  checkpoint.Status
	waits   int
	posted  bool // an answer may be posted that no entry has: its process was killed

	acks, nodes int // lines
}

func newPatient(t *testing.T, dir, run, graph string, seed int64, flags ...string) *patient {
	return &patient{
		t: t, dir: dir, run: run, graph: graph, seed: seed, flags: flags, want: reference(graph, seed),
	}
}

func (p *patient) String() string { return fmt.Sprintf("%s (%s, seed %d)", p.run, p.graph, p.seed) }

// next is the command that brings the run on.
func (p *patient) next() string {
	switch {
	case p.status == "":
		return "start"
	case p.waits > 0 && !p.posted:
		return "answer"
	}
	return "resume"
}

// ended takes notice of how a command has ended. A process that is killed behind the post of its
// answer, and before an entry has it, leaves it to the next one: to answer again is refused, and a
// resume takes it, if that is not killed before. If nothing was posted the resume waits again, and
// the answer is given next.
func (p *patient) ended(command string, killed bool) {
	switch {
	case command == "answer":
		p.posted = killed
	case !killed:
		p.posted = false
	}
}

func (p *patient) done() bool { return p.status == checkpoint.StatusCompleted }

// command returns a process that does one command; before it, words to run it with.
func (p *patient) command(name string, before ...string) *exec.Cmd {
	args := append(before, os.Args[0], name, "-store", "badger:"+p.dir, "-run", p.run, "-graph", p.graph,
		"-seed", strconv.FormatInt(p.seed, 10), "-memtable", strconv.Itoa(memtable))
	cmd := exec.CommandContext(p.t.Context(), args[0], append(args[1:], p.flags...)...)
	cmd.Env = append(os.Environ(), asVictim+"=1")
	return cmd
}

// held is a command that, with the flag -hold, goes on when it is released.
func (p *patient) held(name string) (cmd *exec.Cmd, release func()) {
	p.t.Helper()
	cmd = p.command(name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	return cmd, func() { _ = stdin.Close() } // it may have ended meanwhile
}

// An end is how a process has ended.
type end struct {
	status int // -1 if it was killed
	kinds  []string
	done   bool
	at     int // superstep of AT, or of OK; -1 if neither was said
	stderr string

	attempts []int // of the bodies that began
}

// watch runs a process to its end, holds what it says against what it may say, and tells heard that
// it has begun, as line 0, and of each line, and how many of them were errors.
func (p *patient) watch(cmd *exec.Cmd, heard func(lines, errs int)) end {
	p.t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if heard == nil {
		heard = func(int, int) {}
	}
	heard(0, 0)
	e := end{at: -1}
	scanner := bufio.NewScanner(out)
	for n := 1; scanner.Scan(); n++ { // what was said before the end counts, to the last line
		p.hear(&e, strings.Fields(scanner.Text()))
		heard(n, len(e.kinds))
	}
	_ = cmd.Wait() // the status tells
	e.status, e.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	return e
}

// hear holds one line against the reference, and against what is known to be durable.
func (p *patient) hear(e *end, words []string) {
	p.t.Helper()
	number := func(i int) int {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			p.t.Fatalf("%v: a victim says %q", p, words)
		}
		return n
	}
	switch {
	case len(words) == 5 && words[0] == "NODE":
		p.nodes++
		if path := words[1]; p.durable[path] {
			p.t.Errorf("%v: %s begins again, although its entry is durable", p, path)
		}
		if words[3] != p.run+"/"+words[1] {
			p.t.Errorf("%v: the key of %s is %s", p, words[1], words[3])
		}
		if want := superstepOf(words[1]); number(2) != want {
			p.t.Errorf("%v: %s begins in superstep %d, want %d", p, words[1], number(2), want)
		}
		if number(4) < 1 {
			p.t.Errorf("%v: %s begins its attempt %d", p, words[1], number(4))
		}
		e.attempts = append(e.attempts, number(4))
	case len(words) == 3 && words[0] == "ACK":
		p.acks++
		if number(1) <= p.acked {
			p.t.Errorf("%v: superstep %d is acknowledged behind %d", p, number(1), p.acked)
		}
		p.acked = number(1)
		p.same(words[0], number(1), words[2])
	case len(words) == 3 && (words[0] == "AT" || words[0] == "OK"):
		e.at = number(1)
		p.same(words[0], e.at, words[2])
	case len(words) == 2 && words[0] == "ERR":
		e.kinds = append(e.kinds, words[1])
	case len(words) == 2 && words[0] == "DONE":
		e.done = true
		p.acked = len(p.want) - 1
		p.same(words[0], p.acked, words[1])
	default:
		p.t.Errorf("%v: a victim says %q", p, words)
	}
}

// superstepOf is the superstep of its frame in which a visit of that path has its place, in
// whatever graph: only bodies of frames have paths of several parts, and those have one superstep.
func superstepOf(path string) int {
	var n int
	if _, err := fmt.Sscanf(path, "step-%d", &n); err == nil {
		return n
	}
	if strings.Contains(path, "/") {
		return 1
	}
	return map[string]int{
		"top": 1, "left": 2, "right": 2, "bottom": 3, "before": 1, "panic": 2, "ask": 2, "stubborn": 2, "after": 3,
	}[path]
}

// same compares a digest with that of the reference.
func (p *patient) same(word string, superstep int, digest string) {
	p.t.Helper()
	if superstep < 0 || superstep >= len(p.want) || p.want[superstep] != digest {
		p.t.Errorf("%v: %s %d %s, which is not what the reference has", p, word, superstep, digest)
	}
}

// examine opens the store in this process, and learns where the run stands. An error is of the
// store, or says what is wrong with the run.
func (p *patient) examine(ctx context.Context) (err error) {
	v := &victim{call: call{dir: p.dir, run: p.run, graph: p.graph, memtable: memtable}, out: &lines{w: p.t.Output()}}
	for _, f := range p.flags {
		v.unsynced = v.unsynced || f == "-unsynced"
	}
	if err := v.open(ctx); err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer func() { err = errors.Join(err, v.close()) }()
	r, err := v.read(ctx)
	if errors.Is(err, checkpoint.ErrNotFound) {
		p.status, p.waits, p.durable = "", 0, nil
		return p.late(0)
	}
	if err != nil {
		return err
	}
	if err := r.check(p.want); err != nil {
		return err
	}
	p.status, p.waits, p.durable = r.Status, r.Waits, make(map[string]bool)
	for _, path := range r.Done {
		p.durable[path] = true
	}
	return p.late(r.Superstep)
}

// A lateError says that a run has lost what was acknowledged.
type lateError struct{ superstep, acked int }

func (e *lateError) Error() string {
	return fmt.Sprintf("it is at %d, and was acknowledged at %d", e.superstep, e.acked)
}

func (p *patient) late(superstep int) error {
	if superstep < p.acked {
		return &lateError{superstep, p.acked}
	}
	return nil
}

func isLate(err error) bool {
	var late *lateError
	return errors.As(err, &late)
}

// heal brings the run to its end.
func (p *patient) heal() {
	p.t.Helper()
	for !p.done() {
		command := p.next()
		e := p.watch(p.command(command), nil)
		p.ended(command, false)
		if e.status != 0 && e.status != rests {
			p.t.Fatalf("%v: exit status %d, %v: %s", p, e.status, e.kinds, e.stderr)
		}
		if err := p.examine(p.t.Context()); err != nil {
			p.t.Fatalf("%v: %v", p, err)
		}
	}
}

// A moment is when a process is ended: after so many lines, or errors, or so long.
type moment struct {
	lines int // 0 is no number of them
	errs  int
	after time.Duration
}

// someMoment is in one half of all cases a number of lines and else a time, opening the store
// included.
func someMoment(r *rand.Rand) moment {
	if r.IntN(2) == 0 {
		return moment{lines: 1 + r.IntN(80), after: time.Minute}
	}
	return moment{after: time.Duration(r.Int64N(int64(300 * time.Millisecond)))}
}

// strike runs a process until the moment, when strike is called once, and then to its end. It
// reports whether the moment came before the end.
func (p *patient) strike(cmd *exec.Cmd, m moment, strike func(*exec.Cmd)) (e end, struck bool) {
	p.t.Helper()
	now := make(chan struct{}, 1)
	hit, over := make(chan bool), make(chan struct{})
	e = p.watch(cmd, func(lines, errs int) {
		switch {
		case lines == 0:
			go func() { hit <- m.come(now, over, func() { strike(cmd) }) }() // received below
		case lines == m.lines, m.errs > 0 && errs == m.errs:
			select {
			case now <- struct{}{}:
			default: // it was heard already
			}
		}
	})
	close(over)
	return e, <-hit
}

// come waits until the moment, unless it is over before.
func (m moment) come(now, over <-chan struct{}, strike func()) bool {
	timer := time.NewTimer(m.after)
	defer timer.Stop()
	select {
	case <-over:
		return false
	case <-now:
	case <-timer.C:
	}
	strike()
	return true
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended meanwhile
}

// tables counts the tables of a store, and tells the highest number that one has had.
func tables(t *testing.T, dir string) (n, last int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		id, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".sst"))
		last = max(last, id)
	}
	return len(paths), last
}
