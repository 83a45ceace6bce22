package pawltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// What is untried was done before a change of graph that is in the log, and can't be done
// again by the graph of today.
type untried struct {
	what []string
	why  []string // what stands in the way of the first of it
}

// add notes what an append says.
func (u *untried) add(want []checkpoint.Entry, why []string) {
	if u.what == nil {
		u.why = why
	}
	for _, w := range want {
		name := "visit " + w.Path
		if w.Kind == checkpoint.Superstep {
			name = fmt.Sprintf("superstep %s@%d", w.Path, w.Step)
		}
		if !slices.Contains(u.what, name) {
			u.what = append(u.what, name)
		}
	}
}

// tellUntried tells what was not tried: as a finding, if nobody has said that it is to be
// left out.
func (r *replayer[S]) tellUntried() {
	r.t.Helper()
	if r.untried.what == nil {
		return
	}
	seq, what := r.log[r.changed].Seq, strings.Join(r.untried.what, ", ")
	if !r.recent {
		r.tell("not tried, because the graph changed at entry %d: %s: %s: SinceChange leaves out what was before",
			seq, what, strings.Join(r.untried.why, "; "))
		return
	}
	if l, ok := r.t.(interface{ Logf(string, ...any) }); ok {
		l.Logf("pawltest: run %q: left out, from before the change of graph at entry %d: %s", r.id, seq, what)
	}
}

// stands says what stands in the way of a change as the log goes on: a visit that is open
// where it was tried, and is done later, is done.
func (r *replayer[S]) stands(changes []string, cut int) []string {
	all := slices.Clone(changes)
	for i, text := range all {
		rest, ok := strings.CutPrefix(text, "visit ")
		visit, rest, open := strings.Cut(rest, " is open, ")
		if ok && open && slices.ContainsFunc(r.log[cut:], func(e checkpoint.Entry) bool {
			return e.Kind == checkpoint.Done && e.Path == visit
		}) {
			all[i] = "visit " + visit + " is done, " + rest
		}
	}
	return all
}
