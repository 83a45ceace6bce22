package badgerstore

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Badger still says by its log what an alarm listens for: its errors are nowhere else.
func TestAlarmKnowsWhatBadgerSays(t *testing.T) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dgraph-io/badger/v4")
	list.Env = append(os.Environ(), "GOWORK=off") // the workspace keeps sums of what is listed
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d sources, %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, call := range []string{`Errorf("` + flushFailed, compactionFailed, `Debugf("` + tableIsFull, `Debugf("` + memoryIsFull} {
		if !strings.Contains(all.String(), call) {
			t.Errorf("nothing in Badger says %q", call)
		}
	}
}

// A table that can't be written while the alarm is being armed is told by that, or stops the store.
func TestAlarmIsArmedBesideAFailure(t *testing.T) {
	t.Parallel()
	for range 200 {
		const many = 5000
		alarms, told, stopped := make([]alarm, many), make([]error, many), make([]bool, many)
		begin := make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			<-begin
			for i := range alarms {
				told[i] = alarms[i].arm(func(error) { stopped[i] = true })
			}
		})
		both.Go(func() {
			<-begin
			for i := range alarms {
				alarms[i].fail(errPanicked)
			}
		})
		close(begin)
		both.Wait()
		for i := range alarms {
			if told[i] == nil && !stopped[i] {
				t.Fatal("nobody knows of it")
			}
		}
	}
}

// A compaction writes no table while its directory is another one. The store stops at once.
func TestCompactionWaitsForItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unlockFile(lock) }()
	h, err := newHome(dir, lock)
	if err != nil {
		t.Fatal(err)
	}
	a, told, ended := &alarm{dir: h.dir + "/" + databaseDir, home: h}, make(chan error, 100), make(chan struct{})
	stop := func(err error) { told <- err }
	a.stop.Store(&stop)
	a.Debugf(tableIsFull) // returns
	if err := os.Rename(dir, dir+".bak"); err != nil {
		t.Fatal(err)
	}
	go func() { // waited for below
		defer close(ended)
		a.Debugf(tableIsFull)
	}()
	for range 2 { // looks at the directory
		select {
		case err := <-told:
			if !errors.Is(err, checkpoint.ErrClosed) {
				t.Errorf("the store was stopped with %v, want ErrClosed", err)
			}
		case <-ended:
			t.Fatal("a table is written elsewhere")
		}
	}
	if err := os.Rename(dir+".bak", dir); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// What Open removes of killed processes may be what its own database has made a moment ago, and is
// gone by then.
func TestProbesMayBeGoneWhenTheyAreRemoved(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	at, err := newHome(dir, lock)
	if err != nil {
		t.Fatal(err)
	}
	a := &alarm{dir: filepath.Join(dir, databaseDir), home: at}
	looked, enough := make(chan error), make(chan struct{})
	go func() { // ends with enough
		var err error
		for err == nil {
			select {
			case <-enough:
				looked <- nil
				return
			default:
				err = a.room()
			}
		}
		looked <- err
	}()
	for range 2000 {
		err = errors.Join(err, removeProbes(a.dir))
	}
	close(enough)
	if err := errors.Join(err, <-looked); err != nil {
		t.Error(err)
	}
}
