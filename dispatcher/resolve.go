package dispatcher

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
)

// A Resolution says what came of an effect that is in doubt: [Happened] or [NotHappened]. The zero
// Resolution says nothing and is refused.
type Resolution struct {
	happened bool
	output   any
	reason   string
}

// Happened says that the effect happened. The output is what its function would have returned, and
// has to fit the type of that. When the visit runs again dag.Effect returns it.
func Happened(output any) Resolution { return Resolution{happened: true, output: output} }

// NotHappened says that the effect did not happen, and how that is known. When the visit runs again
// it does the effect.
func NotHappened(reason string) Resolution { return Resolution{reason: reason} }

// MarshalJSON returns {"happened": output} or {"not_happened": reason}.
func (s Resolution) MarshalJSON() ([]byte, error) {
	kept, err := s.kept()
	if err != nil {
		return nil, err
	}
	return encode(kept), nil
}

// kept is the resolution as the log keeps it.
func (s Resolution) kept() (checkpoint.Resolution, error) {
	if !s.happened {
		return checkpoint.Resolution{NotHappened: strings.ToValidUTF8(clip(s.reason), "\ufffd")}, nil
	}
	output, err := marshal(s.output)
	return checkpoint.Resolution{Happened: output}, err
}

// parseResolution reads one that was given as an answer.
func parseResolution(answer json.RawMessage) (s checkpoint.Resolution, err error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	if err = d.Decode(&s); err != nil {
		err = fmt.Errorf("%s is neither {\"happened\": output} nor {\"not_happened\": reason}", brief(answer))
	}
	return s, err
}

// A ResolutionError says why Resolve was refused. Nothing has changed.
type ResolutionError struct {
	Run, Path, Key string
	Reason         string
	Err            error // ErrNotInDoubt, ErrAnswerType or a *LimitError
}

func (e *ResolutionError) Error() string {
	return fmt.Sprintf("dispatcher: run %q: resolution of effect %q of visit %s refused: %s",
		e.Run, e.Key, e.Path, e.Reason)
}

func (e *ResolutionError) Unwrap() error { return e.Err }

// ErrNotInDoubt: the effect is not in doubt. It has not begun, has ended, or its visit is at work.
var ErrNotInDoubt = errors.New("dispatcher: effect is not in doubt")

// A postedResolution is the Data of a post that says what came of an effect for which no visit
// waits.
type postedResolution struct {
	Turn  int       `json:"turn"`
	Path  string    `json:"path"`
	Key   string    `json:"key"`
	Begun time.Time `json:"begun"`
	By    string    `json:"by,omitempty"`
	checkpoint.Resolution
	// Attempt and Generation tell doubts apart that began at one instant, as a clock may have it.
	// Before there were these Attempt was 0.
	Attempt    int `json:"attempt,omitempty"`
	Generation int `json:"generation,omitempty"`
	// Anew tells a doubt from the one before it, of which what was said was trimmed.
	Anew uint64 `json:"anew,omitempty"`
}

// is reports whether the effect is the one of which somebody has said what happened.
func (s *postedResolution) is(e *effect) bool {
	return e.begun.Equal(s.Begun) && e.anew == s.Anew && (s.Attempt == 0 || s.Attempt == e.attempt && s.Generation == e.generation)
}

// resolve is Resolve. If the visit waits for it, it is an answer. If the visit has ended, it is
// a message, of which there is one for each doubt: whoever has the run drains it, now or when
// it goes on. Else it is an entry in the log of a run that nobody is at work on.
func (c *core) resolve(ctx context.Context, id, path, key string, said Resolution, options []RunOption) error {
	if err := c.exists(ctx, id); err != nil {
		return err
	}
	by, err := c.author(options)
	if err != nil {
		return c.refuse(id, err)
	}
	what, err := said.kept()
	if err != nil {
		return &ResolutionError{id, path, key, plain(err), ErrAnswerType}
	}
	if len(what.Happened) == 0 && what.NotHappened == "" {
		return &ResolutionError{id, path, key, "the Resolution says nothing: use Happened, or NotHappened with a reason", ErrAnswerType}
	}
	if err := c.opts.Limits.allow(what.Happened, "the output"); err != nil {
		return &ResolutionError{id, path, key, plain(err), err}
	}
	m, head, err := c.load(ctx, id, 0)
	if err != nil {
		return c.refuse(id, err)
	}
	if err := m.mayResolve(id, path, key, what); err != nil {
		return err
	}
	t := m.find(path)
	if p := t.doubt(key); p != nil {
		err := c.give(ctx, id, checkpoint.AnswerGiven, map[string]any{p.id: said}, options)
		var refused *AnswerError
		if errors.As(err, &refused) && refused.Err == ErrNotAwaited {
			return &ResolutionError{id, path, key, refused.Reason, ErrNotInDoubt}
		}
		return err
	}
	e := m.effects[path][key]
	s := postedResolution{
		Turn: m.turn, Path: path, Key: key, Begun: e.begun, By: by, Resolution: what, Attempt: e.attempt, Generation: e.generation,
		Anew: e.anew,
	}
	ended := t != nil && (t.phase == failing || t.phase == lapsed || t.phase == finished)
	err = c.settleDoubt(ctx, id, &s, head.Seq, ended)
	var refused *ResolutionError
	if errors.As(err, &refused) {
		return err
	}
	return c.refuse(id, err)
}

// settleDoubt makes it durable what somebody has said of an effect for which no visit waits.
// seen is the entry up to which its author has read the log, post says that the visit has ended.
func (c *core) settleDoubt(ctx context.Context, id string, s *postedResolution, seen uint64, post bool) error {
	p := s.post()
	if post {
		if err := c.store.Post(ctx, id, p); conflict(err) {
			return s.refused(id, "somebody else has said what happened")
		} else if err != nil {
			return err
		}
	}
	err := c.amend(ctx, id, func(m *machine, _ checkpoint.Head) ([]checkpoint.Entry, error) {
		posts, err := c.store.Posts(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, q := range posts {
			if q.ID == p.ID { // it may be somebody else's
				return []checkpoint.Entry{m.drained(q)}, nil
			}
		}
		if post { // it was drained
			return nil, nil
		}
		if err := m.mayResolve(id, s.Path, s.Key, s.Resolution); err != nil {
			return nil, err
		}
		return []checkpoint.Entry{m.resolution(s.Path, s.Key, s.By, "", s.Resolution)}, nil
	})
	switch {
	case err == nil, post && elsewhere(err):
		return c.settled(ctx, id, s, seen)
	case elsewhere(err):
		return s.refused(id, "its visit may be at work: somebody has the run")
	}
	return err
}

// settled looks whether it is what this author has said that counts, if the log tells already.
func (c *core) settled(ctx context.Context, id string, s *postedResolution, seen uint64) error {
	mine := s.post().ID
	for e, err := range c.store.Read(ctx, id, seen+1, 0) {
		if err != nil {
			return unknownIfTrimmed(err)
		}
		if e.Post == mine && e.Kind != checkpoint.EffectEnded {
			return s.refused(id, "it has begun anew, or its visit has gone on, meanwhile")
		}
		var end checkpoint.EndedEffect
		if e.Kind != checkpoint.EffectEnded || e.Path != s.Path || e.ID != s.Key {
			continue
		}
		if err := json.Unmarshal(e.Data, &end); err != nil {
			return &checkpoint.CorruptError{Run: id, Seq: e.Seq, Reason: err.Error()}
		}
		if !endSays(&end, s.Resolution, s.By) {
			return s.refused(id, "somebody else has said what happened")
		}
		return nil
	}
	return nil
}

// post is the message that says it. There is one of each doubt.
func (s *postedResolution) post() checkpoint.Post {
	doubt := []any{s.Turn, s.Path, s.Key, s.Begun}
	if s.Attempt > 1 || s.Generation > 0 {
		doubt = append(doubt, s.Attempt, s.Generation)
	}
	if s.Anew > 0 {
		doubt = append(doubt, "anew", s.Anew)
	}
	name := sha256.Sum256(encode(doubt))
	return checkpoint.Post{ID: "resolution:" + hex.EncodeToString(name[:]), Kind: checkpoint.PostResolution, Data: encode(s)}
}

func (s *postedResolution) refused(id, reason string) error {
	return &ResolutionError{id, s.Path, s.Key, reason, ErrNotInDoubt}
}

// mayResolve says why it can't be said what came of an effect.
func (m *machine) mayResolve(id, path, key string, what checkpoint.Resolution) error {
	if reason := m.resolvable(path, key); reason != "" {
		return &ResolutionError{id, path, key, reason, ErrNotInDoubt}
	}
	want := m.effects[path][key].want
	if p := m.find(path).doubt(key); p != nil {
		want = p.ask.Want
	}
	if err := decodesResolution(want, what); err != nil {
		return &ResolutionError{id, path, key, plain(err), ErrAnswerType}
	}
	return nil
}

// resolvedBy is the entry that drains what somebody has said of an effect, if it is still in
// doubt.
func (m *machine) resolvedBy(p checkpoint.Post) (checkpoint.Entry, bool) {
	var s postedResolution
	if json.Unmarshal(p.Data, &s) != nil || s.Turn != m.turn || m.resolvable(s.Path, s.Key) != "" {
		return checkpoint.Entry{}, false
	}
	if e := m.effects[s.Path][s.Key]; !s.is(e) || acceptsResolution(e.want, s.Resolution) != nil {
		return checkpoint.Entry{}, false
	}
	return m.resolution(s.Path, s.Key, s.By, p.ID, s.Resolution), true
}

// answerDoubt is the entry that drains the answer to an interrupt that waits to be told what
// came of an effect, and that the answer fits.
func (m *machine) answerDoubt(w *pending, answer json.RawMessage, by, post string) checkpoint.Entry {
	s, _ := parseResolution(answer)
	return m.resolution(w.t.path(), w.key, by, post, s)
}

// resolved reports whether the end of an effect is what the reply of somebody has come to.
func (x *reply) resolved(e *checkpoint.Entry, by string) bool {
	var end checkpoint.EndedEffect
	s, err := parseResolution(x.Value)
	return err == nil && json.Unmarshal(e.Data, &end) == nil && end.Interrupt == x.Interrupt && endSays(&end, s, by)
}

// endSays reports whether the end of an effect is what somebody has said.
func endSays(end *checkpoint.EndedEffect, s checkpoint.Resolution, by string) bool {
	return end.Resolved && end.By == by && bytes.Equal(end.Output, s.Happened) && end.NotDone == s.NotHappened
}

// flies reports whether the visit that a post speaks of is running.
func (r *run) flies(p checkpoint.Post) bool {
	var s postedResolution
	return json.Unmarshal(p.Data, &s) == nil &&
		slices.ContainsFunc(r.flight, func(v *visit) bool { return v.path() == s.Path })
}
