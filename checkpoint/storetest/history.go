package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawlgo/pawl/checkpoint"
)

// A call is one that a client has made of the store; an answer is what it was told. verb is the
// method's name.
type call struct {
	verb, run string
	owner     string           // of Acquire
	lease     checkpoint.Lease // of Append and Release
	after     checkpoint.Head  // of Append
	id, kind  string           // of Post
}

type answer struct {
	err   error
	lease checkpoint.Lease
	head  checkpoint.Head
	info  checkpoint.Info
	posts string // as a book has them
}

// A book is what the contract says of one run, and no more: what a store would be that made one
// call after the other.
type book struct {
	head  checkpoint.Head
	epoch uint64
	owner string // "" if nobody holds the lease
	posts string // "id kind\n" of each, in the order of ids
}

// next reports whether a store that stands at b may answer so, and where it stands then.
func (b book) next(c call, a answer) (bool, book) {
	there := b.head.Seq > 0
	switch c.verb {
	case "Acquire":
		if b.owner != "" {
			return errors.Is(a.err, checkpoint.ErrBusy), b
		}
		ok := a.err == nil && a.lease.Epoch > b.epoch
		b.owner, b.epoch = c.owner, a.lease.Epoch
		return ok, b
	case "Release":
		if b.holds(c.lease) {
			b.owner = ""
		}
		return a.err == nil, b
	case "Append":
		return b.appended(c, a)
	case "Post":
		return b.posted(c, a)
	case "Posts":
		return there && a.err == nil && a.posts == b.posts || !there && errors.Is(a.err, checkpoint.ErrNotFound), b
	case "Stat":
		same := a.info.Head == b.head && a.info.Epoch == b.epoch && a.info.Owner == b.owner
		return there && a.err == nil && same || !there && errors.Is(a.err, checkpoint.ErrNotFound), b
	}
	return false, b
}

func (b book) holds(l checkpoint.Lease) bool {
	return b.owner != "" && b.owner == l.Owner && b.epoch == l.Epoch
}

// appended allows an append that is under way while its lease is given back to be made, as long as
// nobody has the next one.
func (b book) appended(c call, a answer) (bool, book) {
	held, fits := b.holds(c.lease), b.head == c.after
	late := b.owner == "" && b.epoch == c.lease.Epoch && b.epoch > 0
	if a.err != nil {
		return !held && errors.Is(a.err, checkpoint.ErrFenced) || !fits && errors.Is(a.err, checkpoint.ErrConflict), b
	}
	b.head = a.head
	return (held || late) && fits && a.head.Seq == c.after.Seq+1, b
}

func (b book) posted(c call, a answer) (bool, book) {
	if b.head.Seq == 0 {
		return errors.Is(a.err, checkpoint.ErrNotFound), b
	}
	lines := slices.Sorted(strings.Lines(b.posts))
	for _, line := range lines {
		if strings.HasPrefix(line, c.id+" ") {
			if line == c.id+" "+c.kind+"\n" {
				return a.err == nil, b
			}
			return errors.Is(a.err, checkpoint.ErrConflict), b
		}
	}
	lines = append(lines, c.id+" "+c.kind+"\n")
	slices.Sort(lines)
	b.posts = strings.Join(lines, "")
	return a.err == nil, b
}

// byRun is the book of a run for porcupine, which looks for an order of the calls that explains
// all answers. Runs are independent of one another.
var byRun = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		runs := make(map[string][]porcupine.Operation)
		for _, o := range history {
			run := o.Input.(call).run
			runs[run] = append(runs[run], o)
		}
		var all [][]porcupine.Operation
		for _, run := range runs {
			all = append(all, run)
		}
		return all
	},
	Init: func() any { return book{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(book).next(input.(call), output.(answer))
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%v = %v", input, output)
	},
	DescribeState: func(state any) string { return fmt.Sprint(state) },
}

func (b book) String() string {
	return fmt.Sprintf("head %s, epoch %d, held by %q, posts %q", short(b.head), b.epoch, b.owner, b.posts)
}

func (c call) String() string {
	switch c.verb {
	case "Acquire":
		return fmt.Sprintf("Acquire(%s, %q)", c.run, c.owner)
	case "Release":
		return fmt.Sprintf("Release(%s, epoch %d of %q)", c.run, c.lease.Epoch, c.lease.Owner)
	case "Append":
		return fmt.Sprintf("Append(%s, epoch %d of %q, after %s)", c.run, c.lease.Epoch, c.lease.Owner, short(c.after))
	case "Post":
		return fmt.Sprintf("Post(%s, %s %s)", c.run, c.id, c.kind)
	}
	return c.verb + "(" + c.run + ")"
}

func (a answer) String() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.lease.Epoch > 0:
		return fmt.Sprintf("epoch %d", a.lease.Epoch)
	case a.head.Seq > 0:
		return short(a.head)
	case a.info.Run != "":
		return fmt.Sprintf("head %s, epoch %d of %q", short(a.info.Head), a.info.Epoch, a.info.Owner)
	case a.posts != "":
		return fmt.Sprintf("%q", a.posts)
	}
	return "nil"
}

func short(h checkpoint.Head) string { return fmt.Sprintf("%d/%x", h.Seq, h.Digest[:3]) }

// unexplained tells of each run without an order how far one can be found, where the run stands
// then, and the calls that had to come next and do not fit.
func unexplained(found porcupine.LinearizationInfo, history []porcupine.Operation) string {
	var text strings.Builder
	for _, orders := range found.PartialLinearizationsOperations() {
		var longest []porcupine.Operation
		for _, order := range orders {
			if len(order) > len(longest) {
				longest = order
			}
		}
		at, placed := book{}, make(map[int64]bool)
		run := ""
		for _, o := range longest {
			_, at = at.next(o.Input.(call), o.Output.(answer))
			placed[o.Call], run = true, o.Input.(call).run
		}
		var rest []porcupine.Operation
		for _, o := range history {
			if o.Input.(call).run == run && !placed[o.Call] {
				rest = append(rest, o)
			}
		}
		if len(rest) == 0 {
			continue
		}
		slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, o := range longest[max(0, len(longest)-4):] {
			fmt.Fprintf(&text, "\n  explained [%d, %d] %v = %v", o.Call, o.Return, o.Input, o.Output)
		}
		fmt.Fprintf(&text, "\n  stands at %v", at)
		for _, o := range rest[:min(len(rest), 4)] {
			fmt.Fprintf(&text, "\n  left [%d, %d] %v = %v", o.Call, o.Return, o.Input, o.Output)
		}
	}
	return text.String()
}

// do makes the call.
func (c call) do(ctx context.Context, s checkpoint.Store) (a answer) {
	switch c.verb {
	case "Acquire":
		a.lease, a.err = s.Acquire(ctx, c.run, c.owner)
	case "Release":
		a.err = s.Release(ctx, c.lease)
	case "Append":
		e := done(int(c.after.Seq))
		if c.after.Seq == 0 {
			e = opened("graph", nil)
		}
		a.head, a.err = s.Append(ctx, c.lease, c.after, []checkpoint.Entry{e})
	case "Post":
		a.err = s.Post(ctx, c.run, checkpoint.Post{ID: c.id, Kind: c.kind})
	case "Posts":
		var all []checkpoint.Post
		all, a.err = s.Posts(ctx, c.run)
		for _, p := range all {
			a.posts += p.ID + " " + p.Kind + "\n"
		}
	case "Stat":
		a.info, a.err = s.Stat(ctx, c.run)
	}
	return a
}

// A crowd is the clients of a store, which know of each other's leases and heads, so that they
// get in each other's way.
type crowd struct {
	clock atomic.Int64
	runs  string // how the names of theirs begin

	mu      sync.Mutex
	leases  map[string][2]checkpoint.Lease // the last two of each run
	heads   map[string][2]checkpoint.Head
	history []porcupine.Operation
}

// choose returns what a client does next.
func (w *crowd) choose(r *rand.Rand, client int) call {
	verbs := []string{
		"Acquire", "Acquire", "Release", "Append", "Append", "Append", "Append", "Append",
		"Post", "Post", "Posts", "Stat", "Stat",
	}
	c := call{verb: verbs[r.IntN(len(verbs))], run: fmt.Sprint(w.runs, r.IntN(2))}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch c.verb {
	case "Acquire":
		c.owner = fmt.Sprint("client ", client)
	case "Release", "Append":
		c.lease, c.after = w.leases[c.run][r.IntN(8)/7], w.heads[c.run][r.IntN(4)/3] // mostly the last one
		c.lease.Run = c.run
	case "Post":
		c.id, c.kind = fmt.Sprint(r.IntN(4)), fmt.Sprint(r.IntN(2))
	}
	return c
}

// learn remembers what a client was told.
func (w *crowd) learn(o porcupine.Operation) {
	c, a := o.Input.(call), o.Output.(answer)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, o)
	if a.err != nil {
		return
	}
	switch c.verb {
	case "Acquire":
		w.leases[c.run] = [2]checkpoint.Lease{a.lease, w.leases[c.run][0]}
	case "Append":
		w.heads[c.run] = [2]checkpoint.Head{a.head, w.heads[c.run][0]}
	}
}

// What many clients are told at once can be explained by one order of their calls, in which each
// call stands somewhere between its beginning and its end: nobody reads what is older than what
// somebody was told before, and of two who race one was first.
func historyHasAnOrder(t *trial, s checkpoint.Store) {
	for calls := 60; calls > 0 && !historyHasAnOrderOf(t, s, calls); calls /= 2 {
	}
}

// historyHasAnOrderOf has each client make so many calls. It reports whether they were few enough
// for this machine to know within a minute whether there is an order. Its name begins so for
// [stacks].
func historyHasAnOrderOf(t *trial, s checkpoint.Store, calls int) bool {
	const clients = 5
	seed := rand.Uint64()
	w := &crowd{
		runs:   fmt.Sprintf("run-%d-", calls),
		leases: make(map[string][2]checkpoint.Lease), heads: make(map[string][2]checkpoint.Head),
	}
	t.together(clients, func(client int) {
		r := rand.New(rand.NewPCG(seed, uint64(client)))
		for range calls {
			o := porcupine.Operation{ClientId: client, Input: w.choose(r, client), Call: w.clock.Add(1)}
			o.Output = o.Input.(call).do(t.Context(), s)
			o.Return = w.clock.Add(1)
			w.learn(o)
		}
	})
	result, found := porcupine.CheckOperationsVerbose(byRun, w.history, time.Minute)
	switch result {
	case porcupine.Unknown:
		t.Logf("no order of %d calls was found in a minute (seed %d): fewer are tried", len(w.history), seed)
		return false
	case porcupine.Illegal:
		drawing := filepath.Join(t.ArtifactDir(), "history.html")
		if err := porcupine.VisualizePath(byRun, found, drawing); err != nil {
			drawing = err.Error()
		}
		t.Errorf("no order of %d calls explains what %d clients were told (seed %d; a drawing, which go test -artifacts keeps: %s):%s",
			len(w.history), clients, seed, drawing, unexplained(found, w.history))
	}
	return true
}
