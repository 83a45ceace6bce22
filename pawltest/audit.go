package pawltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// An audit is a store that holds the beginning of a log, and compares what is to be appended
// to it with what the log goes on with. It keeps nothing of that.
type audit struct {
	base memory.Store // embedded, a method of it that is new would be passed on unseen
	log  []checkpoint.Entry
	head checkpoint.Head
	// origin is what the log of a fork goes on from, without its runs; zero if the run is none.
	origin checkpoint.Fork
	// names are, for each entry, what a migration calls nodes, by the node paths that the log
	// has there: "" is a node that is forgotten.
	names []map[string]string
	// beside are the entries of items that were at work when an attempt of another item failed.
	beside []bool

	mu   sync.Mutex
	want []checkpoint.Entry // what has still to come
	// something here follows from an attempt or an effect that failed, which does not run again, or
	// from a visit that is forgotten: not all may come
	loose bool
	found []string                   // differences
	posts map[string]checkpoint.Post // by questions that are asked anew, and expire
}

// errEnough ends a call from which nothing more is wanted.
var errEnough = errors.New("pawltest: what the log says has been seen")

// begin says that the run goes on from entry cut, and that what the log says up to end has to
// come of it.
func (s *audit) begin(cut, end int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want, s.found, s.loose, s.posts = nil, nil, false, nil
	for i := cut; i < end; i++ {
		e := s.log[i]
		s.loose = s.loose || s.beside[i]
		name, there := s.called(i)
		s.loose = s.loose || !there // the superstep that it was in may have nothing else
		if e.Path = name; there && computed(&e) {
			s.want = append(s.want, e)
		}
	}
}

// end returns what has not come, and what was otherwise.
func (s *audit) end() (missing []checkpoint.Entry, found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loose {
		return nil, s.found
	}
	return s.want, s.found
}

// intercepted reports whether interceptors gave or changed the result that an entry says.
func intercepted(e *checkpoint.Entry) bool {
	var s checkpoint.Substitution
	if e.Kind == checkpoint.Done && len(e.Data) > 0 {
		decode(e.Data, &s)
	}
	return s.Instead != "" || len(s.Replaced) > 0
}

// computed reports whether user code makes what the entry says.
func computed(e *checkpoint.Entry) bool {
	switch e.Kind {
	case checkpoint.Done:
		return !intercepted(e)
	case checkpoint.Entered:
		return e.Path != ""
	case checkpoint.Superstep:
		return true
	case checkpoint.Interrupted:
		return lands(e)
	}
	return false
}

// concerns reports whether a visit, or something inside it, has still to come.
func (s *audit) concerns(visit string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.want, func(e checkpoint.Entry) bool {
		return e.Path == visit || strings.HasPrefix(e.Path, visit+"/")
	})
}

// grow appends entries of the log for good.
func (s *audit) grow(ctx context.Context, run string, entries []checkpoint.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	bare := slices.Clone(entries)
	for i := range bare {
		switch {
		case bare[i].Kind == checkpoint.Interrupted:
			bare[i].Data = timeless(bare[i].Data)
		case bare[i].Kind == checkpoint.Done && len(bare[i].Data) > 0:
			bare[i].Data = fresh(bare[i].Data)
		}
	}
	if s.head.Seq == 0 && s.origin.Base != nil {
		return s.fork(ctx, run, bare)
	}
	l, err := s.base.Acquire(ctx, run, "pawltest")
	if err != nil {
		return err
	}
	if s.head, err = s.base.Append(ctx, l, s.head, bare); err != nil {
		return err
	}
	return s.base.Release(ctx, l)
}

// fork begins the log of a run that is a fork.
func (s *audit) fork(ctx context.Context, run string, entries []checkpoint.Entry) error {
	f := s.origin
	f.Runs = []checkpoint.ForkedRun{{Run: run, Entries: entries}}
	if err := s.base.Fork(ctx, f); err != nil {
		return err
	}
	info, err := s.base.Stat(ctx, run)
	s.head = info.Head
	return err
}

// timeless makes a question wait for ever: how it ended is in the log.
func timeless(data json.RawMessage) json.RawMessage {
	var i checkpoint.Interrupt
	decode(data, &i)
	i.Until, i.Wait, i.Asked = time.Time{}, 0, time.Time{}
	text, err := json.Marshal(i)
	if err != nil {
		panic("pawltest: an interrupt can't be told: " + err.Error())
	}
	return text
}

// fresh makes a visit depend on nothing: what has become stale since is not what is tried.
func fresh(data json.RawMessage) json.RawMessage {
	return substitution(data, func(s *checkpoint.Substitution) { s.Depends = nil })
}

// uncaptured is what a visit depends on without when it looked.
func uncaptured(data json.RawMessage) json.RawMessage {
	return substitution(data, func(s *checkpoint.Substitution) {
		for i := range s.Depends {
			s.Depends[i].Captured = time.Time{}
		}
	})
}

func substitution(data json.RawMessage, change func(*checkpoint.Substitution)) json.RawMessage {
	var s checkpoint.Substitution
	if len(data) == 0 {
		return nil
	}
	decode(data, &s)
	change(&s)
	if len(s.Depends) == 0 && s.Instead == "" && len(s.Replaced) == 0 {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic("pawltest: what a visit depends on can't be told: " + err.Error())
	}
	return text
}

// undated is an interrupt that is timeless, also in its default if that is the wake of a timer of
// package continuation: it says from when on it is missed.
func undated(data json.RawMessage) json.RawMessage {
	var i checkpoint.Interrupt
	decode(timeless(data), &i)
	var letter, trigger map[string]json.RawMessage
	if json.Unmarshal(i.Default, &letter) == nil && json.Unmarshal(letter["trigger"], &trigger) == nil &&
		string(trigger["kind"]) == `"scheduled_wake"` {
		delete(trigger, "missed")
		letter["trigger"], _ = json.Marshal(trigger) // of what was decoded
		i.Default, _ = json.Marshal(letter)
	}
	text, _ := json.Marshal(i)
	return text
}

// Append compares entries with the log. When nothing more is wanted, or an effect begins, the call
// ends here.
func (s *audit) Append(_ context.Context, _ checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range entries {
		delete(s.posts, entries[i].Post)
		if err := s.compare(&entries[i]); err != nil {
			return checkpoint.Head{}, err
		}
	}
	if len(s.want) == 0 {
		return checkpoint.Head{}, errEnough
	}
	after.Seq += uint64(len(entries))
	return after, nil
}

func (s *audit) compare(e *checkpoint.Entry) error {
	switch {
	case e.Kind == checkpoint.EffectBegun:
		if !s.knows(e) {
			s.found = append(s.found, fmt.Sprintf("visit %s begins effect %q, which the log does not have", e.Path, e.ID))
		}
		s.without(e.Path)
		return errEnough
	case e.Kind == checkpoint.AttemptFailed:
		s.failed(e)
		return nil
	case !computed(e):
		return nil
	}
	i := slices.IndexFunc(s.want, func(w checkpoint.Entry) bool {
		return w.Path == e.Path && (w.Kind == e.Kind || lands(&w) && lands(e))
	})
	if i < 0 {
		s.otherwise(e)
		return nil
	}
	w := s.want[i]
	s.want = slices.Delete(s.want, i, i+1)
	s.found = append(s.found, differences(&w, e)...)
	return nil
}

// without leaves out a visit, and what ends when it has ended: of what follows from these not all
// may come.
func (s *audit) without(visit string) {
	s.want = slices.DeleteFunc(s.want, func(w checkpoint.Entry) bool {
		return w.Path == "" || w.Path == visit || strings.HasPrefix(visit, w.Path+"/")
	})
	s.loose = true
}

// left is how much has still to come.
func (s *audit) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.want)
}

// knows reports whether the log has the beginning of an effect, or that a person was asked
// whether it may begin: no gates stand here.
func (s *audit) knows(e *checkpoint.Entry) bool {
	for i := range s.log {
		b := &s.log[i]
		if b.Kind == e.Kind && b.ID == e.ID || gates(b, e.ID) {
			if name, there := s.called(i); there && name == e.Path {
				return true
			}
		}
	}
	return false
}

// gates reports whether an entry asks for the approval of the effect of this key.
func gates(e *checkpoint.Entry, key string) bool {
	var i checkpoint.Interrupt
	if e.Kind == checkpoint.Interrupted {
		decode(e.Data, &i)
	}
	return dispatcher.InterruptKind(i.Kind) == dispatcher.KindEffect && i.Key == key
}

// failed is told of a visit that fails where the log has something else.
func (s *audit) failed(e *checkpoint.Entry) {
	for i, w := range s.want {
		if w.Path == e.Path {
			var f checkpoint.FailedAttempt
			decode(e.Data, &f)
			s.found = append(s.found, fmt.Sprintf("%s, and now it fails (%s): %s", says(&w), f.Kind, clip(f.Message)))
			s.want = slices.Delete(s.want, i, i+1)
			return
		}
	}
}

// otherwise is told of an iteration that begins where the log has the end of its Loop, or
// the other way round.
func (s *audit) otherwise(e *checkpoint.Entry) {
	for i, w := range s.want {
		goes := w.Kind == checkpoint.Done && e.Kind == checkpoint.Entered && strings.HasPrefix(e.Path, w.Path+"/")
		ends := w.Kind == checkpoint.Entered && e.Kind == checkpoint.Done && strings.HasPrefix(w.Path, e.Path+"/")
		if goes || ends {
			s.found = append(s.found, fmt.Sprintf("%s, and now %s", says(&w), comes(e)))
			s.want = slices.Delete(s.want, i, i+1)
			return
		}
	}
}

// says tells what the log says by an entry.
func says(e *checkpoint.Entry) string {
	switch e.Kind {
	case checkpoint.Done:
		if e.Outcome != "" {
			return fmt.Sprintf("visit %s was done with outcome %s", e.Path, e.Outcome)
		}
		return fmt.Sprintf("visit %s was done", e.Path)
	case checkpoint.Entered:
		return fmt.Sprintf("%s was entered", e.Path)
	case checkpoint.Superstep:
		return fmt.Sprintf("superstep %s@%d ended", e.Path, e.Step)
	}
	return fmt.Sprintf("visit %s asked", e.Path)
}

// comes tells the same of an entry that comes now.
func comes(e *checkpoint.Entry) string {
	return strings.NewReplacer(" was ", " is ", " ended", " ends", " asked", " asks").Replace(says(e))
}

// differences says what is otherwise in e, which is to be the same as w.
func differences(w, e *checkpoint.Entry) []string {
	if w.Kind != e.Kind {
		return []string{fmt.Sprintf("%s, and now %s", says(w), comes(e))}
	}
	var all []string
	subject := strings.TrimSuffix(says(w), " was done")
	if w.Outcome != e.Outcome {
		all = append(all, fmt.Sprintf("visit %s took %s, takes %s", w.Path, orNothing(w.Outcome), orNothing(e.Outcome)))
		subject = "visit " + w.Path
	}
	verb := map[checkpoint.Kind]string{checkpoint.Entered: "was given", checkpoint.Superstep: "merged"}[w.Kind]
	verb = cmp.Or(verb, "wrote")
	all = append(all, cells(subject, verb, w.Delta, e.Delta)...)
	all = append(all, cells(subject, verb, w.Outer, e.Outer)...)
	was, is := string(w.Data), string(e.Data)
	switch e.Kind {
	case checkpoint.Interrupted: // when a question is over follows from when it is asked
		was, is = string(undated(w.Data)), string(undated(e.Data))
	case checkpoint.Done:
		was, is = string(uncaptured(w.Data)), string(uncaptured(e.Data))
	}
	if was != is {
		all = append(all, fmt.Sprintf("%s with %s, and now with %s", says(w), orNothing(was), orNothing(is)))
	}
	return all
}

// cells names the cells of which two deltas say different things.
func cells(subject, verb string, was, is json.RawMessage) []string {
	var before, now map[string]json.RawMessage
	if len(was) > 0 {
		decode(was, &before)
	}
	if len(is) > 0 {
		decode(is, &now)
	}
	either := map[string]json.RawMessage{}
	maps.Copy(either, before)
	maps.Copy(either, now)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(either)) {
		if string(before[name]) != string(now[name]) {
			all = append(all, fmt.Sprintf("%s: cell %s %s %s, now %s",
				subject, name, verb, orNothing(string(before[name])), orNothing(string(now[name]))))
		}
	}
	return all
}
