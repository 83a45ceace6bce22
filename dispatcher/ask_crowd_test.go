package dispatcher_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dispatcher"
)

// A thousand questions of a hundred live runs are answered by sixteen goroutines of two
// processes, each question twice, some with others together: of two answers exactly one is
// accepted, it is the one that the node gets, none is lost, and nobody is told that a run is
// busy. Half of the runs come to rest meanwhile.
func TestAskCrowd(t *testing.T) {
	t.Run("memory", func(t *testing.T) { askCrowd(t, &memory.Store{}, 100) })
	t.Run("memory, unwatched", func(t *testing.T) { askCrowd(t, unwatched{&memory.Store{}}, 20) })
	t.Run("badger", func(t *testing.T) {
		store, err := badgerstore.OpenUnsynced(t.Context(), t.TempDir(), badgerstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		askCrowd(t, store, 100)
	})
}

// An askGiven is a question with an answer for it, or two of them that are to be answered
// together.
type askGiven struct {
	run    string
	values map[string]any // by interrupt
	by     string
}

func askCrowd(t *testing.T, store checkpoint.Store, runs int) {
	const visits, clerks = 5, 16 // each visit asks twice
	quiet(t)
	free, rest := make(chan struct{}), closedChan()
	var w witness
	begin := func(id string, free <-chan struct{}) (wait func()) {
		var asked sync.WaitGroup
		asked.Add(2 * visits)
		var once [2 * visits]sync.Once
		seen := 0
		d := process(t, askSeveral(t, &w, visits, free), store, dispatcher.Options{Observe: func(e dispatcher.Event) {
			if e.Kind == dispatcher.VisitInterrupted {
				once[seen].Do(asked.Done)
				seen++
			}
		}})
		over := make(chan struct{})
		go func() { // ends when the run does, which wait waits for
			defer close(over)
			res, err := d.Run(t.Context(), id, nil)
			var rest *dispatcher.Rest
			if err != nil && (!errors.As(err, &rest) || res.Status != checkpoint.StatusInterrupted) {
				t.Errorf("run %s: %v", id, err)
			}
		}()
		asked.Wait()
		return func() { <-over }
	}
	var waits []func()
	var all []askGiven
	reader := process(t, askSeveral(t, &w, visits, free), store, dispatcher.Options{})
	for i := range runs {
		id, hold := fmt.Sprintf("run-%d", i), (<-chan struct{})(free)
		if i%2 == 1 {
			hold = rest
		}
		waits = append(waits, begin(id, hold))
		all = append(all, askCrowdGiven(t, reader, id)...)
	}
	accepted := askCrowdWork(t, store, all, clerks, visits)
	close(free)
	for _, wait := range waits {
		wait()
	}
	if len(accepted) != runs*2*visits {
		t.Errorf("%d of %d questions were answered", len(accepted), runs*2*visits)
	}
	for i := range runs {
		id := fmt.Sprintf("run-%d", i)
		res, err := reader.Run(t.Context(), id, nil)
		if !errors.Is(err, dispatcher.ErrCompleted) && err != nil || res.Status != checkpoint.StatusCompleted {
			t.Fatalf("run %s: %v", id, err)
		}
		for interrupt, a := range askAnswers(t, store, id) {
			if accepted[interrupt] != a.By+": "+string(a.Value) {
				t.Errorf("run %s: interrupt %s has the answer of %s, %s, and accepted was that of %s", id, interrupt, a.By, a.Value, accepted[interrupt])
			}
			delete(accepted, interrupt)
		}
	}
	if len(accepted) > 0 {
		t.Errorf("accepted and lost: %v", accepted)
	}
}

// askCrowdGiven are the answers to the questions of a run: of each two, by two persons. Of
// every other visit one of them gives both answers together.
func askCrowdGiven(t *testing.T, d *dispatcher.Dispatcher[Tale], id string) (all []askGiven) {
	res, err := d.State(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	together := map[string]map[string]any{}
	for n, i := range res.Interrupts {
		for p, by := range []string{"Ada", "Eve"} {
			var value any = fmt.Sprint(by, " ")
			if i.Key == "number" {
				value = 10*n + p
			}
			if p == 0 && i.Path[len(i.Path)-1]%2 == 0 {
				if together[i.Path] == nil {
					together[i.Path] = map[string]any{}
					all = append(all, askGiven{id, together[i.Path], by})
				}
				together[i.Path][i.ID] = value
				continue
			}
			all = append(all, askGiven{id, map[string]any{i.ID: value}, by})
		}
	}
	return all
}

// askCrowdWork gives the answers, and returns those that were accepted, by interrupt.
func askCrowdWork(t *testing.T, store checkpoint.Store, all []askGiven, clerks, visits int) map[string]string {
	todo := make(chan askGiven)
	accepted := map[string]string{}
	var mu sync.Mutex
	var working sync.WaitGroup
	var w witness
	free := make(chan struct{})
	for k := range clerks {
		d := process(t, askSeveral(t, &w, visits, free), store, dispatcher.Options{})
		working.Go(func() { // ends when nothing is left to do
			for g := range todo {
				var err error
				if len(g.values) == 1 && k%2 == 0 {
					for id, value := range g.values {
						err = d.Answer(t.Context(), g.run, id, value, dispatcher.Author(g.by))
					}
				} else {
					err = d.Answers(t.Context(), g.run, g.values, dispatcher.Author(g.by))
				}
				if err != nil {
					if !errors.Is(err, dispatcher.ErrNotAwaited) {
						t.Errorf("%+v: %v", g, err)
					}
					continue
				}
				mu.Lock()
				for id, value := range g.values {
					if was := accepted[id]; was != "" {
						t.Errorf("interrupt %s was answered twice", id)
					}
					accepted[id] = g.by + ": " + asJSON(t, value)
				}
				mu.Unlock()
			}
		})
	}
	for n := range all { // those of one question come close to one another
		todo <- all[n]
	}
	close(todo)
	working.Wait()
	return accepted
}
