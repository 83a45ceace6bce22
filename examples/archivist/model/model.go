// Package model asks a language model, over any endpoint that speaks OpenAI's chat completions.
//
//	m, err := model.FromEnv(os.Getenv)
//	text, err := m.Write(ctx, "", "You are a librarian.", "Greet me.", nil)
package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	// DefaultURL is OpenAI's own endpoint.
	DefaultURL = "https://api.openai.com/v1"
	// DefaultName is the model that is asked if none is named.
	DefaultName = "gpt-4o-mini"

	maxText = 64 << 10 // bytes of one text

	// A server that asks for patience gets it once, if it wants no more than this. Whoever needs
	// more attempts makes them where they are counted in the log of the run.
	retries      = 1
	longestPause = 10 * time.Second
)

// A Model writes text, at an endpoint that may know several. The key stays with it: no error and no
// text that it returns has it.
type Model struct {
	client openai.Client
	name   string
	key    string
}

// New returns the model of this name at url. An empty key is not sent; an empty url or name is the
// default.
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
	options := []option.RequestOption{
		option.WithBaseURL(endpoint), option.WithMaxRetries(retries), option.WithMaxRetryDelay(longestPause),
	}
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

// Name is the name of the model that is asked where no other is named.
func (m *Model) Name() string { return m.name }

// A StatusError is an answer of the endpoint other than 200 OK.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("model: the endpoint answers %d %s", e.Status, http.StatusText(e.Status))
}

// Temporary reports whether the same question may be answered later.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500
}

// Write returns what the model of this name, or [Model.Name] for "", has to say to a task and the
// material for it. Each piece of the text is shown to piece as it comes; nil is nobody.
func (m *Model) Write(ctx context.Context, name, task, material string, piece func(string)) (string, error) {
	stream := m.client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:    cmp.Or(name, m.name),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(task), openai.UserMessage(material)},
	})
	defer stream.Close()
	var text strings.Builder
	finished, shown := false, 0
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			if choice.Index != 0 {
				continue
			}
			finished = finished || choice.FinishReason != ""
			text.WriteString(choice.Delta.Content)
		}
		if text.Len() > maxText {
			return "", fmt.Errorf("model: the text is over %d bytes", maxText)
		}
		shown = m.show(text.String(), shown, finished, piece)
	}
	if err := stream.Err(); err != nil {
		return "", m.failed(ctx, err)
	}
	switch whole := m.redacted(text.String()); {
	case !finished:
		return "", errors.New("model: the text was cut off")
	case strings.TrimSpace(whole) == "":
		return "", errors.New("model: there is no text")
	case !utf8.ValidString(whole):
		return "", errors.New("model: the text is not UTF-8")
	default:
		return whole, nil
	}
}

// show shows what of a text, so far, has not been shown and can't be the beginning of the key. It
// returns how much has been.
func (m *Model) show(text string, shown int, finished bool, piece func(string)) int {
	text = m.redacted(text)
	end := len(text)
	if m.key != "" && !finished {
		end -= len(m.key) - 1
	}
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	if piece == nil || end <= shown {
		return shown
	}
	piece(text[shown:end])
	return end
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
