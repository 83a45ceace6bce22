package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/pawlgo/pawl/continuation"
	"github.com/pawlgo/pawl/dag"
)

// A treasury pays, into a file: a line for each payment. It stands for a service that knows a
// payment by its idempotency key.
type treasury struct{ file string }

// A payment is a line of the file.
type payment struct {
	Key   string `json:"key"`
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// pay is the node that pays. The effect may be done again, since its other side knows the key.
func (t treasury) pay(ctx context.Context, r *Refund) error {
	p := payment{Order: r.Order.Get(), Cents: r.Cents.Get()}
	receipt, err := dag.Effect(ctx, "pay", p, func(ctx context.Context, p payment) (string, error) {
		p.Key = dag.Key(ctx)
		return t.transfer(p)
	}, dag.Replayable, dag.Operation("refund"))
	if err != nil {
		return err
	}
	r.Receipt.Set(receipt)
	return nil
}

// paying is held by who pays: one payment comes after the other.
var paying sync.Mutex

// transfer pays once for each key.
func (t treasury) transfer(p payment) (receipt string, err error) {
	paying.Lock()
	defer paying.Unlock()
	paid, err := t.payments()
	if err != nil {
		return "", err
	}
	for i, old := range paid {
		if old.Key == p.Key {
			return fmt.Sprint("receipt ", i+1), nil
		}
	}
	f, err := os.OpenFile(t.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	err = json.NewEncoder(f).Encode(p)
	return fmt.Sprint("receipt ", len(paid)+1), errors.Join(err, f.Sync(), f.Close())
}

// payments are those that were made.
func (t treasury) payments() (all []payment, err error) {
	f, err := os.Open(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var p payment
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, lines.Err()
}

// expired reports whether a wait ended because nobody answered.
func expired(err error) bool {
	var ended *continuation.Ended
	return errors.As(err, &ended) && ended.Reason == continuation.Expired
}
