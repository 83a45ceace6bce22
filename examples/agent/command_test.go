package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/agent/script"
)

const (
	asProgram = "AGENT_TEST_PROGRAM" // set, this binary is the program
	killAfter = "AGENT_TEST_KILL"    // and kills itself when this visit is told to be done
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	os.Exit(run(os.Args[1:], os.Stdout, killer{os.Getenv(killAfter)}))
}

// A killer is a standard error that ends its process as kill -9 does.
type killer struct{ path string }

func (k killer) Write(b []byte) (int, error) {
	if fields := strings.Fields(string(b)); k.path != "" && len(fields) == 2 && fields[0] == k.path && fields[1] == "done" {
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Kill() != nil {
			os.Exit(99)
		}
		select {} // the kill is on its way
	}
	return os.Stderr.Write(b)
}

// An outcome is what a command leaves behind.
type outcome struct {
	exit           int // -1 if it was killed
	stdout, stderr string
}

// A shell runs commands in one directory with one endpoint.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T, endpoint string) *shell {
	dir := t.TempDir()
	return &shell{dir, append(os.Environ(), asProgram+"=1", "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"OPENAI_API_KEY=", "OPENAI_BASE_URL="+endpoint)}
}

func (s *shell) run(t *testing.T, kill string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = s.dir, append(s.env, killAfter+"="+kill)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", args, err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (o outcome) exits(t *testing.T, status int) outcome {
	t.Helper()
	if o.exit != status {
		t.Fatalf("exit status %d, want %d\n%s%s", o.exit, status, o.stdout, o.stderr)
	}
	return o
}

// Offline, a task goes from the command to the answer, by way of the two questions that it has.
func TestCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t, "")
	o := s.run(t, "", "-run", "a", "-for", "a child", noteIt).exits(t, 3)
	if o.stdout != "" || !strings.Contains(o.stderr, "asks: note needs file") || !strings.Contains(o.stderr, "-run a -resume -answer TEXT\n") {
		t.Errorf("%+v", o)
	}
	o = s.run(t, "", "-resume", "-answer", "alps.txt").exits(t, 3)
	if !strings.Contains(o.stderr, "may this be done?") || !strings.Contains(o.stderr, "-run a -resume -answer approve\n") || !strings.Contains(o.stderr, "asked 0 times") {
		t.Errorf("%+v", o)
	}
	s.run(t, "", "-resume", "-answer", "perhaps").exits(t, 2)
	o = s.run(t, "", "-resume", "-answer", "approve").exits(t, 0)
	if want := "For a child: " + difference + "\n"; o.stdout != want {
		t.Errorf("printed %q, want %q", o.stdout, want)
	}
	if raw, err := os.ReadFile(filepath.Join(s.dir, "notes", "alps.txt")); err != nil || !strings.Contains(string(raw), difference) {
		t.Errorf("the note is %q, %v", raw, err)
	}
	var mind Mind
	if o = s.run(t, "", "-run", "a", "-json").exits(t, 0); json.Unmarshal([]byte(o.stdout), &mind) != nil || mind.Check() != nil || mind.Steps.Len() != 9 {
		t.Errorf("-json printed\n%s", o.stdout)
	}
	if o = s.run(t, "", "-resume").exits(t, 1); !strings.Contains(o.stderr, "nothing to resume") {
		t.Errorf("%+v", o)
	}
}

// A rejection is told, with its reason if there is one, and what is printed can be given to a
// shell.
func TestCommandRejected(t *testing.T) {
	t.Parallel()
	for answer, says := range map[string]string{
		"reject":               "a person did not allow it: by the command line\n",
		"reject: not my files": "a person did not allow it: by the command line: not my files\n",
	} {
		s := newShell(t, "")
		o := s.run(t, "", "-run", "it's a", noteIt).exits(t, 3)
		if !strings.Contains(o.stderr, `-run 'it'\''s a' -resume -answer TEXT`+"\n") {
			t.Errorf("%+v", o)
		}
		s.run(t, "", "-resume", "-answer", "alps.txt").exits(t, 3)
		if o = s.run(t, "", "-resume", "-answer", answer); !strings.Contains(o.stderr, "agent: note was not done in step") || !strings.Contains(o.stderr, says) {
			t.Errorf("%q: %+v", answer, o)
		}
	}
}

// Whoever was abandoned, and what the dispatcher warns of, is told.
func TestWarningsOfTheDispatcher(t *testing.T) {
	var told strings.Builder
	s := &session{config: new(config), stderr: &told}
	s.tell(&dispatcher.Result[Mind]{
		Status: checkpoint.StatusCompleted, Abandoned: []string{"work/act"}, Warnings: []string{"the run has rested for 26h"},
	}, new(Mind))
	for _, want := range []string{"agent: warning: work/act did not stop in time", "agent: warning: the run has rested for 26h\n"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("told\n%s\nwant %q", told.String(), want)
		}
	}
}

// A run of which nothing can be told is passed by where the newest is meant, and told of.
func TestTheNewestRunThatCanBeRead(t *testing.T) {
	store := new(memory.Faulty)
	w := newWorld(t, script.Mountaineer)
	w.store = store
	w.restart(t)
	for _, run := range []string{"old", "new"} {
		if _, err := w.Run(t.Context(), run, nil); !errors.Is(err, dispatcher.ErrInterrupted) { // it asks for its task
			t.Fatal(err)
		}
	}
	store.Spoil("new", checkpoint.PartInfo)
	var told strings.Builder
	s := &session{config: &config{resume: true}, stderr: &told, dispatcher: w.Dispatcher}
	if err := s.choose(t.Context()); s.run != "old" || err != nil {
		t.Errorf("it goes on with %q, %v, want old", s.run, err)
	}
	if want := "agent: run new can't be read: "; !strings.HasPrefix(told.String(), want) || strings.Count(told.String(), "\n") != 1 {
		t.Errorf("told %q, want %q", told.String(), want)
	}
	s = &session{config: &config{resume: true, answer: new("approve")}, stderr: &told, dispatcher: w.Dispatcher}
	if err := s.choose(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), "-run") {
		t.Errorf("an answer that may be for new is given to %q, %v", s.run, err)
	}
	store.Spoil("old", checkpoint.PartInfo)
	s = &session{config: &config{resume: true}, stderr: &told, dispatcher: w.Dispatcher}
	if err := s.choose(t.Context()); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("with no run that can be read: %q, %v", s.run, err)
	}
}

// A run has one task and one audience: a command for another is refused, and the run stays as it
// is.
func TestARunHasOneTask(t *testing.T) {
	t.Parallel()
	s := newShell(t, "")
	first := s.run(t, "", "-run", "a", "-for", "a child", compare).exits(t, 0).stdout
	for _, args := range [][]string{{"another"}, {"-for", "a judge"}, {"-for", "a judge", compare}} {
		o := s.run(t, "", append([]string{"-run", "a"}, args...)...).exits(t, 2)
		if o.stdout != "" || !strings.Contains(o.stderr, `agent: run "a" has another `) {
			t.Errorf("%q: %+v", args, o)
		}
	}
	for _, args := range [][]string{{}, {compare}, {" " + compare}, {"-for", "a child"}} {
		if o := s.run(t, "", append([]string{"-run", "a"}, args...)...).exits(t, 0); o.stdout != first {
			t.Errorf("%q: printed %q, want %q", args, o.stdout, first)
		}
	}
	s.run(t, "", "-run", "b").exits(t, 3) // asks for its task
	if o := s.run(t, "", "-run", "b", compare).exits(t, 2); !strings.Contains(o.stderr, "-resume -answer") {
		t.Errorf("%+v", o)
	}
}

// What can't be meant is refused before anything is made.
func TestUsage(t *testing.T) {
	t.Parallel()
	s := newShell(t, "")
	for _, args := range [][]string{{"-nonsense"}, {"a", "b"}, {"-resume", "a task"}, {"-answer", "a"}, {"-notes", ""},
		{"-budget", "-1"}, {"-budget", "much"}, {"-budget", "10k"}, {"-budget", "0x100"}, {"-budget", ""}, {"-run", "a\nb"},
		{"-run", "", "-resume"}, {"-store", "", "a"}} {
		if o := s.run(t, "", args...).exits(t, 2); o.stdout != "" || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "agent: ") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	if files, err := os.ReadDir(s.dir); len(files) > 0 || err != nil {
		t.Errorf("made %v, %v", files, err)
	}
	if o := s.run(t, "", "-help").exits(t, 0); !strings.Contains(o.stdout, "-budget") {
		t.Errorf("%+v", o)
	}
}

// A process that is killed where it stands leaves all that it knew to the next one: a call that
// lacks its file, and why it was chosen. Nothing is asked or done twice.
func TestKilledInAThought(t *testing.T) {
	for _, at := range []string{"begin", "work/1/act/2", "work/3/think"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			server, err := script.Serve(script.Mountaineer)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			s := newShell(t, server.URL)
			s.run(t, at, "-store", "s", "-run", "a", noteIt).exits(t, -1)
			if at == "work/3/think" {
				testPartlyFormed(t, s)
			}
			s.run(t, "", "-store", "s", "-resume").exits(t, 3)
			s.run(t, "", "-store", "s", "-resume", "-answer", "alps.txt").exits(t, 3)
			s.run(t, "work/3/act/1", "-store", "s", "-resume", "-answer", "approve").exits(t, -1)
			if o := s.run(t, "", "-store", "s", "-resume").exits(t, 0); o.stdout != difference+"\n" {
				t.Errorf("printed %q", o.stdout)
			}
			raw, err := os.ReadFile(filepath.Join(s.dir, "notes", "alps.txt"))
			if n := strings.Count(string(raw), "\n"); n != 1 || err != nil || server.Calls() != 5 {
				t.Errorf("%d notes, %v, and the model was asked %d times, want 5", n, err, server.Calls())
			}
		})
	}
}

// testPartlyFormed reads the call from the store that the killed process has left.
func testPartlyFormed(t *testing.T, s *shell) {
	t.Helper()
	store, err := badgerstore.Open(t.Context(), filepath.Join(s.dir, "s"), badgerstore.Options{MemTableSize: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	graph, err := newGraph(&Agent{tools: allTools(s.dir)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Dispatcher: d}
	if len(w.partlyFormed(t, "a").Rejected) != 2 {
		t.Error("what was rejected is lost")
	}
}
