package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/pawlgo/pawl/dag"
)

const (
	// DefaultURL is OpenAI's own endpoint.
	DefaultURL = "https://api.openai.com/v1"
	// DefaultName is the model that is asked if none is named.
	DefaultName = "gpt-4o-mini"

	maxText = 64 << 10 // bytes of a reply's text, and of the arguments of one call
)

// A Model is one at an endpoint. The key stays with it: no reply and no error has it.
type Model struct {
	client openai.Client
	name   string
	key    string
}

// New returns the model of this name at an endpoint. An empty key is not sent; an empty endpoint or
// name is the default.
func New(endpoint, key, name string) (*Model, error) {
	if endpoint == "" {
		endpoint = DefaultURL
	}
	if name == "" {
		name = DefaultName
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("model: OPENAI_BASE_URL is not the URL of an endpoint") // it may hold a password
	}
	// The client's own retries would be seen by no middleware.
	options := []option.RequestOption{option.WithBaseURL(endpoint), option.WithMaxRetries(0)}
	if key != "" {
		options = append(options, option.WithAPIKey(key))
	} else {
		options = append(options, option.WithHeaderDel("authorization")) // of the environment, which the client reads by itself
	}
	return &Model{openai.NewClient(options...), name, key}, nil
}

// FromEnv returns the model that OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL name, or nil if
// neither of the first two is set.
func FromEnv(getenv func(string) string) (*Model, error) {
	endpoint, key := getenv("OPENAI_BASE_URL"), getenv("OPENAI_API_KEY")
	if endpoint == "" && key == "" {
		return nil, nil
	}
	return New(endpoint, key, getenv("OPENAI_MODEL"))
}

// A StatusError is an answer of the endpoint other than 200 OK.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("model: the endpoint answers %d %s", e.Status, http.StatusText(e.Status))
}

// Temporary reports whether the same request may be answered later.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500
}

// Unwrap returns [dag.NotDone] where the endpoint has refused to answer.
func (e *StatusError) Unwrap() error {
	if e.Status >= 400 && e.Status < 500 {
		return dag.NotDone
	}
	return nil
}

// Ask asks the model.
func (m *Model) Ask(ctx context.Context, r Request) (Reply, error) {
	params := openai.ChatCompletionNewParams{
		Model:       m.name,
		Temperature: param.NewOpt(0.0),
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(r.Rules), openai.UserMessage(r.Material)},
	}
	for _, t := range r.Tools {
		var schema shared.FunctionParameters
		if err := json.Unmarshal(t.Parameters, &schema); err != nil {
			return Reply{}, fmt.Errorf("model: the parameters of tool %q: %w", t.Name, err)
		}
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.Name, Description: param.NewOpt(t.About), Parameters: schema,
		}))
	}
	said, err := m.client.Chat.Completions.New(ctx, params)
	if err != nil {
		return Reply{}, m.failed(ctx, err)
	}
	return m.reply(said)
}

// reply is what of a completion is kept.
func (m *Model) reply(said *openai.ChatCompletion) (Reply, error) {
	if len(said.Choices) == 0 {
		return Reply{}, errors.New("model: there is no reply")
	}
	message := said.Choices[0].Message
	r := Reply{Text: m.redacted(message.Content), Tokens: int(max(0, said.Usage.TotalTokens))}
	for _, c := range message.ToolCalls {
		r.Calls = append(r.Calls, Call{m.redacted(c.Function.Name), m.redacted(c.Function.Arguments)})
	}
	texts := []string{r.Text}
	for _, c := range r.Calls {
		texts = append(texts, c.Tool, c.Arguments)
	}
	for _, text := range texts {
		switch {
		case len(text) > maxText:
			return Reply{}, fmt.Errorf("model: the reply is over %d bytes", maxText)
		case !utf8.ValidString(text):
			return Reply{}, errors.New("model: the reply is not UTF-8")
		}
	}
	switch {
	case said.Choices[0].FinishReason == "length":
		return Reply{}, errors.New("model: the reply was cut off")
	case strings.TrimSpace(r.Text) == "" && len(r.Calls) == 0:
		return Reply{}, errors.New("model: the reply says nothing")
	}
	return r, nil
}

// failed is err in words that may be kept.
func (m *Model) failed(ctx context.Context, err error) error {
	var api *openai.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("model: %w", context.Cause(ctx))
	case errors.As(err, &api) && api.StatusCode != http.StatusOK:
		return &StatusError{api.StatusCode}
	}
	return errors.New("model: " + m.redacted(err.Error()))
}

// redacted takes the key out of a text: a server may echo it.
func (m *Model) redacted(text string) string {
	if m.key == "" {
		return text
	}
	return strings.ReplaceAll(text, m.key, "[key]")
}
