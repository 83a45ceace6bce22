package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlgo/pawl/examples/archivist/model"
)

const key = "sk-test-7f3a9c-not-a-key"

// endpoint serves chat completions as a test has them.
func endpoint(t *testing.T, answer http.HandlerFunc) (*model.Model, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	m, err := model.New(server.URL+"/v1", key, "parrot")
	if err != nil {
		t.Fatal(err)
	}
	return m, asked
}

// stream writes pieces as the chunks of one completion.
func stream(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range pieces {
		text, _ := json.Marshal(p)
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%s}}]}`+"\n\n", text)
	}
	fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func TestWrite(t *testing.T) {
	m, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model    string
			Stream   bool
			Messages []struct{ Role, Content string }
		}
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key ||
			asked.Model != "parrot" || !asked.Stream || len(asked.Messages) != 2 ||
			asked.Messages[0].Content != "be brief" || asked.Messages[1].Content != "say hello" {
			t.Errorf("%v: %s was asked %+v", err, r.URL.Path, asked)
		}
		stream(w, "Hel", "lo, ", "wörld")
	})
	var shown []string
	text, err := m.Write(t.Context(), "parrot", "be brief", "say hello", func(p string) { shown = append(shown, p) })
	if text != "Hello, wörld" || err != nil || strings.Join(shown, "") != text || len(shown) == 0 {
		t.Errorf("wrote %q, %v, and showed %q", text, err, shown)
	}
	if _, err := m.Write(t.Context(), "", "be brief", "say hello", nil); err != nil {
		t.Errorf("shown to nobody: %v", err)
	}
}

// A server that is asked for its key back gives it to nobody.
func TestTheKeyStays(t *testing.T) {
	m, _ := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(w, "your key is ", key[:5], key[5:9], key[9:], " and ", key)
	})
	var shown string
	text, err := m.Write(t.Context(), "", "t", "m", func(p string) { shown += p })
	if want := "your key is [key] and [key]"; text != want || shown != want || err != nil {
		t.Errorf("wrote %q and showed %q, %v, want %q", text, shown, err, want)
	}
	for status := range map[int]bool{http.StatusUnauthorized: true, http.StatusBadRequest: true} {
		m, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"wrong key %s","code":"%s"}}`, key, r.Header.Get("Authorization"))
		})
		if _, err := m.Write(t.Context(), "", "t", "m", nil); err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), key) {
			t.Errorf("%d: %v", status, err)
		}
	}
	m, _ = endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {%s\n\n", key)
	})
	if _, err := m.Write(t.Context(), "", "t", "m", nil); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("rubbish: %v", err)
	}
}

// A busy server that names a short time is asked again after it; one that does not recover is
// given up, and the error says whether it may.
func TestStatuses(t *testing.T) {
	began, busy := time.Now(), true
	m, asked := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		if busy {
			busy = false
			w.Header().Set("Retry-After", "0.3")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		stream(w, "at last")
	})
	text, err := m.Write(t.Context(), "", "t", "m", nil)
	if text != "at last" || err != nil || asked.Load() != 2 || time.Since(began) < 300*time.Millisecond {
		t.Errorf("wrote %q, %v, after %d requests and %v", text, err, asked.Load(), time.Since(began))
	}
	for status, c := range map[int]struct {
		asked     int64
		temporary bool
	}{429: {1, true}, 500: {2, true}, 503: {2, true}, 400: {1, false}, 401: {1, false}, 404: {1, false}} {
		m, asked := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			if w.Header().Set("Retry-After", "0.01"); status == 429 {
				w.Header().Set("Retry-After", "3600") // longer than anybody waits
			}
			w.WriteHeader(status)
		})
		_, err := m.Write(t.Context(), "", "t", "m", nil)
		var refused *model.StatusError
		if !errors.As(err, &refused) || refused.Status != status || refused.Temporary() != c.temporary || asked.Load() != c.asked {
			t.Errorf("%d: %v after %d requests, want %d", status, err, asked.Load(), c.asked)
		}
	}
}

func TestRubbish(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"nothing": func(http.ResponseWriter) {},
		"a page":  func(w http.ResponseWriter) { fmt.Fprint(w, "<html>welcome</html>") },
		"another object": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"object":"list","data":[]}`)
		},
		"no text":  func(w http.ResponseWriter) { stream(w, " ", "\n") },
		"an error": func(w http.ResponseWriter) { fmt.Fprint(w, "data: {\"error\":{\"message\":\"no\"}}\n\n") },
		"no end": func(w http.ResponseWriter) {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")
		},
		"no JSON":       func(w http.ResponseWriter) { fmt.Fprint(w, "data: {{{\n\n") },
		"endless texts": func(w http.ResponseWriter) { stream(w, strings.Repeat(strings.Repeat("x", 1000)+" ", 100)) },
	} {
		m, _ := endpoint(t, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
		if text, err := m.Write(t.Context(), "", "t", "m", nil); err == nil {
			t.Errorf("%s is taken for %.40q", name, text)
		}
	}
}

func TestWriteEndsWithItsContext(t *testing.T) {
	reason := errors.New("enough")
	for _, begun := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		m, _ := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the client has gone
			if begun {
				text := strings.Repeat("a", 2*len(key)) // of which that is shown which can't be the beginning of the key
				fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}`+"\n\n", text)
				w.(http.Flusher).Flush()
			} else {
				cancel(reason)
			}
			<-r.Context().Done()
		})
		if _, err := m.Write(ctx, "", "t", "m", func(string) { cancel(reason) }); !errors.Is(err, reason) {
			t.Errorf("begun %t: %v, want the cause of the end", begun, err)
		}
	}
}

func TestFromEnv(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		name  string // "" is no model
		wrong bool
	}{
		{nil, "", false},
		{map[string]string{"OPENAI_MODEL": "x"}, "", false},
		{map[string]string{"OPENAI_API_KEY": key}, model.DefaultName, false},
		{map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_MODEL": "x"}, "x", false},
		{map[string]string{"OPENAI_BASE_URL": "nowhere"}, "", true},
		{map[string]string{"OPENAI_BASE_URL": "ftp://user:secret@host"}, "", true},
	} {
		m, err := model.FromEnv(func(name string) string { return c.env[name] })
		if (err != nil) != c.wrong || (m != nil) != (c.name != "") || m != nil && m.Name() != c.name {
			t.Errorf("%v: %v, %v", c.env, m, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v tells the password", err)
		}
	}
}

// Without a key none is sent, not even one that the client would find in the environment by itself.
func TestNoKeyIsSent(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, ok := r.Header["Authorization"]; ok {
			t.Errorf("sent %q", got)
		}
		stream(w, "yes")
	}))
	defer server.Close()
	m, err := model.New(server.URL, "", "x")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := m.Write(t.Context(), "", "t", "m", nil); text != "yes" || err != nil {
		t.Errorf("wrote %q, %v", text, err)
	}
}
