package dispatcher_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/pawltest"
)

// A taped store has accounts read a log before it is trimmed.
type taped struct {
	*pawltest.Mortal
	play *play

	mu     sync.Mutex
	left   int
	cancel func()
}

// cuts has a call cancelled behind an append.
func (s *taped) cuts(left int, cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.cancel = left, cancel
}

func (s *taped) Append(ctx context.Context, l checkpoint.Lease, after checkpoint.Head, entries []checkpoint.Entry) (checkpoint.Head, error) {
	head, err := s.Mortal.Append(ctx, l, after, entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 && s.cancel != nil {
		s.cancel()
		s.play.tell("  cancelled")
	}
	return head, err
}

func newTaped() *taped {
	return &taped{Mortal: &pawltest.Mortal{Store: new(memory.Store)}}
}

func (s *taped) Trim(
	ctx context.Context, l checkpoint.Lease, after checkpoint.Head, e checkpoint.Entry, bases ...[]byte,
) (checkpoint.Head, error) {
	s.play.sync(s.play.books[l.Run])
	return s.Mortal.Trim(ctx, l, after, e, bases...)
}

// An account is what a log says of the effects of a run, as somebody reads it who knows which role
// has which name, keeps what was trimmed, and takes nothing from what the dispatcher knows.
type account struct {
	p       *play
	id      string
	moments []moment // behind each entry
	rewound int
	first   uint64 // the oldest entry that is left
	keys    map[string]*deed
	deeds   []*deed
	refused bool

	how   dispatcher.EffectsOfFork // of a fork
	fork  bool
	shelf map[act]bool
	lossy bool // of what its origin has returned something may be gone
}

// A moment is where a run stands.
type moment struct {
	in      *program
	turn    int
	vacated map[string]int
	deeds   map[act]*deed // never written to
	rewound int
	went    [][2]uint64 // back: from which entry to which
}

// leads reports whether an entry led to the moment, which is behind another one.
func (m *moment) leads(seq, at uint64) bool {
	for _, w := range slices.Backward(m.went) {
		if w[0] <= seq && seq <= at {
			return true
		}
		at = w[1]
	}
	return seq <= at
}

// A deed is an effect of a visit that is done once, however often that is tried, and in however
// many pasts.
type deed struct {
	act    act
	keys   []string // under which it has begun
	past   []change
	replay bool
	unsure bool // what came of it was trimmed before a run went back
	astray bool // and it had begun there under a key that nobody can know any more
}

type change struct {
	seq     uint64
	is      string
	key     string // under which it has begun
	rewound int
}

func (d *deed) at(seq uint64) (is string) {
	for _, c := range d.past {
		if c.seq <= seq {
			is = c.is
		}
	}
	return is
}

func (d *deed) is() string  { return d.past[len(d.past)-1].is }
func (d *deed) key() string { return d.keys[len(d.keys)-1] }

// now is where the run stands, nil if it is not there.
func (a *account) now() *moment {
	if len(a.moments) == 0 {
		return nil
	}
	return &a.moments[len(a.moments)-1]
}

// hinders reports whether an effect keeps a run from going on with a program: one in doubt, or one
// that a new role of a name that was taken might do again.
func (a *account) hinders(in *program) bool {
	m := a.now()
	for x, d := range m.deeds {
		id := unnumbered(x.place)
		if (d.is() == "begun" || d.unsure) && m.in.path(id) != in.path(id) {
			return true
		}
		if d.is() != "not done" && in.replaces(m.in, id) {
			return true
		}
	}
	return false
}

// knows checks what is said of an effect in doubt.
func (a *account) knows(e dispatcher.OpenEffect) {
	m := a.now()
	x := act{m.turn, m.in.place(e.Path), e.Key}
	switch d := m.deeds[x]; {
	case d == nil:
		a.p.errorf("%s is in doubt about %s, which has not begun", a.id, e.ID)
	case !slices.Contains(d.keys, e.ID) && !d.unsure:
		a.p.errorf("%s is in doubt about %s, which has begun as %q", a.id, e.ID, d.keys)
	case d.is() != "begun" && !d.unsure:
		a.p.errorf("%s is in doubt about %s, which is %s", a.id, e.ID, d.is())
	}
}

// refuses checks that an effect was refused for a reason.
func (a *account) refuses(effect string) {
	a.refused = true
	a.p.told["refused"]++
	for x := range a.shelf {
		if x.String() == effect && !a.lossy && !a.p.extra(x.place) {
			a.p.errorf("%s refuses %s, which its origin has done", a.id, effect)
		}
	}
	if !a.fork || a.how == dispatcher.Live || a.how == dispatcher.ReuseOrLive && !a.lossy {
		a.p.errorf("%s refuses %s", a.id, effect)
	}
}

// forked is the account of a fork.
func (p *play) forked(a *account, at, into string, how dispatcher.EffectsOfFork) *account {
	_, number, _ := strings.Cut(at, "@")
	seq, _ := strconv.ParseUint(number, 10, 64)
	f := &account{p: p, id: into, fork: true, how: how, keys: map[string]*deed{}, shelf: map[act]bool{}, first: 1}
	f.lossy = seq+1 < a.first || a.lossy
	if a.how != dispatcher.Live {
		maps.Copy(f.shelf, a.shelf)
	}
	for _, d := range a.deeds {
		for _, c := range d.past {
			if c.is == "ended" && (c.seq > seq || a.moments[seq-1].deeds[d.act] == d) {
				f.shelf[d.act] = true
			}
		}
	}
	p.books[into] = f
	f.moments = []moment{{vacated: a.moments[seq-1].vacated}} // until its log is read
	p.sync(f)
	p.told["forks"]++
	return f
}

// sync reads what is new in the log of a run.
func (p *play) sync(a *account) {
	if a == nil {
		return
	}
	store := p.store.Mortal.Store
	if a.fork && a.now().in == nil {
		a.moments = a.moments[:0:1]
	}
	if _, err := store.Stat(p.t.Context(), a.id); err != nil { // it is not there
		return
	}
	for e, err := range store.Read(p.t.Context(), a.id, uint64(len(a.moments))+1, 0) {
		if err != nil {
			p.t.Fatal(err)
		}
		m := moment{}
		if n := len(a.moments); n > 0 {
			m = a.moments[n-1]
		} else if a.fork {
			m.vacated = a.moments[:1][0].vacated
		}
		a.read(&m, &e)
		a.moments = append(a.moments, m)
	}
	a.adds()
	p.mu.Lock()
	refused := p.refused
	p.refused = nil
	p.mu.Unlock()
	for _, effect := range refused {
		a.refuses(effect)
	}
}

func decoded[T any](e *checkpoint.Entry) (d T) {
	if err := json.Unmarshal(e.Data, &d); err != nil {
		panic(err)
	}
	return d
}

func (p *play) programOf(digest string) *program {
	return p.programs[slices.IndexFunc(p.programs, func(in *program) bool { return in.graph.Digest() == digest })]
}

// read goes on by an entry.
func (a *account) read(m *moment, e *checkpoint.Entry) {
	p := a.p
	p.tell("    %s %d %s %s %s %.0s", a.id, e.Seq, e.Kind, e.Path, e.ID, e.Data)
	switch e.Kind {
	case checkpoint.Opened:
		o := decoded[checkpoint.Opening](e)
		m.in, m.turn = p.programOf(o.Digest), 1
		if o.Origin != nil {
			m.turn = o.Origin.Turn
		}
	case checkpoint.TurnBegun:
		m.turn, m.deeds = decoded[checkpoint.Turn](e).Number, nil
		p.told["turns"]++
	case checkpoint.Superstep:
		if e.Path == "" {
			m.deeds = nil
		}
	case checkpoint.Trimmed:
		a.first = decoded[checkpoint.Trimming](e).First
		p.told["trims"]++
	case checkpoint.Rewound:
		a.goesBack(m, e)
	case checkpoint.Migrated:
		a.migrates(m, e)
	case checkpoint.EffectBegun:
		a.begins(m, e)
	case checkpoint.EffectEnded:
		a.finishes(m, e)
	}
}

func (a *account) goesBack(m *moment, e *checkpoint.Entry) {
	w := decoded[checkpoint.Rewinding](e)
	*m = a.moments[w.To-1]
	then := m.rewound
	a.rewound++
	m.rewound, m.went = a.rewound, append(slices.Clip(m.went), [2]uint64{e.Seq, w.To})
	a.p.told["rewinds"]++
	if a.p.programOf(w.Digest) != m.in || w.Turn != m.turn {
		a.p.errorf("%s is rewound to %d, and has another program or turn", a.id, w.To)
	}
	if w.To+1 >= a.first {
		return
	}
	for _, d := range m.deeds {
		is, key := d.at(w.To), ""
		if is == "ended" {
			continue
		}
		d.unsure = true
		a.p.told["unsure"]++
		if base := a.moments[a.first-2]; base.leads(w.To, a.first-1) && base.deeds[d.act] == d { // where the log begins the run knows it
			continue
		}
		for _, c := range d.past {
			switch {
			case c.is != "begun":
			case c.seq <= w.To:
				key = c.key
			case is == "begun" && c.key != key, is != "begun" && c.rewound != then:
				d.astray = true
			}
		}
	}
}

func (a *account) migrates(m *moment, e *checkpoint.Entry) {
	d := decoded[checkpoint.Migration](e)
	was := m.in
	m.in = a.p.programOf(d.To)
	a.p.told["migrations"]++
	next := map[act]*deed{}
	for x, d := range m.deeds {
		id := unnumbered(x.place)
		same := was.path(id) == m.in.path(id)
		if !same && d.is() == "begun" && !d.unsure {
			a.p.errorf("%s: %s has begun, and is renamed", a.id, x)
		}
		switch {
		case m.in.path(id) == "":
		case !same && d.is() == "not done": // what begins behind it has another key, and is another deed
			next[x] = &deed{act: x, past: []change{{seq: e.Seq, is: "not done"}}, unsure: d.unsure}
			a.deeds = append(a.deeds, next[x])
		default:
			next[x] = d
		}
	}
	m.deeds, m.vacated = next, maps.Clone(m.vacated)
	if m.vacated == nil {
		m.vacated = map[string]int{}
	}
	for was, is := range d.Nodes {
		if was != is {
			m.vacated[was]++
		}
	}
}

func (a *account) begins(m *moment, e *checkpoint.Entry) {
	b := decoded[checkpoint.BegunEffect](e)
	x := act{m.turn, m.in.place(e.Path), e.ID}
	key := dispatcher.EffectKey(a.id, m.turn, a.rewound, m.vacated, e.Path, e.ID)
	d := m.deeds[x]
	if d == nil {
		d = &deed{act: x}
		a.deeds = append(a.deeds, d)
		m.deeds = maps.Clone(m.deeds)
		if m.deeds == nil {
			m.deeds = map[act]*deed{}
		}
		m.deeds[x] = d
	} else {
		switch is := d.is(); {
		case d.unsure:
		case is == "ended", is == "begun" && !b.Replayable:
			a.p.errorf("%s: %s begins anew at %d, and is %s", a.id, x, e.Seq, is)
		case is == "begun":
			key = d.key()
			a.p.told["again"]++
		}
	}
	d.replay = b.Replayable
	d.keys = append(d.keys, key)
	d.past = append(d.past, change{e.Seq, "begun", key, a.rewound})
	if other := a.keys[key]; other != nil && other != d {
		a.p.errorf("%s: %s begins at %d under the key %s of %s", a.id, x, e.Seq, key, other.act)
	}
	a.keys[key] = d
}

func (a *account) finishes(m *moment, e *checkpoint.Entry) {
	end := decoded[checkpoint.EndedEffect](e)
	x := act{m.turn, m.in.place(e.Path), e.ID}
	d := m.deeds[x]
	if d == nil {
		a.p.errorf("%s: %s ends at %d, and has not begun", a.id, x, e.Seq)
		return
	}
	if d.is() != "begun" && !d.unsure {
		a.p.errorf("%s: %s ends at %d, and is %s", a.id, x, e.Seq, d.is())
	}
	is := "ended"
	if end.NotDone != "" {
		is = "not done"
	}
	d.past = append(d.past, change{seq: e.Seq, is: is})
	if end.Resolved {
		a.p.told["resolved"]++
	}
	if is == "not done" {
		return
	}
	var output string
	if err := json.Unmarshal(end.Output, &output); err != nil {
		panic(err)
	}
	of, key, _ := strings.Cut(output, "|")
	a.p.mu.Lock()
	done := a.p.done[key]
	a.p.mu.Unlock()
	if of != x.String() || done == 0 {
		a.p.errorf("%s: %s ends at %d with %q", a.id, x, e.Seq, output)
	}
	switch {
	case end.Reused != "":
		a.p.told["reused"]++
		if !a.shelf[x] || a.how == dispatcher.Live || !strings.HasPrefix(key, end.Reused) {
			a.p.errorf("%s: %s takes %q of %s", a.id, x, output, end.Reused)
		}
	case !slices.Contains(d.keys, key):
		a.p.errorf("%s: %s ends at %d with %q, and has begun under %q", a.id, x, e.Seq, output, d.keys)
	case a.shelf[x] && a.how != dispatcher.Live && !a.lossy && !a.p.extra(x.place):
		a.p.errorf("%s: %s is done anew, and its origin has done it", a.id, x)
	}
}

// adds checks that no deed was done twice, nor anything that is none.
func (a *account) adds() {
	p := a.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, n := range p.done {
		run, _, _ := strings.Cut(p.by[key], " ")
		if run == a.id && a.keys[key] == nil {
			p.errorf("%s was done under %s, as which it has not begun", p.by[key], key)
		}
		if d := a.keys[key]; n > 1 && d != nil && !d.replay {
			p.errorf("%s was done %d times", key, n)
		}
	}
	for _, d := range a.deeds {
		done := map[string]bool{}
		for _, key := range d.keys {
			if p.done[key] > 0 {
				done[key] = true
			}
		}
		if len(done) > 1 && !d.astray {
			p.errorf("%s: %s was done under several keys: %q", a.id, d.act, slices.Sorted(maps.Keys(done)))
		}
	}
}
