package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/record"
)

// awkward is what encoders of JSON like to write in more than one way.
var awkward = []rune("<>&\u2028\u2029\"\\/\b\t\n\x00\x7f\u00e9\ufffd\ufeff\U0001F600\U0010FFFF")

// anyText is a text of any characters.
func anyText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		switch r.IntN(3) {
		case 0:
			b.WriteRune(awkward[r.IntN(len(awkward))])
		case 1:
			b.WriteRune(rune(r.IntN(0xd800)))
		default:
			b.WriteRune(rune(0xe000 + r.IntN(0x110000-0xe000)))
		}
	}
	return b.String()
}

// Whatever texts people and agents write, a record has them as they were written: when it is read
// again, verified, changed, exported and imported, as a record and as the log that it is.
func TestEveryTextIsKept(t *testing.T) {
	directory := func() checkpoint.Store {
		s, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{})
		done(t, err)
		t.Cleanup(func() { done(t, s.Close()) })
		return s
	}
	inMemory := func() checkpoint.Store { return newStore() }
	r := rand.New(rand.NewPCG(7, 7))
	kept(t, inMemory, func() string { return "R&D <b>\u2028\u2029" })
	kept(t, directory, func() string { return "R&D <b>\u2028\u2029" })
	for range 40 {
		kept(t, inMemory, func() string { return anyText(r) })
	}
}

func kept(t *testing.T, store func() checkpoint.Store, text func() string) {
	t.Helper()
	s := store()
	l := ledgerOver(t, s, nil)
	answer, learning, goal := text(), text(), text()
	first := asks("r", record.ResumePoint{Description: text()}, 0)
	first.Learnings = []record.Learning{{ID: "l", Content: learning, LearnedBy: bot}}
	inputs, err := json.Marshal(map[string]string{text(): text()}) // escapes some, which means the same
	done(t, err)
	first.ToolEffects = []record.ToolEffect{{ID: "e", ToolName: text(), Inputs: inputs}}
	v, err := l.Create(t.Context(), first, bot)
	done(t, err)
	_, err = l.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error { r.Task.Goal = goal; return nil }, bot)
	done(t, err)
	want, err := l.Answer(t.Context(), "r", "q", answer, ann)
	done(t, err)

	whole := func(what string, l *record.Ledger) {
		t.Helper()
		v, err := l.Get(t.Context(), "r")
		done(t, err)
		got := []string{v.Record.QuestionsForUser[0].Answer, v.Record.Learnings[0].Content, v.Record.Task.Goal, v.Record.ContentHash}
		same(t, what, got, []string{answer, learning, goal, want.Record.ContentHash})
		if verdict, err := l.Verify(t.Context(), "r"); err != nil || !verdict.Valid {
			t.Errorf("%s, with %q, %q, %q: %+v, %v", what, answer, learning, goal, verdict, err)
		}
	}
	whole("read again", l)
	var file bytes.Buffer
	done(t, l.Export(t.Context(), "r", &file))
	other := ledgerOver(t, store(), nil)
	_, err = other.Import(t.Context(), &file)
	done(t, err)
	whole("imported", other)

	logs, err := s.List(t.Context(), checkpoint.Filter{})
	done(t, err)
	var log bytes.Buffer
	done(t, checkpoint.Export(t.Context(), s, logs[0].Run, &log))
	moved := store()
	_, err = checkpoint.Import(t.Context(), moved, &log, checkpoint.ImportOptions{})
	done(t, err)
	whole("moved with its log", ledgerOver(t, moved, nil))
}

// What is no text, or too long for an answer, is refused by name, and has changed nothing.
func TestTextsThatAreRefused(t *testing.T) {
	b := newBook(t)
	v := b.create(t, asks("r", record.ResumePoint{}, 0))
	for _, answer := range []string{"\xff", strings.Repeat("x", 1<<20+1)} {
		var bad *record.ArgumentError
		err := b.unchanged(t, func() error { _, err := b.Answer(t.Context(), "r", "q", answer, ann); return err })
		if !errors.As(err, &bad) || bad.Argument != "answer" {
			t.Errorf("answer %.5q: %v", answer, err)
		}
	}
	var invalid *record.InvalidError
	err := b.unchanged(t, func() error {
		_, err := b.Update(t.Context(), "r", v.Record.ContentHash, func(r *record.Record) error {
			r.Metadata.Tags = []string{"fine", "\xff"}
			return nil
		}, ann)
		return err
	})
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "Metadata.Tags[1]") {
		t.Errorf("no UTF-8: %v", err)
	}
	_, err = b.Answer(t.Context(), "r", "q", strings.Repeat("x", 1<<20), ann)
	done(t, err)
}

// A last version that can't be read is an error, and never a version without a record.
func TestGetTellsThatNothingCanBeRead(t *testing.T) {
	b := newBook(t)
	b.versions(t, "r", 2)
	var broken *record.BrokenError
	v, err := ledgerOver(t, damagedStore{b.store, preamble + 2}, nil).Get(t.Context(), "r")
	if v != nil || !errors.As(err, &broken) || broken.Version != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}
