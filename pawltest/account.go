package pawltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/state"
)

// An account is what a run has come to.
type account struct {
	status  checkpoint.Status
	err     error             // of the last call; nil if the run is completed
	cells   []string          // names, in the order of the state
	state   map[string]string // by cell
	took    map[string]string // by visit: the outcome
	visits  []string          // that are done, sorted
	failed  []string          // visits that failed, and how
	stopped bool              // it could not go on, and why is err
}

// tell reads what a run has come to from its state and its log.
func tell(ctx context.Context, store checkpoint.Store, schema *state.Schema, s any) (*account, error) {
	a := &account{state: map[string]string{}, took: map[string]string{}}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cells := schema.Cells()
	for _, c := range cells {
		a.cells = append(a.cells, c.Name)
		a.state[c.Name] = string(member(text, c.Name))
	}
	if len(cells) == 1 && cells[0].Kind == state.KindWhole && cells[0].Name == "state" { // of a state.Whole, whose JSON has no name
		a.state["state"] = string(text)
	}
	var stopped []string
	for e, err := range store.Read(ctx, runID, 1, 0) {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case checkpoint.Done:
			a.took[strings.Clone(e.Path)] = strings.Clone(e.Outcome)
		case checkpoint.AttemptFailed:
			var f checkpoint.FailedAttempt
			if decode(e.Data, &f); f.Final {
				a.failed = append(a.failed, e.Path+" ("+f.Kind+")")
				stopped = append(stopped, strings.Clone(e.Path))
			}
		}
	}
	a.leaveOut(stopped)
	slices.Sort(a.failed)
	a.visits = slices.Sorted(maps.Keys(a.took))
	return a, nil
}

// leaveOut leaves out the items behind the first that failed of an Each that stopped at it: how many of them had begun
// by then is chance, and nothing of them counts. The paths are those that failed for good.
func (a *account) leaveOut(failed []string) {
	for _, each := range failed {
		first := 0
		for _, path := range failed {
			if n := itemOf(each, path); n > 0 && path == fmt.Sprintf("%s/%d", each, n) && (first == 0 || n < first) {
				first = n
			}
		}
		behind := func(path string) bool { return first > 0 && itemOf(each, path) > first }
		maps.DeleteFunc(a.took, func(path, _ string) bool { return behind(path) })
		a.failed = slices.DeleteFunc(a.failed, func(text string) bool {
			path, _, _ := strings.Cut(text, " ")
			return behind(path)
		})
	}
}

// itemOf is the number of the item of an Each that a path is, or is inside of; 0 if it is none.
func itemOf(each, path string) int {
	rest, inside := strings.CutPrefix(path, each+"/")
	part, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(part)
	if !inside || err != nil {
		return 0
	}
	return n
}

// member is the value of a cell in the JSON of a state, nil if it has none. The name has dots where structs are
// nested, or as it is.
func member(object json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	if value, ok := members[name]; ok {
		var compact bytes.Buffer
		if json.Compact(&compact, value) != nil {
			return value
		}
		return compact.Bytes()
	}
	for i, c := range name {
		if c == '.' {
			if value := member(members[name[:i]], name[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// differences says in what another run of the same graph has come to something else. Of
// what follows from a difference it says nothing.
func (a *account) differences(is *account) []string {
	switch {
	case is.stopped:
		return []string{fmt.Sprintf("the run can't go on: %v", is.err)}
	case a.status != is.status:
		text := fmt.Sprintf("the run was %s, is %s", a.status, is.status)
		if is.err != nil {
			text += fmt.Sprintf(" (%v)", is.err)
		}
		return []string{text}
	}
	var all []string
	for _, visit := range a.visits {
		if was, took := a.took[visit], is.took[visit]; was != took && slices.Contains(is.visits, visit) {
			all = append(all, fmt.Sprintf("visit %s took %q, takes %q", visit, was, took))
		}
	}
	if len(all) == 0 && !slices.Equal(a.visits, is.visits) {
		all = append(all, fmt.Sprintf("visits done were %s, are %s", list(a.visits, is.visits), list(is.visits, a.visits)))
	}
	if !slices.Equal(a.failed, is.failed) {
		all = append(all, fmt.Sprintf("visits failed were %q, are %q", a.failed, is.failed))
	}
	for _, name := range a.cells {
		if was, now := a.state[name], is.state[name]; was != now {
			all = append(all, fmt.Sprintf("cell %s was %s, is %s", name, orNothing(was), orNothing(now)))
		}
	}
	return all
}

// list names what is in one list and not in the other.
func list(in, not []string) string {
	var only []string
	for _, v := range in {
		if !slices.Contains(not, v) {
			only = append(only, v)
		}
	}
	if len(only) == 0 {
		return "no others"
	}
	return strings.Join(only, ", ")
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return clip(text)
}
