package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/examples/agent/model"
)

const key = "sk-test-91ab77-not-a-key"

func endpoint(t *testing.T, answer http.HandlerFunc) *model.Model {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	m, err := model.New(server.URL+"/v1", key, "parrot")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// says answers with one choice.
func says(message, finish string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"index":0,"finish_reason":%q,"message":%s}],"usage":{"total_tokens":42}}`, finish, message)
	}
}

// A request arrives as it is, and what is said comes back typed.
func TestAsk(t *testing.T) {
	m := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Model       string
			Temperature *float64
			Messages    []struct{ Role, Content string }
			Tools       []struct {
				Type     string
				Function struct {
					Name, Description string
					Parameters        json.RawMessage
				}
			}
		}
		err := json.NewDecoder(r.Body).Decode(&asked)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+key || asked.Model != "parrot" || asked.Temperature == nil ||
			len(asked.Messages) != 2 || asked.Messages[0].Content != "be brief" || asked.Messages[1].Content != "{}" ||
			len(asked.Tools) != 1 || asked.Tools[0].Function.Name != "look" || string(asked.Tools[0].Function.Parameters) != `{"type":"object"}` {
			t.Errorf("%v: asked %+v", err, asked)
		}
		says(`{"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{\"at\":"}}]}`,
			"tool_calls")(w, r)
	})
	reply, err := m.Ask(t.Context(), model.Request{Rules: "be brief", Material: "{}",
		Tools: []model.Tool{{Name: "look", About: "Looks.", Parameters: json.RawMessage(`{"type":"object"}`)}}})
	if err != nil || reply.Text != "I look." || reply.Tokens != 42 || len(reply.Calls) != 1 || reply.Calls[0] != (model.Call{Tool: "look", Arguments: `{"at":`}) {
		t.Errorf("%+v, %v", reply, err)
	}
}

// What can't be used is an error, and what the endpoint has refused did not happen.
func TestAskRefused(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"nothing":    says(`{"role":"assistant","content":" "}`, "stop"),
		"cut off":    says(`{"role":"assistant","content":"half a"}`, "length"),
		"no choice":  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `oops`) },
		"endless":    says(fmt.Sprintf(`{"content":%q}`, strings.Repeat("a", 65<<10)), "stop"),
		"long calls": says(fmt.Sprintf(`{"tool_calls":[{"function":{"name":"a","arguments":%q}}]}`, strings.Repeat("a", 65<<10)), "tool_calls"),
	} {
		if reply, err := endpoint(t, answer).Ask(t.Context(), model.Request{}); err == nil {
			t.Errorf("%s: %+v", name, reply)
		}
	}
	for status, notDone := range map[int]bool{401: true, 429: true, 500: false, 503: false} {
		m := endpoint(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, key, status) })
		_, err := m.Ask(t.Context(), model.Request{})
		var refused *model.StatusError
		if !errors.As(err, &refused) || refused.Status != status || errors.Is(err, dag.NotDone) != notDone || strings.Contains(err.Error(), key) {
			t.Errorf("%d: %v", status, err)
		}
	}
	m := endpoint(t, says(`{}`, "stop"))
	if _, err := m.Ask(t.Context(), model.Request{Tools: []model.Tool{{Name: "bad", Parameters: json.RawMessage(`[`)}}}); err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("bad parameters: %v", err)
	}
}

// An endpoint that is asked for its key back gives it to nobody.
func TestTheKeyStays(t *testing.T) {
	m := endpoint(t, says(fmt.Sprintf(`{"content":"it is %s","tool_calls":[{"function":{"name":"a","arguments":"{\"k\":\"%s\"}"}}]}`, key, key), "tool_calls"))
	reply, err := m.Ask(t.Context(), model.Request{})
	if err != nil || strings.Contains(fmt.Sprint(reply), key) || reply.Text != "it is [key]" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestFromEnv(t *testing.T) {
	env := func(all map[string]string) func(string) string { return func(name string) string { return all[name] } }
	if m, err := model.FromEnv(env(nil)); m != nil || err != nil {
		t.Errorf("an empty environment: %v, %v", m, err)
	}
	if m, err := model.FromEnv(env(map[string]string{"OPENAI_API_KEY": key})); m == nil || err != nil {
		t.Errorf("a key: %v, %v", m, err)
	}
	if _, err := model.FromEnv(env(map[string]string{"OPENAI_BASE_URL": "user:password@nowhere"})); err == nil || strings.Contains(err.Error(), "password") {
		t.Errorf("no URL: %v", err)
	}
}

// Without a key none is sent, not even one that the client would find in the environment by itself.
func TestNoKeyIsSent(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", key)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, ok := r.Header["Authorization"]; ok {
			t.Errorf("sent %q", got)
		}
		says(`{"role":"assistant","content":"yes"}`, "stop")(w, r)
	}))
	defer server.Close()
	m, err := model.New(server.URL, "", "x")
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := m.Ask(t.Context(), model.Request{}); reply.Text != "yes" || err != nil {
		t.Errorf("%+v, %v", reply, err)
	}
}
