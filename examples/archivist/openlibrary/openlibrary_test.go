package openlibrary_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/examples/archivist/catalogue"
	"github.com/pawlgo/pawl/examples/archivist/openlibrary"
)

// site serves one answer to everybody.
func site(t *testing.T, answer http.HandlerFunc) *openlibrary.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &openlibrary.Client{URL: server.URL, HTTP: server.Client()}
}

func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSearch(t *testing.T) {
	var asked *http.Request
	client := site(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		body(http.StatusOK, recorded(t, "search.json"))(w, r)
	})
	got, err := client.Search(t.Context(), openlibrary.Subject, "mazes & more", 4)
	if err != nil {
		t.Fatal(err)
	}
	want := []catalogue.Book{
		{Title: "Ficciones", Author: "Jorge Luis Borges", Year: 1944},
		{Title: "Good Omens", Author: "Terry Pratchett and Neil Gaiman", Year: 1990},
		{Title: "Anonymous Mazes"},
		{Title: "A Year That Cannot Be", Author: "A. N. Other"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("books %+v, want %+v", got, want)
	}
	q := asked.URL.Query()
	if asked.URL.Path != "/search.json" || q.Get("subject") != "mazes & more" || q.Get("limit") != "4" {
		t.Errorf("asked for %s", asked.URL)
	}
	if !strings.Contains(asked.UserAgent(), "archivist") {
		t.Errorf("the site is not told who asks: %q", asked.UserAgent())
	}
}

func TestNothingFound(t *testing.T) {
	client := site(t, body(http.StatusOK, recorded(t, "nothing.json")))
	got, err := client.Search(t.Context(), openlibrary.Everywhere, "zzyzx", 4)
	if len(got) != 0 || err != nil {
		t.Errorf("found %v, %v", got, err)
	}
}

func TestStatuses(t *testing.T) {
	for status, temporary := range map[int]bool{400: false, 404: false, 429: true, 500: true, 503: true} {
		client := site(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			body(status, "<html>no</html>")(w, r)
		})
		_, err := client.Search(t.Context(), openlibrary.Everywhere, "x", 4)
		var refused *openlibrary.StatusError
		if !errors.As(err, &refused) || refused.Status != status || refused.RetryAfter != "7" || refused.Temporary() != temporary {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestRubbish(t *testing.T) {
	for _, text := range []string{
		"", "<html>maintenance</html>", "null", "{}", `{"docs":null}`, `{"docs":{}}`, `{"docs":["a"]}`,
		`{"docs":[{"title":7}]}`, `{"docs":[{"title":"cut`, "{\"docs\":[{\"title\":\"\xff\"}]}",
		`{"docs":[]}` + strings.Repeat(" ", 2<<20),
	} {
		client := site(t, body(http.StatusOK, text))
		if got, err := client.Search(t.Context(), openlibrary.Everywhere, "x", 4); err == nil {
			t.Errorf("%.40q is taken for %v", text, got)
		}
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	client := site(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := client.Search(ctx, openlibrary.Everywhere, "x", 4); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("returned %v", err)
	}
	nobody := &openlibrary.Client{URL: "http://127.0.0.1:1"}
	if _, err := nobody.Search(t.Context(), openlibrary.Everywhere, "x", 4); err == nil {
		t.Error("nobody answered")
	}
}
