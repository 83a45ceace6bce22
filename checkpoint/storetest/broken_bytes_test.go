package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
)

// noNUL takes no NUL in what is JSON, as some databases don't.
type noNUL struct{ sound }

var errNUL = errors.New("unsupported Unicode escape sequence")

func hasNUL(data []byte) bool { return bytes.Contains(data, []byte(`\u0000`)) }

func (s noNUL) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	for i := range entries {
		if hasNUL(entries[i].Delta) || hasNUL(entries[i].Outer) || hasNUL(entries[i].Data) {
			return checkpoint.Head{}, errNUL
		}
	}
	return s.Faulty.Append(ctx, l, after, entries)
}

func (s noNUL) Post(ctx context.Context, run string, p checkpoint.Post) error {
	if hasNUL(p.Data) {
		return errNUL
	}
	return s.Faulty.Post(ctx, run, p)
}

// textSnapshots keeps a snapshot up to the first NUL of it.
type textSnapshots struct{ sound }

func (s textSnapshots) Snapshot(ctx context.Context, run string, upTo uint64) (checkpoint.Snapshot, error) {
	snap, err := s.Faulty.Snapshot(ctx, run, upTo)
	snap.Data, _, _ = bytes.Cut(snap.Data, []byte{0})
	return snap, err
}

// meansGraphs reads the JSON of a graph and writes it again.
type meansGraphs struct{ sound }

func (s meansGraphs) Graph(ctx context.Context, digest string) ([]byte, error) {
	graph, err := s.Faulty.Graph(ctx, digest)
	var v any
	if err == nil {
		err = json.Unmarshal(graph, &v)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// narrow has columns in which some things have no room.
type narrow struct {
	sound
	cut func(*checkpoint.Entry)
}

func (s narrow) Append(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry,
) (checkpoint.Head, error) {
	entries = slices.Clone(entries)
	for i := range entries {
		s.cut(&entries[i])
	}
	return s.Faulty.Append(ctx, l, after, entries)
}
