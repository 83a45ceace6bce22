package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const defaultNotes = "notes"

// A config is a command line.
type config struct {
	task     string
	audience string
	dir      string // of the store
	notes    string // directory
	run      string // "" if not given
	resume   bool
	answer   *string
	budget   *int
	json     bool
	verbose  bool
}

// A usageError says what is wrong with a command line.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// run is main with its doors as arguments. It returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = c.do(ctx, stdout, stderr)
	}
	status := exitStatus(err)
	if status == 1 || status == 2 {
		fmt.Fprintf(stderr, "agent: %v\n", err)
	}
	return status
}

// exitStatus is what doc.go promises.
func exitStatus(err error) int {
	var usage *usageError
	var rest *dispatcher.Rest
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 2
	case errors.As(err, &rest) && rest.Status != checkpoint.StatusFailed:
		return 3
	}
	return 1
}

// parse reads a command line. It touches nothing. flag.ErrHelp asks for the usage, which it prints.
func parse(args []string, stdout io.Writer) (*config, error) {
	c := &config{}
	fs := flag.NewFlagSet("agent", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&c.dir, "store", "", "keep runs in `DIR` (default: pawl/agent in the user's cache directory)")
	fs.StringVar(&c.notes, "notes", defaultNotes, "write notes into files of `DIR`")
	fs.StringVar(&c.run, "run", "", "the `ID` of the run (default: a new one)")
	fs.BoolVar(&c.resume, "resume", false, "go on with -run, or with the newest run that is not completed")
	fs.Func("answer", "with -resume: answer what the run asked with `TEXT`", func(s string) error {
		c.answer = &s
		return nil
	})
	fs.StringVar(&c.audience, "for", "", "write the answer for an `AUDIENCE`")
	fs.Func("budget", "spend at most `N` tokens, 0 for as many as it takes", func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return errors.New("not a number of tokens")
		}
		c.budget = &n
		return nil
	})
	fs.BoolVar(&c.json, "json", false, "print all that the agent knows as one JSON object")
	fs.BoolVar(&c.verbose, "v", false, "log the calls of the model")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, "agent [flags] \"task\"\n\nWorks on a task with a language model and tools.\n\n")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, usagef("%v", err)
	case fs.NArg() > 1:
		return nil, usagef("one task is worked on at a time: put it in quotes, behind the flags")
	}
	var empty error
	fs.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" && slices.Contains([]string{"store", "notes", "run"}, f.Name) {
			empty = usagef("-%s is empty", f.Name)
		}
	})
	if empty != nil {
		return nil, empty
	}
	c.task = fs.Arg(0)
	return c, c.check()
}

// check refuses what can't be meant.
func (c *config) check() error {
	if c.run != "" {
		if err := checkpoint.CheckRunID(c.run); err != nil {
			return usagef("%v", err)
		}
	}
	switch {
	case c.resume && (c.task != "" || c.audience != ""):
		return usagef("-resume takes no task: the run has one")
	case c.answer != nil && !c.resume:
		return usagef("-answer needs -resume")
	}
	return nil
}

// directory is where runs are kept.
func (c *config) directory() (string, error) {
	if c.dir != "" {
		return c.dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for runs, name one with -store: %w", err)
	}
	return filepath.Join(cache, "pawl", "agent"), nil
}
