package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

func TestAnswerIsOnStandardOutput(t *testing.T) {
	o := archivist(t, labyrinth).exits(t, 0) // in the default store
	want := undisturbed(t).Answer
	if o.stdout != want+"\n" {
		t.Errorf("printed\n%s\nwant\n%s", o.stdout, want)
	}
	for _, path := range everyVisit {
		if !regexp.MustCompile(`(?m)^  ` + path + ` +done +\d+\.\d ms`).MatchString(o.stderr) {
			t.Errorf("no line tells of %s:\n%s", path, o.stderr)
		}
	}
	if !regexp.MustCompile(`  search/plan +done .* ms  library, authors, subjects, earlier\n`).MatchString(o.stderr) {
		t.Errorf("no line tells what was planned:\n%s", o.stderr)
	}
	if strings.Contains(o.stderr, "\x1b") {
		t.Errorf("there are colours where no terminal is:\n%q", o.stderr)
	}
}

func TestDefaultStoreIsInTheCacheDirectory(t *testing.T) {
	cmd := command(t, "-json", labyrinth)
	finish(t, cmd).exits(t, 0)
	if _, err := os.Stat(filepath.Join(cmd.Dir, "cache", "pawl", "archivist")); err != nil {
		t.Error(err)
	}
	homeless := command(t, labyrinth)
	homeless.Env = []string{"PATH=" + os.Getenv("PATH")}
	finish(t, homeless).complains(t, 1, "-store")
}

func TestReport(t *testing.T) {
	o := ask(t, t.TempDir(), "-run", "a run's \"id\" ä").exits(t, 0)
	if o.stderr != "" {
		t.Errorf("-json says on standard error %q", o.stderr)
	}
	r := o.report(t)
	if r.Run != "a run's \"id\" ä" || r.Status != "completed" || r.Superstep != 7 {
		t.Errorf("run %q, status %q, superstep %d", r.Run, r.Status, r.Superstep)
	}
	for _, raw := range []string{`"cursor": null`, `"interrupts": []`, `"warnings": []`} {
		if !strings.Contains(o.stdout, raw) {
			t.Errorf("there is no %s in\n%s", raw, o.stdout)
		}
	}
	if c := r.Citations; len(c) != listed || c[0].Title == "" || c[0].Author == "" || c[0].Year == 0 {
		t.Errorf("citations %+v, want %d with title, author and year", r.Citations, listed)
	}
	want := []visit{
		{"ask", 1, 1, 0}, {"recall", 2, 1, 0}, {"classify", 3, 1, 0},
		{"search/plan", 1, 1, 0},
		{"search/library", 2, 1, 0}, {"search/authors", 2, 1, 0}, {"search/subjects", 2, 1, 0}, {"search/earlier", 2, 1, 0},
		{"search/gather", 3, 1, 0}, {"search/rank", 4, 1, 0}, {"search/cite", 5, 1, 0},
		{"weigh", 5, 1, 0},
		{"compose-loop/1/compose", 1, 1, 0}, {"compose-loop/1/validate", 2, 1, 0},
		{"compose-loop/2/compose", 1, 1, 0}, {"compose-loop/2/validate", 2, 1, 0},
		{"respond", 7, 1, 0},
	}
	if got := withoutTimes(r.Nodes); !slices.Equal(got, want) {
		t.Errorf("nodes %+v, want %+v", got, want)
	}
}

// withoutTimes makes visits comparable: those of a parallel superstep finish in any order, and all
// take their time.
func withoutTimes(visits []visit) []visit {
	place := func(v visit) int { return slices.Index(everyVisit, v.Path) }
	all := slices.Clone(visits)
	for i := range all {
		all[i].MS = 0
	}
	slices.SortStableFunc(all, func(a, b visit) int { return place(a) - place(b) })
	return all
}

// With -slow every scout and every draft takes that much longer, and nothing else does; scouts run
// side by side. How long exactly is seen where nothing but that takes time.
func TestSlowScoutsRunSideBySide(t *testing.T) {
	r := ask(t, t.TempDir(), "-slow", "20ms").exits(t, 0).report(t)
	if r.Answer != undisturbed(t).Answer {
		t.Errorf("slowness changed the answer to\n%s", r.Answer)
	}
	slow := func(path string) bool { return slices.Contains(scouts, path) || strings.HasSuffix(path, "/compose") }
	for _, v := range r.Nodes {
		if slow(v.Path) && v.MS < 20 {
			t.Errorf("%s took %d ms with -slow 20ms", v.Path, v.MS)
		}
	}
	lib := openLibrary(t, catalogue.Default()) // nobody else waits for its index
	lib.slow = time.Hour
	synctest.Test(t, func(t *testing.T) {
		graph, err := newGraph(lib)
		if err != nil {
			t.Fatal(err)
		}
		rec := newRecorder(graph.Plan())
		began := time.Now()
		_, err = dispatch(t, lib, new(memory.Store), dispatcher.Options{Observe: rec.observe}).Run(t.Context(), "r",
			func(q *Inquiry) { q.Query.Set(labyrinth) })
		if took := time.Since(began); err != nil || took != 3*time.Hour { // the scouts, and two drafts
			t.Errorf("the run took %v, %v", took, err)
		}
		for _, v := range rec.visits {
			if took := time.Duration(v.MS) * time.Millisecond; slow(v.Path) && took != time.Hour || !slow(v.Path) && took != 0 {
				t.Errorf("%s took %v", v.Path, took)
			}
		}
	})
}

func TestOffTopicAndNothingFound(t *testing.T) {
	for question, scouted := range map[string]bool{
		"What's the weather like today?": false, "a book about zzyzx": true,
	} {
		r := archivist(t, "-store", t.TempDir(), "-json", question).exits(t, 0).report(t)
		ran := paths(r.Nodes)
		if slices.Contains(ran, "search/library") != scouted || slices.Contains(ran, "compose-loop/1/compose") ||
			!slices.Contains(ran, "respond") {
			t.Errorf("%q executed %q", question, ran)
		}
		if r.Answer == "" || len(r.Citations) != 0 || r.Status != "completed" {
			t.Errorf("%q: status %s, citations %v, answer %q", question, r.Status, r.Citations, r.Answer)
		}
	}
}

func TestCorpus(t *testing.T) {
	dir := t.TempDir()
	corpus := filepath.Join(dir, "books.jsonl")
	write(t, corpus, `{"title":"A Maze of One","subjects":["labyrinths"]}`+"\n")
	r := ask(t, filepath.Join(dir, "s"), "-corpus", corpus).exits(t, 0).report(t)
	if want := []Citation{{Title: "A Maze of One"}}; !slices.Equal(r.Citations, want) {
		t.Errorf("citations %+v, want %+v", r.Citations, want)
	}
	write(t, corpus, `{"name":"no title"}`+"\n")
	ask(t, filepath.Join(dir, "s"), "-corpus", corpus).complains(t, 1, corpus, "line 1")
	ask(t, filepath.Join(dir, "s"), "-corpus", filepath.Join(dir, "absent")).complains(t, 1, "absent")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What the dispatcher warns of is a warning of the run.
func TestWarningsOfTheDispatcher(t *testing.T) {
	s := &session{config: new(config)}
	got := s.warnings(&dispatcher.Result[Inquiry]{
		State: new(Inquiry), Abandoned: []string{"respond"}, Warnings: []string{"the run has rested for 26h"},
	})
	want := []string{"respond did not stop in time and was abandoned", "the run has rested for 26h"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// The lenient line: the same command again, whatever became of the run.
func TestAnExistingRunGoesOn(t *testing.T) {
	store := t.TempDir()
	want := undisturbed(t)
	ask(t, store, "-run", "r", "-cancel-at", "search/rank").exits(t, 3)
	second := ask(t, store, "-run", "r").exits(t, 0).report(t)
	if got := paths(second.Nodes); got[0] != "search/rank" || slices.Contains(got, "search/library") {
		t.Errorf("the second call executed %q, want it to begin at search/rank", got)
	}
	// The question may be left out.
	third := archivist(t, "-store", store, "-json", "-run", "r").exits(t, 0).report(t)
	if len(third.Nodes) != 0 {
		t.Errorf("a completed run executed %q", paths(third.Nodes))
	}
	for i, r := range []report{second, third} {
		if r.Answer != want.Answer {
			t.Errorf("call %d answers\n%s\nwant\n%s", i+2, r.Answer, want.Answer)
		}
	}
	archivist(t, "-store", store, "-json", "-run", "r", "another question").complains(t, 2, "another question")
	archivist(t, "-store", store, "-run", "r", "another question").complains(t, 2, "another question")
}

func TestEarlierQuestionsAreFoundAgain(t *testing.T) {
	store := t.TempDir()
	ask := func(question string) report {
		t.Helper()
		return archivist(t, "-store", store, "-json", question).exits(t, 0).report(t)
	}
	first := ask("a book about mirrors")
	ask("books about mirrors and mazes")
	const memory = "An earlier question, “books about mirrors and mazes”, led to"
	if second := ask("mirrors, a novel"); !strings.Contains(second.Answer, memory) {
		t.Errorf("no earlier question is remembered:\n%s", second.Answer)
	}
	if strings.Contains(first.Answer, "earlier") {
		t.Errorf("an empty store remembers:\n%s", first.Answer)
	}
	o := archivist(t, "-store", store, "a book about mirrors").exits(t, 0)
	if !strings.Contains(o.stderr, "asked before, in run ") {
		t.Errorf("nothing tells that the question was asked before:\n%s", o.stderr)
	}
}

// A question that was asked before is answered as it was then, however often.
func TestTheSameQuestionHasTheSameAnswer(t *testing.T) {
	store := t.TempDir()
	archivist(t, "-store", store, "labyrinths and the moon").exits(t, 0)
	want := ask(t, store).exits(t, 0).report(t).Answer
	for range 3 {
		if got := ask(t, store).exits(t, 0).report(t).Answer; got != want {
			t.Fatalf("answered\n%s\nand then\n%s", want, got)
		}
	}
	if want == undisturbed(t).Answer {
		t.Error("the earlier question made no difference: this test shows nothing")
	}
}

func TestHistory(t *testing.T) {
	store := t.TempDir()
	archivist(t, "-store", filepath.Join(store, "absent"), "-history").complains(t, 1, "no runs")
	ask(t, store, "-run", "first").exits(t, 0)
	archivist(t, "-store", store, "-run", "second", "hello").exits(t, 0)
	newest := archivist(t, "-store", store, "-history").exits(t, 0)
	if n := strings.Count(newest.stdout, "second@"); n != 4 || strings.Contains(newest.stdout, "first") {
		t.Errorf("the newest run has %d checkpoints listed, want 4:\n%s", n, newest.stdout)
	}
	o := archivist(t, "-store", store, "-history", "-run", "first", "-json").exits(t, 0)
	var listing struct {
		Run         string
		Checkpoints []moment
	}
	if err := json.Unmarshal([]byte(o.stdout), &listing); err != nil {
		t.Fatal(err)
	}
	frames := map[string]int{}
	for _, m := range listing.Checkpoints {
		frames[m.Path]++
	}
	want := map[string]int{"": 7, "search": 5, "compose-loop/1": 2, "compose-loop/2": 2}
	if !maps.Equal(frames, want) {
		t.Errorf("checkpoints of frames %v, want %v", frames, want)
	}
	archivist(t, "-store", store, "-history", "-run", "third").complains(t, 1, "third")
}
