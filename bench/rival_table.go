//go:build rivals

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawlgo/pawl/dag"
)

// rivals compares pawl with what else a program could use, each written as its own
// documentation says. Where the durability differs the notes say what survives what. A rival
// that needs what is not there has a row that says so:
//
//   - LangGraph.js: node, and npm ci in bench/langgraph
//   - its PostgreSQL saver, and River: the URL of a database in BENCH_POSTGRES
//   - River: go run -tags river
//   - Temporal: go run -tags temporal, and the address of a server in TEMPORAL_ADDRESS, such as
//     that of temporal/serve.sh
func rivals(s session) (rows []row, err error) {
	t := &table{session: s}
	defer func() { err = errors.Join(err, t.close()) }()
	t.js, t.gone = startLangGraph(s.dir)
	t.rows = t.js.absentSavers()
	t.opened = append(t.opened, t.js.close)
	for _, group := range []struct {
		name    string
		measure func() error
	}{{"chain", t.chains}, {"fan", t.fan}, {"durable", t.durable}, {"question", t.questions}} {
		if !s.wants("rivals/" + group.name) {
			continue
		}
		if err := group.measure(); err != nil {
			return t.rows, err
		}
	}
	return t.rows, nil
}

// A table is the rows of all rivals so far, and what has to be closed in the end.
type table struct {
	session session
	js      *langGraph // nil if it is absent
	gone    error      // why it is
	rows    []row
	opened  []func() error
}

func (t *table) close() error {
	var errs []error
	for _, close := range t.opened {
		errs = append(errs, close())
	}
	return errors.Join(errs...)
}

// add compares, if that is wanted. LangGraph.js, if it is absent, has a row in each comparison.
func (t *table) add(window time.Duration, c comparison) error {
	if !t.session.wants("rivals/" + c.name + "/") {
		return nil
	}
	if t.gone != nil {
		t.rows = append(t.rows, absent("rivals/"+c.name+"/langgraph", t.gone.Error()))
	}
	rows, err := t.session.compare(window, c)
	t.rows = append(t.rows, rows...)
	return err
}

// chains compares whole runs of linear chains that save nothing.
func (t *table) chains() error {
	for _, n := range t.session.sizes(10, 100, 1_000) {
		rest := []entrant{
			{"goroutine-channel", "a goroutine for each node, a channel to hand over", watch(handOvers(n))},
			{"errgroup", "a group for each node", watch(errgroups(n))},
		}
		for _, mode := range einoModes {
			run, err := mode.chain(n)
			if err != nil {
				return err
			}
			rest = append(rest, entrant{mode.name, mode.note, watch(run)})
		}
		rest = append(rest, t.js.entrants(request{Graph: "chain", Nodes: n}, "")...)
		err := t.add(t.session.window, comparison{
			name:  fmt.Sprintf("chain-%d", n),
			each:  "a node of a whole run that saves nothing",
			per:   float64(n),
			first: entrant{name: "pawl", run: watch(starts(n))},
			rest:  rest,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fan compares a fan-out and its join that save nothing.
func (t *table) fan() error {
	rest := []entrant{{"errgroup", "a copy of the state for each function", watch(groups())}}
	for _, mode := range einoModes {
		run, err := mode.fan(width)
		if err != nil {
			return err
		}
		rest = append(rest, entrant{mode.name, mode.note, watch(run)})
	}
	rest = append(rest, t.js.entrants(request{Graph: "fan", Nodes: width}, "")...)
	return t.add(t.session.window, comparison{
		name:  fmt.Sprintf("fan-%d", width),
		each:  "a whole run that saves nothing",
		per:   1,
		first: entrant{name: "pawl", run: watch(fanOuts())},
		rest:  rest,
	})
}

// durable compares steps that write 1 KB each, one run at a time. Who writes to Badger has a
// directory for each window: what is merged behind one is not in the next. The others keep their
// process or their server, and what it has.
func (t *table) durable() error {
	s := t.session
	g := chain(s.length, write)
	size, err := sizeOf(s, g)
	if err != nil {
		return err
	}
	rest, err := synced(s, size)
	if err != nil {
		return err
	}
	rest = append(rest, t.js.durable(s.length)...)
	rest = append(rest, t.served(s)...)
	return t.add(s.long, comparison{
		name:  "durable-step",
		each:  fmt.Sprintf("a step that writes a text of %d bytes, of a whole run of %d", len(text), s.length),
		per:   float64(s.length),
		first: pawlSynced(s, g, size),
		rest:  rest,
	})
}

// pawlSynced is pawl with a store for each window. A superstep of g is so many bytes.
func pawlSynced(s session, g *dag.Graph[Work], size int) entrant {
	note := fmt.Sprintf("Badger, synced, %d bytes with envelope and key; %s", size, survivesPower)
	return entrant{"pawl", note, fresh(s, true, func(b *bed) contender { return b.runs(g, 1) }).timed}
}

// synced are the others that save to a synced Badger: transactions of so many bytes, or what they
// have to. They have one for each window.
func synced(s session, size int) ([]entrant, error) {
	alone := freshBare(s, size, true, func(b *bare, n int) error { return b.groups(1)(n * s.length) })
	rest := []entrant{{"badger", "a synced transaction of the same bytes, which nothing resumes; " + survivesPower, alone.timed}}
	for _, mode := range einoModes {
		run, err := mode.durable(s.length)
		if err != nil {
			return nil, err
		}
		rest = append(rest, entrant{mode.name, mode.note + ", which saves at interrupts only: one after every node, " +
			"and called again; its checkpoints in a synced Badger; " + survivesPower, freshBare(s, 1, true, run).timed})
	}
	return rest, nil
}

// served are those that need a server. Those that are absent have rows.
func (t *table) served(s session) []entrant {
	var rest []entrant
	for _, server := range []struct {
		name string
		open func(session) (*service, error)
	}{{"river", openRiver}, {"temporal", openTemporal}} {
		made, err := server.open(s)
		if err != nil {
			t.rows = append(t.rows, absent("rivals/durable-step/"+server.name, err.Error()))
			continue
		}
		t.opened = append(t.opened, made.close)
		rest = append(rest, entrant{server.name, made.note, made.run})
	}
	return rest
}

// A service is a rival at work on a server.
type service struct {
	note  string
	run   probe
	close func() error
}

// What is left when a program dies, or the machine.
const (
	survivesNothing = "the run does not survive the process"
	survivesProcess = "a finished step survives the process; of a power cut the last ones may not be there"
	survivesPower   = "a finished step survives the process and a power cut"
)

// questions compares what it takes to stop at a question, to answer it, and to go on in the
// same process with everything in memory.
func (t *table) questions() error {
	for _, n := range t.session.sizes(10, 1_000) {
		var rest []entrant
		for _, mode := range einoModes {
			run, err := mode.question(n)
			if err != nil {
				return err
			}
			rest = append(rest, entrant{mode.name, mode.note + ", its checkpoints in a map; " + survivesNothing, run})
		}
		rest = append(rest, t.js.entrants(request{Graph: "question", Nodes: n, Saver: "memory"}, "saver memory; "+survivesNothing)...)
		err := t.add(t.session.window, comparison{
			name:  fmt.Sprintf("question-%d", n),
			each:  "from the question, asked by the last node but one, to the end of the run that its answer resumes",
			per:   1,
			first: entrant{"pawl", "memory store; " + survivesNothing, asking(n)},
			rest:  rest,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
