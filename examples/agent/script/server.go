// Package script is an endpoint that speaks OpenAI's chat completions and says what a function has
// it say: the agent's model where there is no network.
package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A Prompt is what a model is told.
type Prompt struct {
	Rules    string
	Material []byte
	Tools    []string // by name; none where a text is wanted
}

// A Line is what a model says to a prompt.
type Line struct {
	Text   string
	Calls  []Call
	Status int // of the answer, in place of all that: 503 is a trouble; 0 is none
}

// A Call is a tool that the model wants used.
type Call struct {
	Tool      string
	Arguments any // anything that JSON can say; a json.RawMessage is said as it is, right or wrong
}

// A Server is an endpoint on this machine.
type Server struct {
	URL string // as OPENAI_BASE_URL

	say   func(Prompt) Line
	calls atomic.Int64
	http  http.Server
	ended sync.WaitGroup
}

// Serve opens an endpoint at which say, which may be called side by side, speaks. Close ends it.
func Serve(say func(Prompt) Line) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	s := &Server{URL: "http://" + listener.Addr().String() + "/v1", say: say}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.ended.Go(func() { _ = s.http.Serve(listener) }) // until Close, which waits for it
	return s, nil
}

// Calls is how often the model was asked.
func (s *Server) Calls() int { return int(s.calls.Load()) }

// Close ends the endpoint, and what is being said.
func (s *Server) Close() error {
	err := s.http.Close()
	s.ended.Wait()
	return err
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	prompt, err := read(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	line := s.say(prompt)
	if line.Status != 0 {
		http.Error(w, `{"error":{"message":"as the script says"}}`, line.Status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(completion(prompt, line)) // whom it does not reach tells so itself
}

func read(r *http.Request) (Prompt, error) {
	var asked struct {
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 4<<20)).Decode(&asked); err != nil {
		return Prompt{}, err
	}
	if len(asked.Messages) != 2 {
		return Prompt{}, errors.New("want the rules and the material")
	}
	p := Prompt{Rules: asked.Messages[0].Content, Material: []byte(asked.Messages[1].Content)}
	for _, t := range asked.Tools {
		p.Tools = append(p.Tools, t.Function.Name)
	}
	return p, nil
}

// completion is a line in OpenAI's words. A token is four bytes here.
func completion(p Prompt, line Line) any {
	type object = map[string]any
	message, finish := object{"role": "assistant", "content": line.Text}, "stop"
	var calls []object
	said := len(line.Text)
	for i, c := range line.Calls {
		arguments, ok := c.Arguments.(json.RawMessage)
		if !ok {
			arguments, _ = json.Marshal(c.Arguments)
		}
		said += len(arguments)
		calls = append(calls, object{"id": fmt.Sprintf("call_%d", i+1), "type": "function",
			"function": object{"name": c.Tool, "arguments": string(arguments)}})
	}
	if calls != nil {
		message["tool_calls"], finish = calls, "tool_calls"
	}
	prompt, reply := (len(p.Rules)+len(p.Material))/4, said/4
	return object{
		"id": "scripted", "object": "chat.completion", "model": "script",
		"choices": []object{{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   object{"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply},
	}
}
