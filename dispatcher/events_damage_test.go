package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A garbled store gives the entry of one number other data than it has.
type garbled struct {
	memory.Store
	at uint64
}

func (s *garbled) Read(ctx context.Context, id string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	return func(yield func(checkpoint.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, id, from, to) {
			if e.Seq == s.at {
				e.Data = json.RawMessage("17")
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// damaging runs a graph into a store, so that its log has most kinds of entries that have data.
func damaging(t *testing.T, store checkpoint.Store) *dispatcher.Dispatcher[Tale] {
	t.Helper()
	b := dag.New[Tale]("damaging")
	dag.Step(b, "pay", func(ctx context.Context, s *Tale) error {
		if dag.Attempt(ctx) == 1 {
			return errors.New("not yet")
		}
		if _, err := dag.Effect(ctx, "card", 1, func(context.Context, int) (int, error) { return 2, nil }); err != nil {
			return err
		}
		word, err := dag.Ask[string](ctx, "word", "which?")
		s.Word.Set(word)
		return err
	}).With(dag.Policy{Attempts: 2})
	d := process(t, frozen(t, b), store, dispatcher.Options{})
	ctx := t.Context()
	_, asked := d.Run(ctx, run, nil)
	answered := d.Answer(ctx, run, "", "first")
	_, completed := d.Run(ctx, run, nil)
	tagged := d.Tag(ctx, run, "1", "paid")
	_, again := d.Turn(ctx, run, func(s *Tale) { s.Count.Add(1) })
	for what, err := range map[string]error{
		"answer": answered, "run": completed, "tag": tagged,
		"edit":   d.Edit(ctx, run, func(s *Tale) { s.Count.Add(1) }, dispatcher.EditOptions{}),
		"cancel": d.Cancel(ctx, run, errors.New("enough")),
		"rewind": d.Rewind(ctx, run, "1", dispatcher.RewindOptions{}),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if !errors.Is(asked, dispatcher.ErrInterrupted) || !errors.Is(again, dispatcher.ErrInterrupted) {
		t.Fatalf("the turns come to %v and %v", asked, again)
	}
	return d
}

// toldUntil reads the events of the run, and returns the number of the last one.
func toldUntil(t *testing.T, d *dispatcher.Dispatcher[Tale]) (seq uint64, err error) {
	t.Helper()
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil {
			return seq, err
		}
		seq = e.Seq
	}
	return seq, nil
}

// An event tells what is in its entry, or is not told: data that can't be read is damage at that
// entry, and everything before it was told. Of entries whose data events have as it is, or do
// not have at all, nothing needs to be read.
func TestEventsOfDamagedEntries(t *testing.T) {
	quiet(t)
	store := new(garbled)
	d := damaging(t, store)
	log := readLog(t, &store.Store)
	read, turns := map[checkpoint.Kind]bool{}, map[uint64]int{}
	for e, err := range d.Events(t.Context(), run, dispatcher.Listen{}) {
		if err != nil {
			t.Fatal(err)
		}
		turns[e.Seq] = e.Turn
	}
	for i := range log {
		e := &log[i]
		if len(e.Data) == 0 {
			continue
		}
		store.at = e.Seq
		told, err := toldUntil(t, d)
		var corrupt *checkpoint.CorruptError
		switch {
		case errors.As(err, &corrupt):
			read[e.Kind] = true
			if corrupt.Seq != e.Seq || told != e.Seq-1 {
				t.Errorf("entry %d is damaged, and behind event %d the reader says %v", e.Seq, told, err)
			}
		case err != nil:
			t.Error(err)
		case e.Kind != checkpoint.Entered && e.Kind != checkpoint.Resumed && e.Kind != checkpoint.Noted:
			t.Errorf("the damage to entry %d, %s, is not told", e.Seq, e.Kind)
		}
	}
	for _, k := range []checkpoint.Kind{
		checkpoint.Opened, checkpoint.TurnBegun, checkpoint.AttemptFailed, checkpoint.EffectBegun, checkpoint.EffectEnded,
		checkpoint.Interrupted, checkpoint.Answered, checkpoint.Cancelled, checkpoint.Edited, checkpoint.Tagged, checkpoint.Rewound,
	} {
		if !read[k] {
			t.Errorf("no damage to an entry %s was told", k)
		}
	}
	for _, e := range log {
		if e.Kind == checkpoint.EffectBegun {
			store.at = e.Seq // who begins behind it asks the entries that come for the turn
		}
	}
	if _, err := d.At(t.Context(), run, "1"); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("what is behind damage is read: %v", err)
	}
	for since := store.at; since <= uint64(len(log)); since++ {
		seq := since
		for e, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: since}) {
			if seq++; err != nil || e.Seq != seq || e.Graph != "damaging" || e.Turn != turns[seq] {
				t.Fatalf("behind damage, since %d, event %d is %s in turn %d, %v, want turn %d", since, seq, e, e.Turn, err, turns[seq])
			}
		}
	}
	for _, e := range log { // who begins in front of these asks them for the turn
		if e.Kind != checkpoint.TurnBegun && e.Kind != checkpoint.Rewound {
			continue
		}
		store.at = e.Seq
		for _, err := range d.Events(t.Context(), run, dispatcher.Listen{Since: e.Seq - 1}) {
			if !errors.Is(err, checkpoint.ErrCorrupt) {
				t.Errorf("entry %d is damaged, and who begins there is told %v", e.Seq, err)
			}
			break
		}
	}
}

// A withheld store has a log that can't be read from wherever it begins, but from an entry that
// is named.
type withheld struct {
	memory.Store
	now bool
}

var errWithheld = errors.New("the disk is gone")

func (s *withheld) Read(ctx context.Context, id string, from, to uint64) iter.Seq2[checkpoint.Entry, error] {
	if from > 0 || !s.now {
		return s.Store.Read(ctx, id, from, to)
	}
	return func(yield func(checkpoint.Entry, error) bool) { yield(checkpoint.Entry{}, errWithheld) }
}

// Why an interrupt does not wait only the log tells. If that can't be read nobody knows, and the
// answer is not said to be refused.
func TestAnswerWhoseRefusalIsNotKnown(t *testing.T) {
	quiet(t)
	store := new(withheld)
	d := damaging(t, store)
	store.now = true
	var refused *dispatcher.AnswerError
	if err := d.Answer(t.Context(), run, "elsewhere", "late"); !errors.Is(err, errWithheld) || errors.As(err, &refused) {
		t.Errorf("the answer to an interrupt that does not wait: %v", err)
	}
}
