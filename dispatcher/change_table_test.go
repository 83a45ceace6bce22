package dispatcher_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

var updateChanges = flag.Bool("update-changes", false, "write testdata/changes.golden")

// A changeRest is a run at rest: its log, and what the log says.
type changeRest struct {
	name string
	log  []checkpoint.Entry
	was  changeResult
	done map[string]bool // visits that are durable
	past []string        // paths of frames that have ended
	fell string          // the visit that failed, "" if none did
}

// changeOpen makes the store of a run at rest.
func changeOpen(t testing.TB, p *changeProgram, rest *changeRest) *memory.Store {
	t.Helper()
	store := &memory.Store{}
	l, err := store.Acquire(t.Context(), run, "before")
	if err == nil {
		_, err = store.Append(t.Context(), l, checkpoint.Head{}, rest.log)
	}
	if err == nil {
		err = store.PutGraph(t.Context(), p.plan.Digest, p.plan.JSON)
	}
	if err == nil {
		err = store.Release(t.Context(), l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// changeDrive brings a run to its end: it answers what is asked.
func changeDrive(t testing.TB, d changeProcess, first func(context.Context) (changeResult, error)) (changeResult, error) {
	t.Helper()
	next := first
	for range 20 {
		res, err := next(t.Context())
		next = d.resume
		var rest *dispatcher.Rest
		if !errors.As(err, &rest) || rest.Status != checkpoint.StatusInterrupted {
			return res, err
		}
		for _, i := range res.interrupts {
			if i.Kind == dispatcher.KindAsked {
				if err := d.answer(t.Context(), i.ID); err != nil {
					return res, err
				}
			}
		}
	}
	t.Fatal("the run does not come to its end")
	return changeResult{}, nil
}

// changeRests lets runs of a program rest wherever they can: cut off behind each append,
// cancelled there, interrupted before and after each visit, and because each visit fails.
func changeRests(t testing.TB, p *changeProgram) (rests []*changeRest, end changeResult) {
	t.Helper()
	add := func(name, fell string, store checkpoint.Store) {
		was, err := p.open(t, store, dispatcher.Options{}).state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(was.visits) == 0 {
			return
		}
		rest := &changeRest{name: name + fell, log: readLog(t, store), was: was, fell: fell}
		rest.read(p.plan)
		rests = append(rests, rest)
	}
	o := dispatcher.Options{Parallel: 1, Paranoid: true}
	visits := map[string]bool{}
	for k := 1; ; k++ {
		store := &mortal{}
		if err := store.revive(t.Context(), k, true); err != nil {
			t.Fatal(err)
		}
		d := p.open(t, store, o)
		end, _ = changeDrive(t, d, d.run)
		died := store.died()
		if err := store.revive(t.Context(), 0, false); err != nil {
			t.Fatal(err)
		}
		for path := range store.done {
			visits[path] = true
		}
		if !died {
			break
		}
		add(fmt.Sprintf("cut off at append %d", k), "", store)
		if err := p.open(t, store, o).cancel(t.Context()); err == nil {
			add(fmt.Sprintf("cancelled at append %d", k), "", store)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(visits)) {
		var store memory.Store
		p.open(t, &store, dispatcher.Options{Parallel: 1, InterruptBefore: []string{path}}).run(t.Context())
		add("before "+path, "", &store)
		store = memory.Store{}
		p.open(t, &store, dispatcher.Options{Parallel: 1, InterruptAfter: []string{path}}).run(t.Context())
		add("after "+path, "", &store)
		store = memory.Store{}
		p.witness.fails = path
		d := p.open(t, &store, o)
		changeDrive(t, d, d.run)
		p.witness.fails = ""
		add("failed at ", path, &store)
	}
	p.witness.took()
	return rests, end
}

// read finds what a log says is past.
func (r *changeRest) read(plan *dag.Plan) {
	r.done = map[string]bool{}
	for _, e := range r.log {
		switch {
		case e.Kind == checkpoint.Done:
			r.done[e.Path] = true
			r.past = append(r.past, e.Path+"/")
		case e.Kind == checkpoint.Superstep && !changeItem.MatchString(e.Path) && changeKind(plan, e.Path) == dag.KindEach:
			r.past = append(r.past, e.Path+"/")
		case e.Kind == checkpoint.Entered && e.Path != "":
			i := strings.LastIndexByte(e.Path, '/')
			var n int
			if _, err := fmt.Sscan(e.Path[i+1:], &n); err == nil && n > 1 && changeKind(plan, e.Path[:i]) == dag.KindLoop {
				r.past = append(r.past, fmt.Sprintf("%s/%d/", e.Path[:i], n-1))
			}
		}
	}
}

// changeKind is the kind of the node of a visit.
func changeKind(plan *dag.Plan, path string) (kind dag.Kind) {
	for name := range strings.SplitSeq(path, "/") {
		for i := range plan.Nodes {
			if n := &plan.Nodes[i]; n.Name == name {
				kind = n.Kind
				if n.Body != nil {
					plan = n.Body
				}
				break
			}
		}
	}
	return kind
}

// kept is what is past although a visit has failed: an embedded graph that fails gives
// nothing out.
func (r *changeRest) kept(plan *dag.Plan) []string {
	return slices.DeleteFunc(slices.Clone(r.past), func(path string) bool {
		for i, c := range path {
			if c != '/' || !strings.HasPrefix(r.fell, path[:i+1]) {
				continue
			}
			switch changeKind(plan, path[:i]) {
			case dag.KindEmbed:
				return true
			case dag.KindEach:
				return path[i:] > r.fell[i:] // of items, those behind it count no more
			}
		}
		return false
	})
}

// changeExpected is what a run of the new program has to end with: what a run of it ends
// with that was always its own, but for frames that had ended.
func changeExpected(past []string, old, straight changeResult) map[string]string {
	isPast := func(path string) bool {
		return slices.ContainsFunc(past, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
	}
	want := map[string]string{}
	for path, text := range straight.seen {
		if !isPast(path) {
			want[path] = text
		}
	}
	for path, text := range old.seen {
		if isPast(path) {
			want[path] = text
		}
	}
	return want
}

var changeItem = regexp.MustCompile(`/[0-9]+$`)

var changeReason = regexp.MustCompile(`^(visit|cell|its graph|the items of) ?(\S*)`)

// changeDiffers says what is wrong with the reason of a refusal: that what it names does not
// differ. "" is nothing.
func changeDiffers(reason string, was, is *dag.Plan) string {
	m := changeReason.FindStringSubmatch(reason)
	if m == nil {
		return "it names neither a visit nor a cell"
	}
	node := regexp.MustCompile(`/[0-9]+`).ReplaceAllString(m[2], "")
	changes := dag.Changes(was.JSON, is.JSON)
	names := func(what string) bool {
		return slices.ContainsFunc(changes, func(c string) bool { return strings.HasPrefix(c, what) })
	}
	switch m[1] {
	case "its graph":
		if was.Name != is.Name {
			return ""
		}
	case "cell":
		if slices.ContainsFunc(changes, func(c string) bool {
			return strings.HasPrefix(c, "cell ") && strings.Contains(c, m[2]+":")
		}) {
			return ""
		}
	case "visit":
		if names("node " + node + ":") {
			return ""
		}
		if strings.HasSuffix(reason, "nobody follows its failure any more") && slices.ContainsFunc(changes, func(c string) bool {
			return strings.Contains(c, "followed ") || strings.Contains(c, ": removed")
		}) {
			return ""
		}
		if strings.Contains(reason, "its items were visited by") && names("node "+node) {
			return ""
		}
	}
	return fmt.Sprintf("it does not differ: %q", changes)
}

// A changeCount is one field of the table.
type changeCount struct{ accepted, refused int }

func (c changeCount) String() string {
	if c == (changeCount{}) {
		return "–"
	}
	return fmt.Sprintf("%d / %d", c.accepted, c.refused)
}

// Promise P10: every edit, tried on runs that rest wherever they can, ends as it should or is
// refused by name. The table says how many are accepted and how many refused.
func TestChangesOfEveryDay(t *testing.T) {
	var table strings.Builder
	table.WriteString("accepted / refused, of the runs that rest at every cursor of a graph\n\n")
	fmt.Fprintf(&table, "%-40s %10s %10s %10s\n", "", "chain", "nest", "fan")
	counts := make([][]changeCount, len(changeEdits))
	for i := range counts {
		counts[i] = make([]changeCount, len(changeGraphs))
	}
	t.Run("of", func(t *testing.T) {
		for k, graph := range changeGraphs {
			t.Run(graph.name, func(t *testing.T) {
				t.Parallel()
				old := changeStates[""](t, graph.make())
				rests, end := changeRests(t, old)
				for i := range changeEdits {
					if e := &changeEdits[i]; e.target(graph.name) != "" {
						counts[i][k] = changeTry(t, e, graph.name, graph.make(), old, rests, end)
					}
				}
			})
		}
	})
	for i, e := range changeEdits {
		fmt.Fprintf(&table, "%-40s", e.name)
		for _, c := range counts[i] {
			fmt.Fprintf(&table, " %10s", c)
		}
		table.WriteString("\n")
	}
	t.Log("\n" + table.String())
	const golden = "testdata/changes.golden"
	if *updateChanges {
		if err := os.WriteFile(golden, []byte(table.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != table.String() {
		t.Errorf("the table is not the one in %s: look at what has changed, and if it is right run the test with -update-changes", golden)
	}
}

// changeStraight runs a program from its beginning. A visit may fail.
func changeStraight(t testing.TB, p *changeProgram, fails string) (changeResult, error) {
	t.Helper()
	var store memory.Store
	p.witness.fails = fails
	d := p.open(t, &store, dispatcher.Options{})
	res, err := changeDrive(t, d, d.run)
	p.witness.fails = ""
	p.witness.took()
	return res, err
}

// changeTry tries one edit of one graph on all runs.
func changeTry(t *testing.T, e *changeEdit, graph string, spec *changeGraph, old *changeProgram, rests []*changeRest, end changeResult) (count changeCount) {
	e.do(spec, e.target(graph))
	next := changeStates[e.states](t, spec)
	straight, err := changeStraight(t, next, "")
	if straight.status != checkpoint.StatusCompleted {
		t.Errorf("%s: the edited program is %s: %v", e.name, straight.status, err)
		return count
	}
	for i, rest := range rests {
		want := straight
		past := rest.past
		if rest.fell != "" && next.plan.Digest != old.plan.Digest {
			// What has failed has failed, if the edited graph follows that.
			if failed, _ := changeStraight(t, next, rest.fell); failed.status == checkpoint.StatusCompleted {
				want, past = failed, rest.kept(old.plan)
			}
		}
		store := changeOpen(t, old, rest)
		before, _ := store.Stat(t.Context(), run)
		d := next.open(t, store, dispatcher.Options{Paranoid: i%2 == 0})
		res, err := changeDrive(t, d, d.resume)
		wrong := ""
		var changed *dispatcher.GraphChangedError
		var items *dispatcher.ItemsChangedError
		switch began := next.witness.took(); {
		case errors.As(err, &changed) || errors.As(err, &items):
			count.refused++
			wrong = changeRefusal(changed, old.plan, next.plan)
			if after, _ := store.Stat(t.Context(), run); wrong == "" && after.Head != before.Head {
				wrong = "a refusal changed the log"
			}
			if len(began) > 0 {
				wrong = fmt.Sprintf("a refused run ran %q", began)
			}
		default:
			count.accepted++
			wrong = rest.wrong(past, end, want, res, began)
		}
		if wrong != "" {
			t.Errorf("%s, %s, %s: %s: %v", e.name, graph, rest.name, wrong, err)
			return count
		}
	}
	return count
}

// changeRefusal says what is wrong with a refusal.
func changeRefusal(e *dispatcher.GraphChangedError, was, is *dag.Plan) string {
	if e == nil {
		return ""
	}
	for _, reason := range e.Changes {
		if wrong := changeDiffers(reason, was, is); wrong != "" {
			return fmt.Sprintf("the reason %q: %s", reason, wrong)
		}
	}
	if len(e.Changes) == 0 {
		return "it has no reason"
	}
	return ""
}

// wrong says what is wrong with the end of a run that went on with a new program.
func (r *changeRest) wrong(past []string, old, straight, res changeResult, began []string) string {
	for _, path := range began {
		if r.done[path] {
			return fmt.Sprintf("visit %s runs again, and its entry is durable", path)
		}
	}
	want := changeExpected(past, old, straight)
	keys := slices.Sorted(maps.Keys(want))
	order := slices.Sorted(slices.Values(res.order))
	switch {
	case res.status != straight.status:
		return fmt.Sprintf("it is %s, want %s", res.status, straight.status)
	case !maps.Equal(res.seen, want):
		return fmt.Sprintf("the state says\n%v\nwant\n%v", res.seen, want)
	case res.total != len(want) || !slices.Equal(order, keys):
		return fmt.Sprintf("%d visits are counted in order %v, want %v", res.total, res.order, keys)
	case !slices.Equal(res.order[:len(r.was.order)], r.was.order):
		return fmt.Sprintf("the order began with %v and is %v", r.was.order, res.order)
	}
	return ""
}
