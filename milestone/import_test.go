package milestone_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/milestone"
)

// A restored run is one that was named and deleted, and imported again as it had stood before.
type restored struct {
	*dispatcher.Dispatcher[Task]
	*milestone.Namer
	store  *memory.Store
	backup bytes.Buffer
}

// asked is a run of three nodes that each ask, which waits for the first.
func asked(t *testing.T) *restored {
	t.Helper()
	b := dag.New[Task]("task")
	var after []dag.Edge[Task]
	var rules []milestone.Rule
	for _, name := range []string{"a", "b", "c"} {
		after = []dag.Edge[Task]{dag.Step(b, name, asking(name), after...)}
		rules = append(rules, milestone.Node(name))
	}
	r := &restored{store: new(memory.Store)}
	r.Dispatcher = dispatch(t, build(t, b), r.store)
	var err error
	if r.Namer, err = milestone.New(r.Dispatcher, rules...); err != nil {
		t.Fatal(err)
	}
	waits(t, goesOn(t, r.Dispatcher))
	return r
}

func (r *restored) keep(t *testing.T) {
	t.Helper()
	if err := checkpoint.Export(t.Context(), r.store, "r", &r.backup); err != nil {
		t.Fatal(err)
	}
}

func (r *restored) restore(t *testing.T) {
	t.Helper()
	if err := r.store.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Import(t.Context(), r.store, &r.backup, checkpoint.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (r *restored) named(t *testing.T, want int) {
	t.Helper()
	if got := tags(t, r.Dispatcher, "r"); len(got) != want {
		t.Errorf("named are %q, want %d", got, want)
	}
}

// A run that was deleted and imported again is read anew, from a backup that is shorter than what
// the Namer had read, also if the run has gone on behind that by then.
func TestRunThatIsImportedAgain(t *testing.T) {
	r := asked(t)
	r.keep(t)
	waits(t, goesOn(t, r.Dispatcher, "a"))
	waits(t, goesOn(t, r.Dispatcher, "b"))
	finds(t, r.Namer, "r", "node a", "node b")
	r.restore(t)
	finds(t, r.Namer, "r")
	waits(t, goesOn(t, r.Dispatcher, "a"))
	finds(t, r.Namer, "r", "node a")
	waits(t, goesOn(t, r.Dispatcher, "b"))
	if err := goesOn(t, r.Dispatcher, "c"); err != nil {
		t.Fatal(err)
	}
	finds(t, r.Namer, "r", "node b", "node c")
	r.named(t, 3)
}

// It does not matter how far the run has gone when it is named next.
func TestRunThatIsImportedAgainAndGoesFurther(t *testing.T) {
	r := asked(t)
	r.keep(t)
	waits(t, goesOn(t, r.Dispatcher, "a"))
	finds(t, r.Namer, "r", "node a")
	r.restore(t)
	waits(t, goesOn(t, r.Dispatcher, "a"))
	waits(t, goesOn(t, r.Dispatcher, "b"))
	if err := goesOn(t, r.Dispatcher, "c"); err != nil {
		t.Fatal(err)
	}
	finds(t, r.Namer, "r", "node a", "node b", "node c")
	r.named(t, 3)
}

// A backup that has all that was named, but not the names, has them given again.
func TestRunThatIsImportedWithoutItsNames(t *testing.T) {
	for _, further := range []bool{false, true} {
		r := asked(t)
		waits(t, goesOn(t, r.Dispatcher, "a"))
		r.keep(t)
		finds(t, r.Namer, "r", "node a")
		r.restore(t)
		if further {
			waits(t, goesOn(t, r.Dispatcher, "b"))
			finds(t, r.Namer, "r", "node a", "node b")
			r.named(t, 2)
			continue
		}
		finds(t, r.Namer, "r", "node a")
		r.named(t, 1)
	}
}

// Behind a backup that has all that the Namer has read it goes on where it was.
func TestRunThatIsImportedWhole(t *testing.T) {
	r := asked(t)
	waits(t, goesOn(t, r.Dispatcher, "a"))
	finds(t, r.Namer, "r", "node a")
	r.keep(t)
	r.restore(t)
	waits(t, goesOn(t, r.Dispatcher, "b"))
	finds(t, r.Namer, "r", "node b")
	r.named(t, 2)
}

// Nor does it go on in another run of that id and that beginning, of which the entry that it had
// read last is another one: it is of something else, or of another time.
func TestRunThatIsImportedInPlaceOfAnother(t *testing.T) {
	for name, goes := range map[string]func(*testing.T, *restored){
		"another entry": func(t *testing.T, other *restored) {
			waits(t, goesOn(t, other.Dispatcher, "a"))
			waits(t, goesOn(t, other.Dispatcher, "b"))
		},
		"another time": func(t *testing.T, other *restored) {
			<-time.After(time.Hour)
			waits(t, goesOn(t, other.Dispatcher, "a"))
			finds(t, other.Namer, "r", "node a")
			waits(t, goesOn(t, other.Dispatcher, "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in which both begin, and go on, in one instant
				r, other := asked(t), asked(t)
				waits(t, goesOn(t, r.Dispatcher, "a"))
				finds(t, r.Namer, "r", "node a")
				goes(t, other)
				other.keep(t)
				r.backup = other.backup
				r.restore(t)
				finds(t, r.Namer, "r", "node a", "node b")
				r.named(t, 2)
			})
		})
	}
}
