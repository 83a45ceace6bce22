package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its doors as arguments. It returns the exit status. The first signal cancels,
// the second one kills.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	c, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		help(stdout)
		return 0
	case err == nil:
		err = c.do(ctx, stdout, stderr)
	}
	if line := complaint(err); line != "" {
		fmt.Fprintln(stderr, "payments: "+line)
	}
	return exitStatus(err)
}

func (c *config) do(ctx context.Context, stdout, stderr io.Writer) error {
	client := &bank.Client{URL: strings.TrimSuffix(c.service, "/")}
	switch {
	case c.serve != "":
		return serve(ctx, c.serve, stderr)
	case c.statement:
		s, err := client.Statement(ctx)
		if err != nil {
			return err
		}
		return writeJSON(stdout, s)
	}
	s, err := open(ctx, c, client, stderr)
	if err != nil {
		return err
	}
	if c.open {
		err = s.list(ctx, stdout)
	} else {
		err = s.work(ctx, stdout)
	}
	if closing := s.store.Close(); closing != nil && exitStatus(err) != 1 {
		err = closing
	}
	return err
}

// serve is a bank until ctx ends. It forgets everything when it ends.
func serve(ctx context.Context, addr string, stderr io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "the bank is open at http://%s\n", l.Addr())
	server := &http.Server{Handler: new(bank.Bank), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	closed := context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns
	defer closed()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
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

// complaint is the one line that tells of err, or "" if the run came to rest and can go on: that
// has been told in other words.
func complaint(err error) string {
	if err == nil || exitStatus(err) == 3 {
		return ""
	}
	line := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
	if exitStatus(err) == 2 {
		line += " (payments -help tells more)"
	}
	return line
}

func help(w io.Writer) {
	fmt.Fprint(w, "payments [flags] SUM FROM TO\n\nPays somebody by way of a bank that can be told to fail.\n\n")
	fs := new(config).flags()
	fs.SetOutput(w)
	fs.PrintDefaults()
}
