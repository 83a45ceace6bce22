package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// defaultService is where -serve of the documentation is.
const defaultService = "http://127.0.0.1:8470"

// A config is a command line.
type config struct {
	order   Order // of no sum if none was given
	dir     string
	run     string // "" if not given
	service string
	by      string
	json    bool
	faults  []bank.Fault

	resume    bool
	approve   bool
	reject    bool
	resolve   string
	open      bool
	statement bool
	serve     string
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
	var empty error
	fs.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" && f.Name != "fault" {
			empty = usagef("-%s is empty", f.Name)
		}
	})
	if empty != nil {
		return nil, empty
	}
	if err := c.checkMode(fs.Args()); err != nil {
		return nil, err
	}
	return c, c.check(fs.Args())
}

func (c *config) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("payments", flag.ContinueOnError)
	fs.StringVar(&c.dir, "store", "", "keep runs in `DIR` (default: pawl/payments in the user's cache directory)")
	fs.StringVar(&c.run, "run", "", "the `ID` of the payment (default: a new one, or the newest that is not completed)")
	fs.StringVar(&c.service, "service", defaultService, "the `URL` of the bank")
	fs.StringVar(&c.by, "by", "", "the `NAME` of who approves, rejects or resolves (default: the user's)")
	fs.BoolVar(&c.json, "json", false, "print one JSON object")
	fs.Func("fault", "before that, tell the bank what goes wrong: `OPERATION:KIND`, such as transfer:lose-reply", func(s string) error {
		f, err := bank.ParseFault(s)
		c.faults = append(c.faults, f)
		return err
	})
	fs.BoolVar(&c.resume, "resume", false, "go on with a payment")
	fs.BoolVar(&c.approve, "approve", false, "approve a payment that waits for it, and go on")
	fs.BoolVar(&c.reject, "reject", false, "reject a payment that waits for an approval, and go on")
	fs.StringVar(&c.resolve, "resolve", "", "say what came of a transfer in doubt, happened:NUMBER or not-happened:REASON, and go on (`WHAT`)")
	fs.BoolVar(&c.open, "open", false, "list what waits for a person or is in doubt; nothing runs")
	fs.BoolVar(&c.statement, "statement", false, "print what the bank has done")
	fs.StringVar(&c.serve, "serve", "", "be the bank, on this `ADDRESS`")
	return fs
}

// modes are what was asked for beside a payment.
func (c *config) modes() []string {
	var all []string
	for _, m := range []struct {
		name string
		on   bool
	}{
		{"-resume", c.resume}, {"-approve", c.approve}, {"-reject", c.reject}, {"-resolve", c.resolve != ""},
		{"-open", c.open}, {"-statement", c.statement}, {"-serve", c.serve != ""},
	} {
		if m.on {
			all = append(all, m.name)
		}
	}
	return all
}

// checkMode refuses two things to do at once, and nothing to do.
func (c *config) checkMode(args []string) error {
	modes := c.modes()
	switch {
	case len(modes) > 1:
		return usagef("%s can't be combined", strings.Join(modes, " and "))
	case len(modes) == 1 && len(args) > 0:
		return usagef("%s takes no payment", modes[0])
	case len(modes) == 0 && len(args) != 3:
		return usagef("say what is to be paid: SUM FROM TO, behind the flags")
	case len(c.faults) > 0 && (c.serve != "" || c.open || c.statement):
		return usagef("-fault is for the payments of one command")
	}
	return nil
}

// check refuses what can't be meant.
func (c *config) check(args []string) error {
	if c.run != "" {
		if err := checkpoint.CheckRunID(c.run); err != nil {
			return usagef("%v", err)
		}
	}
	if c.resolve != "" {
		if _, err := parseFinding(c.resolve); err != nil {
			return usagef("%v", err)
		}
	}
	if len(args) == 0 {
		return nil
	}
	cents, err := parseSum(args[0])
	if err != nil {
		return usagef("%v", err)
	}
	if args[1] == "" || args[2] == "" || args[1] == args[2] {
		return usagef("money goes from somebody to somebody else")
	}
	for _, name := range args[1:] {
		if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return usagef("%q is nobody's name: it is not UTF-8, or holds a control character", name)
		}
	}
	c.order = Order{From: args[1], To: args[2], Cents: cents}
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
	return filepath.Join(cache, "pawl", "payments"), nil
}

// author is who decides.
func (c *config) author() string {
	if c.by != "" {
		return c.by
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "the command line"
}
