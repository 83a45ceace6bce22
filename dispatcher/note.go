package dispatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
)

// What the id of a post begins with that is a note: one with an id of its own, and one without.
const (
	notePrefix     = "note:"
	namelessPrefix = "note-"
)

// noteRun is Note. It posts the note and drains it, as whoever is at work on the run would, so that
// notes stand in the order in which they were posted, and of those with one id one is made. With a
// cursor it is an append alone.
func (c *core) noteRun(ctx context.Context, id, name string, value any, options []RunOption) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	w, err := c.wish(modeNote, options)
	var n json.RawMessage
	if err == nil {
		n, err = c.noteOf(name, value, w.by)
	}
	if err != nil {
		return c.refuse(id, err)
	}
	p := checkpoint.Post{ID: notePrefix + w.message, Kind: checkpoint.PostNote, Data: n}
	if w.from != nil {
		return c.refuse(id, c.amend(ctx, id, func(m *machine, head checkpoint.Head) ([]checkpoint.Entry, error) {
			e := noteEntry(p)
			switch {
			case w.message == "":
				e.Post = ""
			case m.seen[p.ID]:
				return nil, nil
			default:
				waits, err := c.waitingNote(ctx, id, p)
				if err != nil {
					return nil, err
				}
				e.Claims = !waits
			}
			return []checkpoint.Entry{e}, m.standsAt(id, head.Seq, w.from)
		}))
	}
	var there standing
	if w.message == "" {
		p.ID = namelessPrefix + NewRunID()
	} else if there.m, there.head, err = c.machine(ctx, id); err != nil {
		return c.refuse(id, err)
	} else if there.m.seen[p.ID] {
		c.keep(id, there.head, there.m, there.m.read)
		return nil
	}
	if err := c.store.Post(ctx, id, p); err != nil {
		if errors.Is(err, checkpoint.ErrConflict) {
			err = otherNote(p)
		}
		return c.refuse(id, err)
	}
	_, err = c.drain(ctx, id, &posted{Post: p}, there)
	if there.m != nil && conflict(err) { // it does not stand there any more
		_, err = c.drain(ctx, id, &posted{Post: p}, standing{})
	}
	if elsewhere(err) { // whoever has the run takes it
		err = nil
	}
	return c.refuse(id, err)
}

// waitingNote reports whether the note was posted and waits. It refuses another one of its id that
// does.
func (c *core) waitingNote(ctx context.Context, run string, note checkpoint.Post) (bool, error) {
	posts, err := c.store.Posts(ctx, run)
	k := slices.IndexFunc(posts, func(p checkpoint.Post) bool { return p.ID == note.ID })
	if err != nil || k < 0 {
		return false, err
	}
	if !bytes.Equal(posts[k].Data, note.Data) {
		return false, otherNote(note)
	}
	return true, nil
}

func otherNote(note checkpoint.Post) error {
	return &OptionError{"Message", fmt.Sprintf("%q names another note", strings.TrimPrefix(note.ID, notePrefix))}
}

// noteEntry is the entry that a posted note becomes.
func noteEntry(p checkpoint.Post) checkpoint.Entry {
	message, _ := strings.CutPrefix(p.ID, notePrefix)
	if message == p.ID { // it has none
		message = ""
	}
	return checkpoint.Entry{Kind: checkpoint.Noted, ID: message, Post: p.ID, Data: p.Data}
}

// noteOf is the Data of a note that somebody makes from outside.
func (c *core) noteOf(name string, value any, by string) (json.RawMessage, error) {
	if reason := dag.NoteNameProblem(name); reason != "" {
		return nil, &OptionError{fmt.Sprintf("note %.40q", name), reason}
	}
	raw, err := marshalled(value)
	if err != nil {
		return nil, &OptionError{fmt.Sprintf("note %q", name), "has a value that JSON can't say: " + plain(err)}
	}
	if err := c.opts.Limits.allow(raw, "note ", name); err != nil {
		return nil, err
	}
	return encode(checkpoint.Note{Name: name, Value: raw, By: by}), nil
}

// A visitNote is one that a visit has made, on top of those before it.
type visitNote struct {
	name   string
	value  json.RawMessage
	size   int // of this one and those before it, in bytes of the log
	before *visitNote
}

// Note implements [dag.Noter].
func (v *visit) Note(name string, value json.RawMessage) error {
	if v.over() {
		return fmt.Errorf("dispatcher: Note(%q): %w", name, dag.ErrVisitOver)
	}
	limits := &v.host.c.opts.Limits
	if err := limits.allow(value, "note ", name); err != nil {
		return err
	}
	last, did := &visitNote{name: name, value: value}, v.does()
	for {
		last.before = did.notes.Load()
		last.size = len(v.path()) + len(name) + len(value) + entryOverhead
		if last.before != nil {
			last.size += last.before.size
		}
		if last.size > limits.VisitBytes {
			return &LimitError{"visit bytes", limits.VisitBytes, "notes of " + v.path()}
		}
		if did.notes.CompareAndSwap(last.before, last) {
			return nil
		}
	}
}

// notedBytes is what its notes take in the log.
func (v *visit) notedBytes() int {
	if last := v.has().notes.Load(); last != nil {
		return last.size
	}
	return 0
}

// noted says what the visit has noted, before it says that the visit is done: in one append.
func (r *run) noted(v *visit) {
	var all []checkpoint.Entry
	for n := v.has().notes.Load(); n != nil; n = n.before {
		all = append(all, checkpoint.Entry{
			Kind: checkpoint.Noted, Path: v.path(), Step: v.t.frame.step,
			Data: encode(checkpoint.Note{Name: n.name, Value: n.value}),
		})
	}
	for _, e := range slices.Backward(all) {
		r.add(r.said(&e, nil))
	}
}
