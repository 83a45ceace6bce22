package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlgo/pawl/checkpoint"
)

const (
	longest   = 64 << 10 // bytes of a question
	mostBooks = 50       // that -books may want
)

// A config is a command line. Durations are nil if they were not given: zero is a duration too.
type config struct {
	question    string
	dir         string // of the store
	run         string // "" if not given
	resume      bool
	answer      *string
	json        bool
	slow        time.Duration
	cancelAfter *time.Duration
	cancelAt    string
	deadline    *time.Duration
	history     bool
	fork        string // a checkpoint
	diff        [2]string
	blame       string // a cell
	record      bool
	graph       string
	corpus      string
	addr        string // of the metrics
	online      bool
	approve     *bool // nil if not given
	model       string
	most        int // books in an answer; 0 if not given
}

// A usageError says what is wrong with a command line.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// parse reads a command line. It touches nothing. flag.ErrHelp asks for the usage.
func parse(args []string) (*config, error) {
	c := &config{}
	fs := c.flags()
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usagef("%v", err)
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range []string{"store", "run", "cancel-at", "graph", "corpus", "metrics", "model", "fork", "diff", "blame"} {
		if given[name] && fs.Lookup(name).Value.String() == "" {
			return nil, usagef("-%s is empty", name)
		}
	}
	if fs.NArg() > 1 && c.diff[0] != "" {
		return nil, usagef("-diff A B comes last, behind the other flags")
	}
	if fs.NArg() > 1 {
		return nil, usagef("one question is answered at a time: put it in quotes, behind the flags")
	}
	if c.question = fs.Arg(0); c.diff[0] != "" {
		c.diff[1], c.question = c.question, ""
	}
	return c, c.check()
}

func (c *config) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("archivist", flag.ContinueOnError)
	fs.StringVar(&c.dir, "store", "", "keep runs in `DIR` (default: pawl/archivist in the user's cache directory)")
	fs.StringVar(&c.run, "run", "", "the `ID` of the run (default: a new one)")
	fs.BoolVar(&c.resume, "resume", false, "go on with -run, or with the newest run that is not completed")
	fs.Func("answer", "with -resume: answer what the run asked with `TEXT`", func(s string) error {
		c.answer = &s
		return nil
	})
	fs.BoolVar(&c.json, "json", false, "print one JSON object instead of the answer")
	fs.DurationVar(&c.slow, "slow", 0, "make every scout and every draft take `D` longer")
	fs.Func("cancel-after", "cancel the run after `D`", duration(&c.cancelAfter))
	fs.StringVar(&c.cancelAt, "cancel-at", "", "cancel the run just before the visit of this `PATH`")
	fs.Func("deadline", "let the run time out after `D`", duration(&c.deadline))
	fs.BoolVar(&c.history, "history", false, "list the checkpoints of -run, or of the newest run")
	fs.StringVar(&c.fork, "fork", "", "begin a new run at a `CHECKPOINT` of -run, or of the newest run, with another question")
	fs.StringVar(&c.diff[0], "diff", "", "tell what differs between two checkpoints of -run, or of the newest run: -diff `A` B")
	fs.StringVar(&c.blame, "blame", "", "tell who wrote a `CELL` of -run, or of the newest run")
	fs.BoolVar(&c.record, "record", false, "print the verified continuation record of -run, or of the newest run")
	fs.StringVar(&c.graph, "graph", "", "print the graph in a `FORMAT`: mermaid, dot or json")
	fs.StringVar(&c.corpus, "corpus", "", "answer from the catalogue in `FILE`, one book in JSON per line")
	fs.BoolVar(&c.online, "online", false, "ask Open Library too, over the network")
	fs.BoolFunc("approve", "ask a person before the answer goes out", func(s string) error {
		on, err := strconv.ParseBool(s)
		c.approve = &on
		return err
	})
	fs.StringVar(&c.model, "model", "", "the `NAME` of the language model, if the environment names an endpoint")
	fs.Func("books", "name at most `N` books", func(s string) (err error) {
		if c.most, err = strconv.Atoi(s); err != nil || c.most < 1 || c.most > mostBooks {
			return fmt.Errorf("it is from 1 to %d", mostBooks)
		}
		return nil
	})
	fs.StringVar(&c.addr, "metrics", "", "serve Prometheus metrics on `ADDR` while the run is at work")
	return fs
}

func duration(to **time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("not a duration")
		}
		if d < 0 {
			return errors.New("negative")
		}
		*to = &d
		return nil
	}
}

// check refuses what can't be meant.
func (c *config) check() error {
	if c.slow < 0 {
		return usagef("-slow is negative")
	}
	if c.run != "" {
		if err := checkpoint.CheckRunID(c.run); err != nil {
			return usagef("%v", err)
		}
	}
	if !slices.Contains([]string{"", "mermaid", "dot", "json"}, c.graph) {
		return usagef("-graph is mermaid, dot or json, not %q", c.graph)
	}
	if err := c.checkMode(); err != nil {
		return err
	}
	if err := cmp.Or(checkText("the question", c.question), checkText("-model", c.model)); err != nil {
		return err
	}
	if c.answer != nil {
		return checkText("the answer", *c.answer)
	}
	return nil
}

// checkMode refuses two things to do at once.
func (c *config) checkMode() error {
	var modes []string
	for _, m := range []struct {
		name string
		on   bool
	}{{"-resume", c.resume}, {"-history", c.history}, {"-graph", c.graph != ""},
		{"-diff", c.diff[0] != ""}, {"-blame", c.blame != ""}, {"-record", c.record}, {"-fork", c.fork != ""}} {
		if m.on {
			modes = append(modes, m.name)
		}
	}
	switch {
	case len(modes) > 1:
		return usagef("%s can't be combined", strings.Join(modes, " and "))
	case c.diff[0] != "" && c.diff[1] == "":
		return usagef("-diff takes two checkpoints: -diff A B")
	case len(modes) == 1 && c.fork == "" && c.question != "":
		return usagef("%s takes no question", modes[0])
	case c.answer != nil && !c.resume:
		return usagef("-answer needs -resume")
	}
	return nil
}

func checkText(what, text string) error {
	switch {
	case len(text) > longest:
		return usagef("%s has %d bytes, the limit is %d", what, len(text), longest)
	case !utf8.ValidString(text):
		return usagef("%s is not UTF-8", what)
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
	return filepath.Join(cache, "pawl", "archivist"), nil
}
