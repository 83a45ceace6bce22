// Victim is the program that the tests of faults torture: it works on one run in one store, says
// what it was told to be durable, and may be killed at any moment.
//
//	go run ./internal/victim start -store badger:DIR -run ID -graph line50 -seed 7
//
// The commands are start (a run that must not exist), resume, cancel, answer (yes, to what the run
// asks), verify (the log and every checkpoint against the reference) and dump (all that the store
// says of the run, as JSON). The graphs are in graphs.go, each beside a reference: the same work in
// a plain loop.
//
// # Output
//
// Each line is written at once, in one write:
//
//	NODE path superstep key attempt    a body begins; the superstep is that of its frame
//	ACK superstep digest               a checkpoint of the run's own frame was reported durable
//	ERR kind                           how a call ended, or the closing of the store behind it, see kinds.go;
//	                                   the text goes to standard error
//	AT superstep digest                after an ERR: what the store says of the run then
//	DONE digest                        the run is completed
//	OK superstep digest                verify found nothing wrong
//
// The exit status is 0 if the run is completed, or the command done; 3 if the run rests otherwise;
// 1 after any other error, and 2 if the program was called wrongly.
//
// # Digests
//
// A digest is the SHA-256, in lower-case hex, of a state as json.Marshal writes it: one object
// without white space, of the cells of Work in the order of their declaration.
//
//	{"Seed":7,"Steps":2,"Chain":"5b1f…","Trail":["0c2a…","77de…"],"Pages":[]}
//
// Seed is the flag, Steps counts visits. Every visit adds its mark to Trail: the first 16 digits of
// the hex SHA-256 of "seed path". Those that have nobody beside them set Chain, which is "" before
// the first of them, to the hex SHA-256 of "chain path". What goes into Pages is said at page and
// leaf.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// The exit statuses beside 0 and 1.
const (
	usage = 2
	rests = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A call is what the command line asks for.
type call struct {
	command  string
	dir      string
	run      string
	graph    string
	seed     int64
	lag      int
	unsynced bool
	memtable int64
	within   time.Duration
	grace    time.Duration
	closing  time.Duration
	hold     int
}

// run does what the arguments ask for, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if err != nil {
		if !errors.Is(err, errParsed) {
			_, _ = fmt.Fprintln(stderr, "victim:", err)
		}
		return usage
	}
	v := &victim{call: *c, out: &lines{w: stdout, hold: c.hold}}
	fail := func(err error) {
		v.out.say("ERR", kindOf(err))
		_, _ = fmt.Fprintln(stderr, "victim:", err)
	}
	if err = v.do(ctx); err != nil {
		fail(err)
		v.tellWhere(ctx)
	}
	closing := v.close()
	if closing != nil {
		fail(closing)
	}
	switch {
	case err == nil && closing == nil:
		return 0
	case isRest(err) && closing == nil:
		return rests
	}
	return 1
}

// errParsed is an error of which package flag has told.
var errParsed = errors.New("told already")

// parse reads the command line.
func parse(args []string, stderr io.Writer) (*call, error) {
	var c call
	f := flag.NewFlagSet("victim {"+strings.Join(commandNames(), "|")+"}", flag.ContinueOnError)
	f.SetOutput(stderr)
	store := f.String("store", "", "where the runs are: badger:`DIR`")
	f.StringVar(&c.run, "run", "victim", "`id` of the run")
	f.StringVar(&c.graph, "graph", "", "one of "+strings.Join(graphNames(), ", "))
	f.Int64Var(&c.seed, "seed", 1, "of all that the run computes")
	f.IntVar(&c.lag, "lag", 0, "supersteps that may be on their way to the disk while the run goes on")
	f.BoolVar(&c.unsynced, "unsynced", false, "open the store so that it survives the process only")
	f.Int64Var(&c.memtable, "memtable", 0, "`bytes` in memory before they become a table; 0 means the store's default")
	f.DurationVar(&c.within, "within", 0, "the deadline of what is done with the store once it is open; 0 means none")
	f.DurationVar(&c.grace, "grace", 0, "how long a call may take behind its deadline; 0 means the dispatcher's default")
	f.DurationVar(&c.closing, "closing", 0, "how long closing the store may take; 0 means the store's default")
	f.IntVar(&c.hold, "hold", 0, "wait behind so many `lines` until standard input ends; 0 means never")
	if len(args) > 0 {
		c.command = args[0]
		args = args[1:]
	}
	if err := f.Parse(args); err != nil {
		return nil, errParsed
	}
	kind, dir, _ := strings.Cut(*store, ":")
	c.dir = dir
	switch {
	case commands[c.command] == nil:
		return nil, fmt.Errorf("%q is no command: use one of %s", c.command, strings.Join(commandNames(), ", "))
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is too much", f.Arg(0))
	case kind != "badger" || dir == "":
		return nil, fmt.Errorf("-store %q: use badger:DIR", *store)
	case graphs[c.graph].build == nil:
		return nil, fmt.Errorf("-graph %q: use one of %s", c.graph, strings.Join(graphNames(), ", "))
	}
	return &c, nil
}
