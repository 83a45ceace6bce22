//go:build rivals

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A langGraph is a process that runs graphs of LangGraph.js. It has its window when the
// others have none, and measures with its own clock. The nil langGraph has no entrants.
type langGraph struct {
	process *exec.Cmd
	ask     io.WriteCloser
	answers *json.Decoder
	there   struct {
		Node, Version string
		Absent        map[string]string // what keeps checkpoints, and why
	}
}

// A request says what to do how many times.
type request struct {
	Graph string `json:"graph"`
	Nodes int    `json:"nodes"`
	Saver string `json:"saver"`
	Text  string `json:"text,omitempty"` // that each node writes
	Times int    `json:"times"`
}

func (l *langGraph) absentSavers() (rows []row) {
	if l == nil {
		return nil
	}
	for _, saver := range savers {
		if why, gone := l.there.Absent[saver.kept]; gone {
			rows = append(rows, absent("rivals/durable-step/langgraph-"+saver.name, why))
		}
	}
	return rows
}

// The savers, what keeps their checkpoints, and what survives what.
var savers = []struct{ name, kept, note string }{
	{"memory", "memory", survivesNothing},
	{"sqlite", "sqlite", "one file for all windows, write-ahead log, synchronous = NORMAL as the saver leaves it; " + survivesProcess},
	{"sqlite-full", "sqlite", "one file for all windows, write-ahead log, synchronous = FULL; " + survivesPower},
	{"postgres", "postgres", postgresNote},
}

// startLangGraph starts the process, or returns an error that says what is absent.
func startLangGraph(dir string) (*langGraph, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node is not there")
	}
	script := filepath.Join("langgraph", "rival.mjs")
	if _, err := os.Stat(script); err != nil {
		return nil, errors.New("langgraph/rival.mjs is not there: run this in bench/")
	}
	if _, err := os.Stat(filepath.Join("langgraph", "node_modules", "@langchain", "langgraph")); err != nil {
		return nil, errors.New("not installed: npm ci in bench/langgraph")
	}
	l := &langGraph{process: exec.Command(node, script, dir, os.Getenv(postgresVariable))}
	l.process.Stderr = os.Stderr
	if l.ask, err = l.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.answers = json.NewDecoder(out)
	if err := l.process.Start(); err != nil {
		return nil, err
	}
	if err := l.answers.Decode(&l.there); err != nil {
		return nil, errors.Join(fmt.Errorf("%s printed nothing of use: %w", script, err), l.close())
	}
	return l, nil
}

// close lets the process end, and waits for it.
func (l *langGraph) close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.ask.Close(), l.process.Wait())
}

// call asks for something, and decodes the answer.
func (l *langGraph) call(request, answer any) error {
	if err := json.NewEncoder(l.ask).Encode(request); err != nil {
		return err
	}
	var line json.RawMessage
	if err := l.answers.Decode(&line); err != nil {
		return err
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err != nil {
		return err
	}
	if failed.Error != "" {
		return errors.New(failed.Error)
	}
	return json.Unmarshal(line, answer)
}

func (l *langGraph) probe(r request) probe {
	return func(n int) (time.Duration, error) {
		r.Times = n
		var a struct{ Took time.Duration }
		err := l.call(r, &a)
		return a.Took, err
	}
}

// entrants is one that does what r says, or none.
func (l *langGraph) entrants(r request, note string) []entrant {
	if l == nil {
		return nil
	}
	if r.Saver == "" {
		r.Saver = "none"
	}
	what := fmt.Sprintf("LangGraph.js %s in a process of its own (node %s)", l.there.Version, l.there.Node)
	if note != "" {
		what += ", " + note
	}
	return []entrant{{"langgraph", what, l.probe(r)}}
}

// durable is one for each saver that is there. Durability "sync" waits for each checkpoint,
// as pawl does; the default lets a step begin meanwhile.
func (l *langGraph) durable(steps int) []entrant {
	if l == nil {
		return nil
	}
	var es []entrant
	for _, saver := range savers {
		if _, gone := l.there.Absent[saver.kept]; gone {
			continue
		}
		r := request{Graph: "write", Nodes: steps, Saver: saver.name, Text: text}
		e := l.entrants(r, "durability sync, saver "+saver.name+": "+saver.note)[0]
		e.name += "-" + saver.name
		es = append(es, e)
	}
	return es
}

// postgresVariable names the environment variable with the URL of a PostgreSQL database in
// which those that need one make a schema of their own, and drop it.
const postgresVariable = "BENCH_POSTGRES"

const postgresNote = "one schema for all windows; where the server has fsync and synchronous_commit on, " + survivesPower
