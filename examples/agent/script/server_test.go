package script_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/examples/agent/script"
)

func post(t *testing.T, s *script.Server, body string) (int, string) {
	t.Helper()
	r, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(said)
}

// The script hears what was asked, and its line is said in the words of the protocol.
func TestServer(t *testing.T) {
	line := script.Line{Text: "a <word>", Calls: []script.Call{{Tool: "look", Arguments: map[string]int{"n": 1}}}}
	var heard script.Prompt
	s, err := script.Serve(func(p script.Prompt) script.Line { heard = p; return line })
	if err != nil {
		t.Fatal(err)
	}
	const prompt = `{"messages":[{"role":"system","content":"r"},{"role":"user","content":"m"}],"tools":[{"type":"function","function":{"name":"look"}}]}`
	status, said := post(t, s, prompt)
	if status != 200 || heard.Rules != "r" || string(heard.Material) != "m" || len(heard.Tools) != 1 || heard.Tools[0] != "look" {
		t.Errorf("%d, heard %+v", status, heard)
	}
	for _, want := range []string{`"finish_reason":"tool_calls"`, `"name":"look"`, `"arguments":"{\"n\":1}"`, `"total_tokens":3`} {
		if !strings.Contains(said, want) {
			t.Errorf("no %s in %s", want, said)
		}
	}
	line = script.Line{Status: 503}
	if status, _ := post(t, s, prompt); status != 503 {
		t.Errorf("status %d, want 503", status)
	}
	for _, bad := range []string{"", "[]", `{"messages":[]}`} {
		if status, _ := post(t, s, bad); status != 400 {
			t.Errorf("%s: status %d, want 400", bad, status)
		}
	}
	if s.Calls() != 5 {
		t.Errorf("asked %d times, want 5", s.Calls())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(s.URL); err == nil {
		t.Error("it goes on after Close")
	}
}

// The mountaineer says something to everything.
func TestMountaineer(t *testing.T) {
	tools := []string{"search"}
	for material, want := range map[string]string{
		`{"task":"Where is K2?"}`: "",
		`{"task":"Where is K2?","steps":{"01.1":{"tool":{"tool":"search"}}},"facts":{"01.1":{"content":"In the Karakoram.","step":"01.1"}}}`: "In the Karakoram.",
		`{"task":"Where is Oz?","steps":{"01.1":{"tool":{"tool":"search"}}}}`:                                                                "I found nothing about that.",
		`{"task":"How much higher is Oz than K2?","steps":{"01.1":{"tool":{"tool":"search"}}}}`:                                              "My encyclopedia does not know both mountains.",
	} {
		line := script.Mountaineer(script.Prompt{Material: []byte(material), Tools: tools})
		if line.Text != want || (want == "") != (len(line.Calls) == 1) {
			t.Errorf("%s: %+v, want %q", material, line, want)
		}
	}
	if line := script.Mountaineer(script.Prompt{Material: []byte(`{"audience":"a child"}`)}); line.Text != "For a child: I came to no conclusion." {
		t.Errorf("wrote %+v", line)
	}
	if line := script.Mountaineer(script.Prompt{Material: []byte("hello")}); line.Status != 400 {
		t.Errorf("no document: %+v", line)
	}
}
