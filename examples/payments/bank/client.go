package bank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// A Client speaks to a bank. It is safe for concurrent use.
type Client struct {
	URL string // such as http://127.0.0.1:8470
	// HTTP is what requests are made with. Nil means http.DefaultClient. What it follows
	// or repeats by itself it repeats under the same key; a request without one it does not.
	HTTP *http.Client
}

var (
	// ErrRefused: the bank has refused, and has done nothing.
	ErrRefused = errors.New("bank: refused")
	// ErrUnavailable: the bank was not reached, or is out of service. It has done nothing.
	ErrUnavailable = errors.New("bank: unavailable")
)

// Do asks for an operation under an idempotency key; a transfer takes none. After any error but
// [ErrRefused] and [ErrUnavailable] nobody knows whether it was done.
func (c *Client) Do(ctx context.Context, o Operation, key string, in Request) (Reply, error) {
	var out Reply
	if err := c.call(ctx, http.MethodPost, string(o), key, in, &out); err != nil {
		return Reply{}, fmt.Errorf("%w (%s)", err, o)
	}
	return out, nil
}

// Statement asks what the bank has done.
func (c *Client) Statement(ctx context.Context) (Statement, error) {
	var s Statement
	err := c.call(ctx, http.MethodGet, "statement", "", nil, &s)
	return s, err
}

// Misbehave has something go wrong.
func (c *Client) Misbehave(ctx context.Context, f Fault) error {
	return c.call(ctx, http.MethodPost, "faults", "", f, &f)
}

func (c *Client) call(ctx context.Context, method, path, key string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL+"/"+path, body)
	if err != nil {
		return err
	}
	if key != "" {
		r.Header.Set(keyHeader, key)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(r)
	if err != nil {
		if unsent(err) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return fmt.Errorf("bank: no reply: %w", err)
	}
	defer res.Body.Close()
	return understand(res, out)
}

// unsent reports whether there was nobody to send a request to.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// understand decodes a reply. One that is cut off says nothing of what was done.
func understand(res *http.Response, out any) error {
	dec := json.NewDecoder(res.Body)
	if res.StatusCode == http.StatusOK {
		if err := dec.Decode(out); err != nil {
			return fmt.Errorf("bank: half a reply: %w", err)
		}
		return nil
	}
	var p problem
	if err := dec.Decode(&p); err != nil {
		p.Error = res.Status
	}
	switch res.StatusCode {
	case http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %s", ErrUnavailable, p.Error)
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %s", ErrRefused, p.Error)
	}
	return fmt.Errorf("bank: %s: %s", res.Status, p.Error)
}
