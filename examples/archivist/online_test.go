package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/openlibrary"
)

// A site is Open Library as a test has it: it answers the n-th request, counted from 1.
type site struct {
	*httptest.Server
	asked atomic.Int64
}

func openSite(t *testing.T, answer func(n int64, w http.ResponseWriter, r *http.Request)) *site {
	t.Helper()
	s := new(site)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(s.asked.Add(1), w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func says(status int, text string) func(int64, http.ResponseWriter, *http.Request) {
	return func(_ int64, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

// recordedSearch is an answer of search.json.
func recordedSearch(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("openlibrary", "testdata", "search.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// atSite is a library that may ask a site.
func atSite(t *testing.T, s *site) *Library {
	t.Helper()
	lib := defaultLibrary(t)
	lib.online = (&openlibrary.Client{URL: s.URL, HTTP: s.Client()}).Search
	lib.onlineTimeout = time.Hour // an attempt that is late is one more request
	return lib
}

func TestOnlineFindsJoinTheOthers(t *testing.T) {
	s := openSite(t, says(http.StatusOK, recordedSearch(t)))
	q, ran := answered(t, atSite(t, s), new(memory.Store), "r", "books by Neil Gaiman")
	if !slices.Contains(ran, "by-author/online") || s.asked.Load() != 1 {
		t.Errorf("ran %q, and the site was asked %d times", ran, s.asked.Load())
	}
	online := Citation{"Good Omens", "Terry Pratchett and Neil Gaiman", 1990}
	own := slices.ContainsFunc(q.Citations.Slice(), func(c Citation) bool { return c.Title == online.Title })
	if !own {
		t.Errorf("cited %v, want %v among them", q.Citations.Slice(), online)
	}
	// What both know is one candidate, as the catalogue has it.
	q, _ = answered(t, atSite(t, s), new(memory.Store), "s", "Describe Ficciones")
	if c := q.Shortlist.At(0); q.Shortlist.Len() != 1 || !foundBy(c, Texts) || !foundBy(c, Online) || c.Book.About == fromOpenLibrary {
		t.Errorf("shortlist %+v, want one book that both scouts found", q.Shortlist.Slice())
	}
	q, _ = answered(t, atSite(t, s), new(memory.Store), "t", "Describe Anonymous Mazes")
	if !strings.Contains(flat(q), "“Anonymous Mazes”. "+fromOpenLibrary) {
		t.Errorf("a book of the site is described as\n%s", q.Answer.Get())
	}
}

// Works of one title and author are told apart by their years.
func TestWorksOfOneTitle(t *testing.T) {
	lib := defaultLibrary(t)
	lib.online = func(context.Context, openlibrary.Field, string, int) ([]catalogue.Book, error) {
		return []catalogue.Book{{Title: "X", Author: "Anna Nobody", Year: 1990}, {Title: "X", Author: "Anna Nobody", Year: 2001}}, nil
	}
	q, _ := answered(t, lib, new(memory.Store), "r", "books by Anna Nobody")
	if want := []Citation{{"X", "Anna Nobody", 1990}, {"X", "Anna Nobody", 2001}}; !slices.Equal(q.Citations.Slice(), want) {
		t.Errorf("cited %v, want %v:\n%s", q.Citations.Slice(), want, q.Answer.Get())
	}
}

func TestOpenLibraryIsAskedOnlyWhenItIsWanted(t *testing.T) {
	_, ran := answered(t, defaultLibrary(t), new(memory.Store), "r", labyrinth)
	s := openSite(t, says(http.StatusOK, recordedSearch(t)))
	answered(t, atSite(t, s), new(memory.Store), "r", "the best books about the sea")
	answered(t, atSite(t, s), new(memory.Store), "r", "hello")
	if s.asked.Load() != 0 {
		t.Errorf("ran %q, and the site was asked %d times", ran, s.asked.Load())
	}
}

// Whatever becomes of the site, the catalogue answers; what may pass is tried again.
func TestOnlineFailuresHurtNobody(t *testing.T) {
	want, _ := answered(t, defaultLibrary(t), new(memory.Store), "r", labyrinth)
	for name, c := range map[string]struct {
		answer func(int64, http.ResponseWriter, *http.Request)
		asked  int64
	}{
		"too many requests": {says(http.StatusTooManyRequests, ""), 3},
		"broken":            {says(http.StatusInternalServerError, "<html>"), 3},
		"refusing":          {says(http.StatusForbidden, ""), 1},
		"rubbish":           {says(http.StatusOK, "<html>maintenance</html>"), 3},
		"another shape":     {says(http.StatusOK, `{"works":[]}`), 3},
		"silent":            {nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSite(t, c.answer)
			lib := atSite(t, s)
			if name == "silent" { // over HTTP it could be given up before it is asked
				lib.onlineTimeout = time.Millisecond
				lib.online = func(ctx context.Context, _ openlibrary.Field, _ string, _ int) ([]catalogue.Book, error) {
					s.asked.Add(1)
					<-ctx.Done()
					return nil, ctx.Err()
				}
			}
			q, _ := answered(t, lib, new(memory.Store), "r", labyrinth)
			if !slices.Equal(q.Citations.Slice(), want.Citations.Slice()) {
				t.Errorf("cited %v, want %v", q.Citations.Slice(), want.Citations.Slice())
			}
			if q.Missing.Len() != 1 || !strings.HasPrefix(q.Missing.At(0), "search/online failed: ") {
				t.Errorf("missing %q, want the scout", q.Missing.Slice())
			}
			if n := s.asked.Load(); n != c.asked {
				t.Errorf("the site was asked %d times, want %d", n, c.asked)
			}
		})
	}
}

func TestABusySiteIsAskedAgain(t *testing.T) {
	s := openSite(t, func(n int64, w http.ResponseWriter, r *http.Request) {
		if n < 3 {
			w.Header().Set("Retry-After", "1")
			says(http.StatusTooManyRequests, "")(n, w, r)
			return
		}
		fmt.Fprint(w, recordedSearch(t))
	})
	q, _ := answered(t, atSite(t, s), new(memory.Store), "r", "Describe Anonymous Mazes")
	if q.Citations.Len() != 1 || q.Missing.Len() != 0 || s.asked.Load() != 3 {
		t.Errorf("cited %v after %d requests, missing %q", q.Citations.Slice(), s.asked.Load(), q.Missing.Slice())
	}
}

// The flag, the environment, and a run that goes on without them.
func TestOnlineFlag(t *testing.T) {
	s := openSite(t, says(http.StatusOK, recordedSearch(t)))
	store := t.TempDir()
	on := func(args ...string) outcome {
		cmd := command(t, append([]string{"-store", store, "-json"}, args...)...)
		cmd.Env = append(cmd.Env, "OPENLIBRARY_BASE_URL="+s.URL)
		return finish(t, cmd)
	}
	r := on("-online", "Describe Anonymous Mazes").exits(t, 0).report(t)
	if want := []Citation{{Title: "Anonymous Mazes"}}; !slices.Equal(r.Citations, want) {
		t.Errorf("citations %v, want %v", r.Citations, want)
	}
	asked := s.asked.Load()
	if on("Describe Anonymous Mazes").exits(t, 0); s.asked.Load() != asked {
		t.Errorf("without -online the site was asked: %d requests", s.asked.Load()-asked)
	}
	rest := on("-online", "-run", "held", "-cancel-at", "search/online", labyrinth).exits(t, 3).report(t)
	if !slices.Contains(rest.Cursor, "search/online") {
		t.Errorf("cursor %q, want it at the scout", rest.Cursor)
	}
	r = on("-resume", "-run", "held").exits(t, 0).report(t)
	if len(r.Citations) != listed || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "-online") {
		t.Errorf("without -online it went on to %v, warnings %q", r.Citations, r.Warnings)
	}
}
