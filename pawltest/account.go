package pawltest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
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
	texts, err := cellTexts(s)
	if err != nil {
		return nil, err
	}
	for i, c := range schema.Cells() {
		a.cells = append(a.cells, c.Name)
		a.state[c.Name] = texts[i]
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

// leaveOut leaves out the items behind the first that failed of an Each that stopped at it: how
// many of them had begun by then is chance, and nothing of them counts. The paths are those that
// failed for good.
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

// cellTexts returns the JSON of each cell of a state, in the order of its schema. What the state,
// or a group of cells in it, says of itself has no part in it.
func cellTexts(s any) ([]string, error) {
	var texts []string
	var walk func(reflect.Value) error
	walk = func(v reflect.Value) error {
		if v.Type().PkgPath() == cellPackage {
			text, err := json.Marshal(v.Interface())
			texts = append(texts, string(text))
			return err
		}
		for i := range v.NumField() {
			if err := walk(v.Field(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return texts, walk(reflect.ValueOf(s).Elem())
}

// cellPackage is where the types of cells are.
var cellPackage = reflect.TypeFor[state.Schema]().PkgPath()

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
