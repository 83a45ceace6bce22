package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

type config struct {
	listen, dir, secret, followUp string
	redeliver                     time.Duration
	waits                         Waits
}

// books is the file of the treasury.
func (c *config) books() string { return filepath.Join(c.dir, "payments.jsonl") }

func parse(args []string, stderr io.Writer) (*config, error) {
	c := &config{}
	f := flag.NewFlagSet("approval", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.listen, "listen", "localhost:8080", "`address` to serve at")
	f.StringVar(&c.dir, "dir", "approval-data", "`directory` of the store and of the payments")
	f.StringVar(&c.secret, "secret", "", "of 16 bytes or more that triggers are signed with (default: APPROVAL_SECRET of the environment)")
	f.StringVar(&c.followUp, "follow-up", "", "`URL` that is told what came of refunds; none are told without it")
	f.DurationVar(&c.redeliver, "redeliver", time.Minute, "how long after a follow-up that failed the next is tried")
	f.DurationVar(&c.waits.Manager, "manager", 72*time.Hour, "how long a person may take to decide")
	f.DurationVar(&c.waits.Duty, "duty", 24*time.Hour, "how long anybody may take after that")
	f.DurationVar(&c.waits.Hold, "hold", 24*time.Hour, "how long what was approved can be called off")
	err := f.Parse(args)
	c.secret = cmp.Or(c.secret, os.Getenv("APPROVAL_SECRET")) // as a default -help would print it
	switch {
	case err != nil:
		return nil, err
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is no flag: see -help", f.Arg(0))
	case min(c.waits.Manager, c.waits.Duty, c.waits.Hold, c.redeliver) <= 0:
		return nil, errors.New("-manager, -duty, -hold and -redeliver have to be more than nothing")
	case c.followUp != "" && !isURL(c.followUp):
		return nil, fmt.Errorf("-follow-up %q is no URL of http or https", c.followUp)
	case len(c.secret) < 16:
		return nil, errors.New("-secret has less than 16 bytes: without a good one anybody could approve")
	}
	return c, nil
}

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// run is main with its doors as arguments. It returns the exit status.
func run(args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal kills
	c, err := parse(args, stderr)
	if err == nil {
		err = c.serve(ctx, stderr)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "approval:", err)
		return 1
	}
	return 0
}

// serve serves until ctx ends.
func (c *config) serve(ctx context.Context, stderr io.Writer) (err error) {
	store, err := badgerstore.Open(ctx, filepath.Join(c.dir, "store"), badgerstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	work, ctx := errgroup.WithContext(ctx)
	s, err := newService(ctx, store, c)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "refunds are taken at http://%s\n", l.Addr())
	server := &http.Server{
		Handler: inTime(s.mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // what requests look up ends with it too
	}
	work.Go(func() error { return server.Serve(l) })
	work.Go(func() error { return s.rt.Serve(ctx, func(err error) { fmt.Fprintln(stderr, "approval:", err) }) })
	work.Go(func() error {
		if err := s.recover(ctx); err != nil {
			fmt.Fprintln(stderr, "approval:", err)
		}
		s.rt.Look()
		return nil
	})
	work.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return server.Shutdown(last)
	})
	if err := work.Wait(); !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// inTime gives a client 30 seconds to say what it wants. A ReadTimeout of the server would end what
// is done for it by then, too.
func inTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		c := http.NewResponseController(w)
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second)) // a writer that knows none has no client that waits
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
		if err != nil {
			status := http.StatusBadRequest
			if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
				status = http.StatusRequestEntityTooLarge
			}
			http.Error(w, "the request can't be read: "+err.Error(), status)
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		q.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, q)
	})
}
