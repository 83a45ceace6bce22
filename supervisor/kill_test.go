package supervisor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/supervisor"
)

// The environment in which this test binary is another process that supervises runs, and how many
// lines it says at most.
const (
	childDir   = "PAWL_SUPERVISOR_DIR"
	childLines = "PAWL_SUPERVISOR_LINES"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		lines, err := strconv.Atoi(os.Getenv(childLines))
		if err == nil {
			err = child(dir, &voice{left: lines})
		}
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	childRuns  = 60
	childSteps = 4
	childCap   = 6
	childAhead = 20 // lines that it may say beyond the one at which it is killed
)

// A voice says what a child does. After its last line whoever has more to say waits to be killed,
// so that a child does not get to the end because the one who kills it is late.
type voice struct {
	mu   sync.Mutex
	left int
}

func (v *voice) say(what ...any) {
	v.mu.Lock()
	if v.left--; v.left < 0 {
		<-time.After(time.Hour) // with the mutex: nobody else says anything either
	}
	defer v.mu.Unlock()
	fmt.Println(what...)
}

// childGraph says of every body that it begins.
func childGraph(b *dag.Builder[parcel], v *voice) (*dag.Graph[parcel], error) {
	var after []dag.Edge[parcel]
	for i := range childSteps {
		n := dag.Step(b, fmt.Sprintf("step-%d", i), func(ctx context.Context, p *parcel) error {
			v.say(dag.Key(ctx))
			lasts(5 * time.Millisecond) // so that the process can be killed meanwhile
			p.Steps.Append(dag.Key(ctx))
			return nil
		}, after...)
		after = []dag.Edge[parcel]{n}
	}
	return b.Build()
}

// child is a program as users write them: it recovers what the one before it has left, and
// submits what there is to do. What is done already is done.
func child(dir string, v *voice) error {
	ctx := context.Background()
	store, err := badgerstore.Open(ctx, dir, badgerstore.Options{MemTableSize: 4 << 20})
	if err != nil {
		return err
	}
	defer store.Close()
	g, err := childGraph(dag.New[parcel]("child"), v)
	if err != nil {
		return err
	}
	d, err := dispatcher.New(g, store, dispatcher.Options{})
	if err != nil {
		return err
	}
	s, err := supervisor.New(store, supervisor.Options{Cap: childCap}, d)
	if err != nil {
		return err
	}
	r, err := s.Recover(ctx)
	if err != nil || len(r.Failed)+len(r.Busy)+len(r.Left) > 0 {
		return fmt.Errorf("recovery %+v, %w", r, err)
	}
	v.say("recovered", len(r.Rested))
	var tasks []*supervisor.Task[parcel]
	for i := range childRuns {
		task, err := supervisor.Submit(ctx, s, d, fmt.Sprint(i%3), fmt.Sprintf("run-%02d", i), nil)
		if err != nil {
			return err
		}
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		if _, err := task.Wait(ctx); err != nil {
			return err
		}
	}
	_, err = s.Drain(ctx)
	v.say("drained")
	return err
}

// runChild runs a child until it has said that many lines, and kills it then; or until it
// ends. It counts what the child began.
func runChild(t *testing.T, dir string, lines int, began map[string]int) (ended bool, recovered int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir, childLines+"="+strconv.Itoa(lines+childAhead))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for n := 0; said.Scan(); n++ {
		line := said.Text()
		switch {
		case strings.HasPrefix(line, "failed"):
			t.Errorf("the child has %s", line)
		case strings.HasPrefix(line, "recovered "):
			_, _ = fmt.Sscan(line[len("recovered "):], &recovered)
		case line == "drained":
			ended = true
		default:
			began[line]++
		}
		if n+1 == lines {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	return ended, recovered
}

// A process that supervises runs is killed again and again. The next one recovers what it
// left; in the end all runs are completed, and no more was run twice than was in flight.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began := map[string]int{}
	kills, recovered := 0, 0
	for round := 0; ; round++ {
		ended, n := runChild(t, dir, 17+round*13%41, began)
		recovered += n
		if t.Failed() {
			t.FailNow()
		}
		if ended {
			break
		}
		if kills++; kills > 60 {
			t.Fatal("the child does not get on")
		}
	}
	if kills < 3 || recovered == 0 {
		t.Errorf("%d processes were killed, %d runs recovered", kills, recovered)
	}
	again := 0
	for _, n := range began {
		again += n - 1
	}
	if len(began) != childRuns*childSteps || again > kills*childCap {
		t.Errorf("%d visits began, want %d; %d again after %d kills", len(began), childRuns*childSteps, again, kills)
	}
	store, err := badgerstore.Open(t.Context(), dir, badgerstore.Options{MemTableSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for run, status := range statuses(t, store) {
		if status != checkpoint.StatusCompleted {
			t.Errorf("run %q is %s", run, status)
		}
	}
}
