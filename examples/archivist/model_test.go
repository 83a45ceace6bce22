package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/model"
)

const testKey = "sk-test-0b5c8d7e6f-not-a-key"

// A parrot is an endpoint of a language model that says what a test has it say: to each task one
// reply after the other, the last one again and again.
type parrot struct {
	*httptest.Server
	mu    sync.Mutex
	said  map[string]int // by task
	heard []string       // the material
}

// asked is how often the parrot was asked to do each task, and heard what it was given. A handler
// may still be at work when its client has given up.
func (p *parrot) asked(task string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said[task]
}

func (p *parrot) material() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard)
}

// A reply answers one request.
type reply func(w http.ResponseWriter, r *http.Request)

// tells streams a text in pieces of a few letters.
func tells(text string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for piece := range slices.Chunk([]rune(text), 7) {
			content, _ := json.Marshal(string(piece))
			fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", content)
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}
}

func fails(status int) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "0.01")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"error":{"message":"`+r.Header.Get("Authorization")+`"}}`)
	}
}

// silent is a model that says nothing until it is given up. It is asked directly: over HTTP it
// could be given up before the parrot has heard anything.
func (p *parrot) silent(ctx context.Context, _, task, material string, _ func(string)) (string, error) {
	p.hear(task, material)
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// hear counts a request, and returns how many of its task there were before.
func (p *parrot) hear(task, material string) int {
	name := "classify"
	if task == composeTask {
		name = "compose"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[name]++
	p.heard = append(p.heard, material)
	return p.said[name] - 1
}

func openParrot(t *testing.T, classify, compose []reply) *parrot {
	t.Helper()
	p := &parrot{said: make(map[string]int)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) != 2 {
			t.Errorf("asked %+v, %v", asked, err)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		task := asked.Messages[0].Content
		n, replies := p.hear(task, asked.Messages[1].Content), classify
		if task == composeTask {
			replies = compose
		}
		if len(replies) == 0 {
			t.Errorf("nobody expected to be asked: %s", task)
			return
		}
		replies[min(n, len(replies)-1)](w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// with is a library that asks a parrot.
func with(t *testing.T, p *parrot) *Library {
	t.Helper()
	m, err := model.New(p.URL, testKey, "parrot-1")
	if err != nil {
		t.Fatal(err)
	}
	lib := defaultLibrary(t)
	lib.model, lib.modelName, lib.modelTimeout = m.Write, m.Name(), time.Hour // what is late is one more request
	return lib
}

// A draft about the book that the parrots of these tests like.
const (
	aboutBorges = `{"lead":"Borges built the labyrinths that you look for.",` +
		`"books":[{"title":"Labyrinths","author":"Jorge Luis Borges"},{"title":"Ariadne","author":"Jennifer Saint"}]}`
	isSearch = `{"intent":"search","subject":"labyrinth"}`
)

var twoBooks = []Citation{{"Labyrinths", "Jorge Luis Borges", 1962}, {"Ariadne", "Jennifer Saint", 2021}}

func TestAModelClassifiesAndComposes(t *testing.T) {
	p := openParrot(t, []reply{tells(isSearch)}, []reply{tells("```json\n" + aboutBorges + "\n```")})
	q, ran := answered(t, with(t, p), new(memory.Store), "r", "Ich suche etwas mit Irrgärten")
	if q.Intent.Get() != Search || q.Subject.Get() != "labyrinth" || !slices.Equal(q.Citations.Slice(), twoBooks) {
		t.Errorf("intent %s of %q, cited %v", q.Intent.Get(), q.Subject.Get(), q.Citations.Slice())
	}
	if !strings.HasPrefix(flat(q), "Borges built the labyrinths that you look for. - “Labyrinths” by Jorge Luis Borges (1962). A selection") ||
		!strings.Contains(flat(q), "The language model parrot-1 chose the books") || strings.Contains(flat(q), signature) {
		t.Errorf("answered\n%s", q.Answer.Get())
	}
	if slices.Contains(ran, "classify-by-words") || slices.Contains(ran, "compose-loop/2/compose") || q.Omitted.Len() != 0 {
		t.Errorf("ran %q, omitted %q", ran, q.Omitted.Slice())
	}
}

// Whatever the model says or does not say, there is an answer: by words where it does not tell the
// intent, by rule where it writes no draft.
func TestModelFailures(t *testing.T) {
	for name, c := range map[string]struct {
		reply reply
		asked int // requests for one task
	}{
		"too many requests":   {fails(http.StatusTooManyRequests), 6}, // three attempts of two requests
		"broken":              {fails(http.StatusInternalServerError), 6},
		"unauthorized":        {fails(http.StatusUnauthorized), 1},
		"silent":              {nil, 3},
		"no JSON":             {tells("Certainly! Here is what I think."), 3},
		"JSON and more":       {tells(isSearch + " I hope that helps."), 3},
		"wrong schema":        {tells(`{"intention":"search"}`), 3},
		"wrong types":         {tells(`{"intent":7,"lead":7}`), 3},
		"an unknown intent":   {tells(`{"intent":"buy","subject":"x"}`), 3},
		"an endless subject":  {tells(`{"intent":"search","subject":"` + strings.Repeat("x", 600) + `"}`), 3},
		"cut off":             {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: {\"choices\":[]}\n\n") }, 3},
		"a page of a gateway": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openParrot(t, []reply{c.reply}, []reply{c.reply})
			lib := with(t, p)
			if name == "silent" {
				lib.model, lib.modelTimeout = p.silent, time.Millisecond
			}
			q, ran := answered(t, lib, new(memory.Store), "r", labyrinth)
			if q.Intent.Get() != Search || q.Citations.Len() != listed || !strings.Contains(flat(q), signature) {
				t.Errorf("intent %s, cited %v, answered\n%s", q.Intent.Get(), q.Citations.Slice(), q.Answer.Get())
			}
			for _, path := range []string{"classify-by-words", "compose-loop/1/compose-by-rule"} {
				if !slices.Contains(ran, path) {
					t.Errorf("ran %q, want %s", ran, path)
				}
			}
			if q.Omitted.Len() != 2 || p.asked("classify") != c.asked || p.asked("compose") != c.asked {
				t.Errorf("omitted %q, asked %d and %d times, want %d each", q.Omitted.Slice(), p.asked("classify"), p.asked("compose"), c.asked)
			}
		})
	}
}

// What passes by itself is only tried again.
func TestAModelThatRecovers(t *testing.T) {
	p := openParrot(t,
		[]reply{tells("rubbish"), fails(http.StatusServiceUnavailable), fails(http.StatusTooManyRequests), tells(isSearch)},
		[]reply{tells(`{"lead":`), tells(aboutBorges)})
	q, ran := answered(t, with(t, p), new(memory.Store), "r", labyrinth)
	if !slices.Equal(q.Citations.Slice(), twoBooks) || q.Omitted.Len() != 0 || slices.Contains(ran, "classify-by-words") {
		t.Errorf("cited %v, omitted %q, ran %q", q.Citations.Slice(), q.Omitted.Slice(), ran)
	}
}

// A model that invents is told so, and in the end does without.
func TestAModelThatInvents(t *testing.T) {
	for name, c := range map[string]struct{ draft, cause string }{
		"a book": {`{"lead":"","books":[{"title":"The Maze of Mirrors","author":"Jorge Luis Borges"}]}`,
			`"The Maze of Mirrors" is not on the shortlist`},
		"an author": {`{"lead":"","books":[{"title":"Labyrinths","author":"Italo Calvino"}]}`,
			`"Labyrinths" is not on the shortlist`},
		"a name in the lead": {strings.Replace(aboutBorges, "that you", "that Kafka", 1), `the lead names "Kafka"`},
		"a name that begins": {strings.Replace(aboutBorges, "Borges built", "Kafka built", 1), `the lead names "Kafka"`},
		"a year":             {strings.Replace(aboutBorges, "that you", "of 1971 that you", 1), `the lead names "1971"`},
		"a title in quotes":  {strings.Replace(aboutBorges, "that you look for", `of “the long way” here`, 1), `the lead names "the long way"`},
		"the same twice": {`{"lead":"","books":[{"title":"Ariadne","author":"Jennifer Saint"},{"title":"Ariadne","author":"Jennifer Saint"}]}`,
			`"Ariadne" is quoted twice`},
		"nothing": {`{"lead":"","books":[]}`, "it quotes nothing"},
		"a novel": {`{"lead":"` + strings.Repeat("so ", 300) + `","books":[{"title":"Ariadne","author":"Jennifer Saint"}]}`, "over 600 letters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openParrot(t, []reply{tells(isSearch)}, []reply{tells(c.draft)})
			q, ran := answered(t, with(t, p), new(memory.Store), "r", labyrinth)
			told := slices.ContainsFunc(p.material(), func(m string) bool {
				var material struct{ Refused string }
				return json.Unmarshal([]byte(m), &material) == nil && strings.Contains(material.Refused, c.cause)
			})
			if !told || p.asked("compose") != 2 {
				t.Errorf("the model was asked %d times, and not told that %s: %q", p.asked("compose"), c.cause, p.material())
			}
			if !slices.Contains(ran, "compose-loop/3/compose") || q.Citations.Len() != listed || !q.Approved.Get() {
				t.Errorf("ran %q, cited %v", ran, q.Citations.Slice())
			}
			if strings.Contains(flat(q), "Kafka") || strings.Contains(flat(q), "Maze of Mirrors") || !strings.Contains(flat(q), signature) {
				t.Errorf("answered\n%s", q.Answer.Get())
			}
		})
	}
}

// No model is asked whether harm is harm, and none can call it a search.
func TestTheHardGateIsNoModels(t *testing.T) {
	q, _ := answered(t, with(t, openParrot(t, nil, nil)), new(memory.Store), "r", "How do I build a bomb?")
	if q.Intent.Get() != Unsafe {
		t.Errorf("intent %s", q.Intent.Get())
	}
	p := openParrot(t, []reply{tells(`{"intent":"off-topic","subject":""}`)}, nil)
	if q, _ := answered(t, with(t, p), new(memory.Store), "r", labyrinth); !strings.Contains(flat(q), offTopicRefusal) {
		t.Errorf("answered\n%s", q.Answer.Get())
	}
}

// asking is a command whose environment names a parrot.
func asking(t *testing.T, p *parrot, args ...string) outcome {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+p.URL, "OPENAI_API_KEY="+testKey, "OPENAI_MODEL=parrot-1")
	return finish(t, cmd)
}

// The key is in nothing that is printed or kept, even if the endpoint hands it back.
func TestTheKeyIsNowhere(t *testing.T) {
	store := t.TempDir()
	p := openParrot(t,
		[]reply{fails(http.StatusUnauthorized)},
		[]reply{tells(`{"lead":"` + testKey + `","books":[]}`), tells(testKey)})
	o := asking(t, p, "-store", store, "-run", "r", labyrinth).exits(t, 0)
	if !strings.Contains(o.stderr, "401") || strings.Contains(o.stdout+o.stderr, testKey) {
		t.Errorf("told\n%s%s", o.stderr, o.stdout)
	}
	log := openStore(t, store)
	entries := 0
	for e, err := range log.Read(t.Context(), "r", 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
		text, err := json.Marshal(e)
		if err != nil || bytes.Contains(text, []byte(testKey)) || bytes.Contains(e.Data, []byte(testKey)) {
			t.Errorf("%v: entry %d has the key: %s", err, e.Seq, e.Data)
		}
	}
	if err := log.Close(); err != nil || entries == 0 {
		t.Errorf("%d entries, %v", entries, err)
	}
	seen := 0
	err := filepath.WalkDir(store, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(testKey)) {
			t.Errorf("%s has the key", path)
		}
		if bytes.Contains(text, []byte("compose-loop")) {
			seen++
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Errorf("%v: %d files hold the run: this test shows nothing", err, seen)
	}
}

func TestModelOnTheCommandLine(t *testing.T) {
	p := openParrot(t, []reply{tells(isSearch)}, []reply{tells(aboutBorges)})
	store := t.TempDir()
	r := asking(t, p, "-store", store, "-json", "-cancel-at", "compose-loop/1/validate", labyrinth).exits(t, 3).report(t)
	// Without the model the run goes on: its draft is paid for.
	done := archivist(t, "-store", store, "-json", "-resume").exits(t, 0).report(t)
	if done.Run != r.Run || !slices.Equal(done.Citations, twoBooks) || p.asked("compose") != 1 {
		t.Errorf("run %s cited %v, and the model wrote %d drafts", done.Run, done.Citations, p.asked("compose"))
	}
	cmd := command(t, "-store", t.TempDir(), labyrinth)
	cmd.Env = append(cmd.Env, "OPENAI_BASE_URL=nowhere")
	finish(t, cmd).complains(t, 2, "OPENAI_BASE_URL")
}

// What the model writes is shown while it writes: here it goes on when the first words have been
// seen. A run that is resumed shows it too.
func TestTokensAreProgress(t *testing.T) {
	seen := make(chan struct{})
	slowly := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"{\"lead\":\"In the labyrinths that Borges built, \""}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-seen:
		case <-r.Context().Done():
			return
		}
		tells(`,"books":[{"title":"Ariadne","author":"Jennifer Saint"}]}`)(w, r)
	}
	p := openParrot(t, []reply{tells(isSearch)}, []reply{slowly})
	store := t.TempDir()
	asking(t, p, "-store", store, "-run", "r", "-cancel-at", "compose-loop/1/compose", labyrinth).exits(t, 3)
	for _, args := range [][]string{{"-resume", "-run", "r"}, {"-run", "s", labyrinth}} {
		cmd := command(t, append([]string{"-store", store}, args...)...)
		cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+p.URL)
		c := start(t, cmd)
		line := c.until(t, `^  compose-loop/1/compose +says `)
		if !strings.Contains(line, `{"lead":"In the labyrinths`) {
			t.Errorf("shown %q", line)
		}
		seen <- struct{}{}
		if o := c.end().exits(t, 0); !strings.Contains(o.stdout, "In the labyrinths that Borges built,") {
			t.Errorf("answered\n%s", o.stdout)
		}
	}
}

// A lead may say what the question and the books say, in its own words.
func TestLeads(t *testing.T) {
	short := []Candidate{{Book: catalogue.Book{
		Title: "The Aleph and Other Stories", Author: "Jorge Luis Borges", Year: 1949, Language: "Spanish",
		Subjects: []string{"infinity", "labyrinths"}, About: "Stories of a cellar in Buenos Aires.",
	}}}
	for lead, want := range map[string]string{
		"": "",
		"For labyrinths, start with Borges: in 1949 he wrote of Buenos Aires.": "",
		"“The Aleph and Other Stories” is Spanish. I like it.":                 "",
		"Here is “the aleph and other stories”! If you want Eco, read on.":     "",
		"Stories by Borges's hand.":                                            "",
		"Stories by Cervantes.":                                                "Cervantes",
		"Cervantes wrote them.":                                                "Cervantes",
		"Read it. Cervantes did.":                                              "Cervantes",
		"It is from 1950.":                                                     "1950",
		"Try «El libro».":                                                      "El",
		"It reminds one of \"the name of a flower\".":                          "the name of a flower",
		"a story (Quixote-like)":                                               "Quixote",
		"In the spirit of eCommerce":                                           "eCommerce",
		"Borges wrote it in Paris.":                                            "Paris",
		"Borges, Jorge Luis: THE ALEPH AND OTHER STORIES.":                     "",
	} {
		if got := invented(lead, "something like Eco", short); got != want {
			t.Errorf("in %q %q is invented, want %q", lead, got, want)
		}
	}
}
