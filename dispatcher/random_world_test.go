package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A play is a graph with all its programs, and the world that the effects of its runs are in.
type play struct {
	t        *testing.T
	seed     uint64
	rand     *rand.Rand
	roles    []*role
	programs []*program
	store    *taped
	runs     []*account
	books    map[string]*account
	want     map[string]bool // notes of a turn

	mu      sync.Mutex
	asked   map[string]int    // by effect
	done    map[string]int    // by key
	by      map[string]string // which effect was done, by key
	refused []string          // effects
	told    map[string]int
	story   []string
}

func (p *play) chance(n int, words ...string) int {
	return chance(n, append(words, strconv.FormatUint(p.seed, 10))...)
}

func (p *play) errorf(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf(format, args...)
}

func (p *play) tell(format string, args ...any) {
	p.story = append(p.story, fmt.Sprintf(format, args...))
}

func newPlay(t *testing.T, seed uint64) *play {
	r := rand.New(rand.NewPCG(seed, 17))
	p := &play{
		t: t, seed: seed, rand: r, store: newTaped(), books: map[string]*account{}, roles: roles(r, "", 0), asked: map[string]int{},
		done: map[string]int{}, by: map[string]string{}, told: map[string]int{},
	}
	p.store.play = p
	var was *program
	extras := map[string]string{}
	for n := range 2 + r.IntN(3) {
		is := &program{names: map[string]string{}, ids: map[string]string{}}
		is.name(r, was, p.roles, extras)
		is.graph = p.build(is, "play", p.roles)
		is.names["first"] = fmt.Sprint("first", n)
		for id := range is.names {
			if path := is.path(id); path != "" {
				is.ids[path] = id
			}
		}
		p.programs, was = append(p.programs, is), is
	}
	for n, is := range p.programs {
		for k, was := range p.programs {
			if k != n {
				is.migrations = append(is.migrations, dispatcher.Migration{
					Name: fmt.Sprintf("from %d", k), From: was.graph.Digest(), Nodes: is.from(was),
				})
			}
		}
	}
	return p
}

// An act is an effect of a visit, by the ids of roles.
type act struct {
	turn       int
	place, key string
}

func (a act) String() string { return fmt.Sprintf("%d/%s#%s", a.turn, a.place, a.key) }

// visit is what the visits of a role do: some effects. What they return has to be theirs.
func (p *play) visit(ctx context.Context, in *program, x *role, s *Tale) error {
	id, visit, _ := strings.Cut(dag.Key(ctx), "/")
	run, _, _ := strings.Cut(id, "~")
	a := act{turn: 1}
	if first, rest, _ := strings.Cut(visit, "/"); isNumber(first) {
		a.turn, _ = strconv.Atoi(first)
		visit = rest
	}
	a.place = in.place(visit)
	if in.ids[unnumbered(visit)] != x.id {
		p.errorf("a visit of %s has the key %s", x.id, dag.Key(ctx))
	}
	for k := range p.chance(3, "effects", a.place) {
		a.key = fmt.Sprint("k", k)
		options := []dag.EffectOption{dag.Replayable}
		if policy := p.chance(4, "doubt", a.place, a.key); policy > 0 {
			options = []dag.EffectOption{dag.InDoubt(dag.Doubt(policy - 1))}
		}
		got, err := dag.Effect(ctx, a.key, k, p.pay(run, a), options...)
		if errors.Is(err, dag.ErrEffectRefused) {
			p.mu.Lock()
			p.refused = append(p.refused, a.String())
			p.mu.Unlock()
		}
		if err != nil {
			return err
		}
		if of, _, _ := strings.Cut(got, "|"); of != a.String() {
			p.errorf("%s of %s is told %q", a, run, got)
		}
		if !x.extra && !p.extra(a.place) {
			s.Notes.Put(a.String(), "")
		}
	}
	return nil
}

func unnumbered(visit string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(visit, "/"), isNumber), "/")
}

// extra reports whether a visit is in a role that some programs don't have.
func (p *play) extra(place string) bool {
	all := p.roles
	for _, part := range slices.DeleteFunc(strings.Split(place, "/"), isNumber) {
		i := slices.IndexFunc(all, func(x *role) bool { return x.id == part || strings.HasSuffix(x.id, "/"+part) })
		if i < 0 {
			return false
		}
		if all[i].extra {
			return true
		}
		all = all[i].inside
	}
	return false
}

// pay is the other side of an effect. It loses some of the first requests, and some replies.
func (p *play) pay(run string, a act) func(context.Context, int) (string, error) {
	return func(ctx context.Context, _ int) (string, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		id, effect := dag.Key(ctx), a.String()
		p.asked[run+" "+effect]++
		luck := 0
		if n := p.asked[run+" "+effect]; n < 3 {
			luck = p.chance(5, "luck", id, strconv.Itoa(n))
		}
		if luck == 4 && p.done[id] > 0 {
			luck = 0
		}
		if of := p.by[id]; of != "" && of != run+" "+effect {
			p.errorf("%s of %s was done under the key %s of %s", effect, run, id, of)
		}
		p.by[id] = run + " " + effect
		if luck < 3 {
			p.done[id]++
		}
		p.tell("  pay %s: luck %d", id, luck)
		switch luck {
		case 2, 3:
			return "", errLost
		case 4:
			return "", dag.NotDone
		}
		return effect + "|" + id, nil
	}
}

// says is what the other side says of an effect in doubt.
func (p *play) says(e dispatcher.OpenEffect) dispatcher.Resolution {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done[e.ID] == 0 {
		return dispatcher.NotHappened("nobody knows it")
	}
	_, effect, _ := strings.Cut(p.by[e.ID], " ")
	return dispatcher.Happened(effect + "|" + e.ID)
}

func (p *play) open(in *program, o dispatcher.Options) *dispatcher.Dispatcher[Tale] {
	o.Migrations, o.Parallel, o.Now = in.migrations, 1, func() time.Time { return time.Unix(1, 0) }
	d, err := dispatcher.New(in.graph, p.store, o)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// any returns a program, mostly the one that a run has.
func (p *play) any(a *account) *program {
	if is := a.now(); is != nil && p.rand.IntN(3) > 0 {
		return is.in
	}
	return p.programs[p.rand.IntN(len(p.programs))]
}

func (p *play) revive(life int, written bool) {
	if err := p.store.Revive(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	if written {
		p.store.DieAfter(life)
	} else {
		p.store.DieBefore(life)
	}
}

// call has a program go on with a run, and reports whether it is complete.
func (p *play) call(a *account, in *program, life int, written bool, o dispatcher.Options) bool {
	p.revive(life, written)
	p.tell("run %s by %d, life %d %t", a.id, slices.Index(p.programs, in), life, written)
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	if life > 0 && p.rand.IntN(3) == 0 {
		p.store.cuts(p.rand.IntN(12), cancel)
	}
	res, err := p.open(in, o).Run(ctx, a.id, nil)
	p.store.cuts(0, nil)
	died := p.store.Died()
	p.revive(0, false)
	p.tell("  is %v: %v", res.Status, err)
	p.sync(a)
	var changed *dispatcher.GraphChangedError
	if errors.As(err, &changed) && !a.hinders(in) { // no doubt has another path in it
		p.errorf("%s: %v", a.id, err)
	}
	return !died && err == nil && res.Status == checkpoint.StatusCompleted
}

// resolve says what came of effects in doubt, of all or some, and returns of how many there was
// doubt.
func (p *play) resolve(a *account, some bool) int {
	if a.now() == nil {
		return 0
	}
	d := p.open(a.now().in, dispatcher.Options{})
	opened, err := d.Open(p.t.Context(), a.id)
	if err != nil {
		p.t.Fatalf("%s: %v", a.id, err)
	}
	for _, e := range opened.InDoubt() {
		a.knows(e)
		if some && p.rand.IntN(2) == 0 {
			continue
		}
		err := d.Resolve(p.t.Context(), a.id, e.Path, e.Key, p.says(e))
		p.tell("resolve %s of %s, %s: %v", e.ID, a.id, e.Path, err)
		if err != nil {
			p.errorf("%s: %v", a.id, err)
		}
	}
	p.sync(a)
	return len(opened.InDoubt())
}

// point is a checkpoint of a run, "" if there is none.
func (p *play) point(a *account) (address string) {
	var all []string
	for c, err := range p.open(a.now().in, dispatcher.Options{}).History(p.t.Context(), a.id) {
		if err != nil {
			p.t.Fatalf("%s: %v", a.id, err)
		}
		all = append(all, c.Address())
	}
	if len(all) == 0 {
		return ""
	}
	return all[p.rand.IntN(len(all))]
}

// happens has something happen to a run.
func (p *play) happens(a *account) {
	ctx, what := p.t.Context(), p.rand.IntN(18)
	if a.now() == nil || what < 6 {
		in, o := p.any(a), dispatcher.Options{Paranoid: p.rand.IntN(2) == 0}
		if p.rand.IntN(6) == 0 {
			o.Retention = dispatcher.Retention{Last: 1 + p.rand.IntN(3), Tagged: p.rand.IntN(2) == 0}
		}
		if p.rand.IntN(2) == 0 {
			o = dispatcher.Eager(o)
		}
		p.call(a, in, 1+p.rand.IntN(12), p.rand.IntN(2) == 0, o)
		return
	}
	in := p.any(a)
	d := p.open(in, dispatcher.Options{})
	var err error
	switch at := p.point(a); {
	case what < 8:
		p.resolve(a, true)
		return
	case at == "":
		return
	case what < 11 || what >= 16:
		if what >= 16 {
			at = fmt.Sprint("tag:tag", p.rand.IntN(3))
		}
		err = d.Rewind(ctx, a.id, at, dispatcher.RewindOptions{})
		p.tell("rewind to %s by %d: %v", at, slices.Index(p.programs, in), err)
	case what < 12 && len(p.runs) < 4:
		how := dispatcher.EffectsOfFork(p.rand.IntN(3))
		into := fmt.Sprint("fork", len(p.runs))
		_, err = d.Fork(ctx, a.id, at, dispatcher.ForkOptions[Tale]{Into: []string{into}, Effects: how})
		p.tell("fork %s at %s by %d, %s: %v", into, at, slices.Index(p.programs, in), how, err)
		if err == nil {
			p.runs = append(p.runs, p.forked(a, at, into, how))
		}
	case what < 13:
		if p.rand.IntN(2) == 0 {
			p.tell("tag %s: %v", at, d.Tag(ctx, a.id, at, fmt.Sprint("tag", p.rand.IntN(3))))
		}
		keep := dispatcher.Retention{Last: 1 + p.rand.IntN(2), Tagged: p.rand.IntN(4) > 0}
		err = d.Trim(ctx, a.id, keep)
		p.tell("trim %s, %v: %v", a.id, keep, err)
	case what < 15:
		err = d.Tag(ctx, a.id, at, fmt.Sprint("tag", p.rand.IntN(3)))
		p.tell("tag %s: %v", at, err)
	case what < 16:
		var o dispatcher.EditOptions
		if res, err := d.State(ctx, a.id); err == nil && p.rand.IntN(2) == 0 {
			if all := append(slices.Clone(res.Cursor.Visits), res.Finished...); len(all) > 0 {
				parts := strings.Split(all[p.rand.IntN(len(all))], "/")
				o.Void = []string{strings.Join(parts[:1+p.rand.IntN(len(parts))], "/")}
			}
		}
		err = d.Edit(ctx, a.id, func(s *Tale) { s.Count.Add(1) }, o)
		p.tell("edit %s by %d, voids %q: %v", a.id, slices.Index(p.programs, in), o.Void, err)
		if len(o.Void) > 0 && err == nil {
			p.told["voided"]++
		}
		if errors.Is(err, dispatcher.ErrCompleted) {
			_, err = d.Turn(ctx, a.id, nil)
			p.tell("turn %s: %v", a.id, err)
		}
	}
	p.sync(a)
}

// ends brings a run to its end, unless an effect of it is refused.
func (p *play) ends(a *account) {
	for calls, idle := 0, 0; !a.refused; calls++ {
		head := len(a.moments)
		in := p.any(a)
		if idle > 0 && a.now() != nil {
			in = a.now().in
		}
		if p.call(a, in, 0, false, dispatcher.Options{Paranoid: calls%2 == 0}) {
			break
		}
		if idle++; p.resolve(a, false) > 0 || head < len(a.moments) {
			idle = 0
		}
		if idle > 2 || calls > 200 || p.t.Failed() {
			p.errorf("%s does not come to its end", a.id)
			return
		}
	}
	if a.refused {
		return
	}
	res, err := p.open(a.now().in, dispatcher.Options{}).State(p.t.Context(), a.id)
	if err != nil {
		p.t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(maps.Collect(res.State.Notes.All())))
	var want []string
	for turn := range a.now().turn {
		for note := range p.want {
			want = append(want, fmt.Sprint(turn+1, "/", note))
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.errorf("%s comes to %q, want %q", a.id, got, want)
	}
}

func (p *play) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n", p.seed)
	for i, in := range p.programs {
		fmt.Fprintf(&b, "program %d: %v\n", i, in.names)
	}
	return b.String() + strings.Join(p.story, "\n")
}

// perform has a run, and forks of it, come to their ends, whatever happens to them.
func (p *play) perform() {
	p.want = p.undisturbed()
	a := &account{p: p, id: "tale", keys: map[string]*deed{}, first: 1}
	p.books[a.id] = a
	p.runs = append(p.runs, a)
	for turn := range 1 + p.rand.IntN(2) {
		for _, a := range p.runs {
			if turn > 0 && !a.refused {
				_, err := p.open(a.now().in, dispatcher.Options{}).Turn(p.t.Context(), a.id, nil)
				p.tell("turn %s: %v", a.id, err)
				p.sync(a)
			}
		}
		for range 10 + p.rand.IntN(15) {
			if a := p.runs[p.rand.IntN(len(p.runs))]; !a.refused {
				p.happens(a)
			}
		}
		for _, a := range p.runs {
			if p.ends(a); p.t.Failed() {
				return
			}
		}
	}
}

// Promises P3, P4, P8 and P10: effects in steps, Loops, Eaches and Embeds end in doubt at random,
// processes die, calls are cancelled, and in between the run is forked, rewound, edited, tagged,
// trimmed and gone on with by programs in which nodes have other names. Nobody is told the output
// of another effect, nothing is done twice, what is in doubt can be resolved, and each run, and
// each fork that its policy lets go on, comes to what it comes to undisturbed. A failure is
// replayed by -run TestRandomWorlds/seed=….
func TestRandomWorlds(t *testing.T) {
	t.Parallel()
	first, count := uint64(1), worldCount
	if asked, err := strconv.Atoi(os.Getenv("PAWL_RANDOM")); err == nil {
		first, count = 1_000_000, asked
	}
	told, played := map[string]int{}, 0
	for seed := first; seed < first+uint64(count); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			p := newPlay(t, seed)
			defer func() {
				if t.Failed() {
					t.Log(p)
				}
			}()
			p.perform()
			played++
			for what, n := range p.told {
				told[what] += n
			}
		})
	}
	for _, what := range []string{"again", "forks", "migrations", "refused", "resolved", "reused", "rewinds", "trims", "turns", "unsure", "voided"} {
		if played >= 80 && told[what] == 0 {
			t.Errorf("nothing was %s: %v", what, told)
		}
	}
}
