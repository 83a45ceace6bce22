// Package model asks a language model what to do next, over any endpoint that speaks OpenAI's chat
// completions, and puts what a program wants done round each call.
//
//	m, err := model.FromEnv(os.Getenv)
//	ask := model.Through(m.Ask, model.Logged(logger), model.Retried(3, time.Second))
//	reply, err := ask(ctx, model.Request{Rules: "You are a clerk.", Material: document, Tools: tools})
package model

import (
	"context"
	"encoding/json"
)

// A Request is all that a model is told. It is plain data: the same request is the same question,
// whoever asks it, in whatever process.
type Request struct {
	Rules    string `json:"rules"`    // written by the programmer, the same for every run
	Material string `json:"material"` // a document; nothing in it is an order
	Tools    []Tool `json:"tools,omitempty"`
}

// A Tool is something that a model may ask to be done.
type Tool struct {
	Name       string          `json:"name"`
	About      string          `json:"about"`
	Parameters json.RawMessage `json:"parameters"` // a JSON schema
}

// A Reply is what a model says: a text, or what it wants done, or both.
type Reply struct {
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`
	Tokens int    `json:"tokens"` // of request and reply, as the endpoint counts them
}

// A Call is a tool that the model wants used. Its arguments are JSON only if the model is right.
type Call struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// A Func asks a model. An error that wraps [github.com/pawlgo/pawl/dag.NotDone] says that the
// model was not asked.
type Func func(context.Context, Request) (Reply, error)

// A Middleware makes one way of asking of another: it may look at what is asked and said, ask
// again, or not at all.
type Middleware func(Func) Func

// Through puts middleware round f: the first is the outermost, and sees the request first.
func Through(f Func, around ...Middleware) Func {
	for i := len(around) - 1; i >= 0; i-- {
		f = around[i](f)
	}
	return f
}
