package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// A session is one command at work on the store.
type session struct {
	*config
	lib        *Library
	graph      *dag.Graph[Inquiry]
	store      *badgerstore.Store
	dispatcher *dispatcher.Dispatcher[Inquiry]

	stderr   *os.File
	stops    *stops
	recorder *recorder
	progress *progress
	exporter *exporter // nil without -metrics
	origin   string    // with -fork: the run that was forked
	closers  []func() error
}

// open opens all that a command needs. What it refuses for the command line's sake, it refuses
// before it has touched the store.
func open(c *config, stderr *os.File) (_ *session, err error) {
	s := &session{config: c}
	defer func() {
		if err != nil {
			_ = s.close() // err says more
		}
	}()
	ctx := context.Background()
	books, err := c.books()
	if err != nil {
		return nil, err
	}
	if s.lib, err = newLibrary(ctx, books, c.slow); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.lib.Close)
	if err := s.lib.equip(c.online, os.Getenv); err != nil {
		return nil, err
	}
	if s.graph, err = newGraph(s.lib); err != nil {
		return nil, err
	}
	if c.addr != "" {
		if s.exporter, err = export(c.addr, stderr); err != nil {
			return nil, err
		}
		s.closers = append(s.closers, s.exporter.close)
	}
	s.stops = newStops(c)
	s.closers = append(s.closers, s.stops.close)
	s.stderr, s.progress = stderr, newProgress(stderr, c.json)
	s.closers = append(s.closers, func() error { return s.progress.close() })
	s.recorder = newRecorder(s.graph.Plan())
	return s, s.openStore(ctx)
}

// openStore opens the store, makes the dispatcher over it, and lets the library read its past.
func (s *session) openStore(ctx context.Context) error {
	dir, err := s.directory()
	if err != nil {
		return err
	}
	if s.resume || s.ofThePast() {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("there are no runs in %s", dir) // and no store is made of it
		}
	}
	options := badgerstore.Options{MemTableSize: 8 << 20} // inquiries are small
	if s.exporter != nil {
		options.Observe = s.exporter.observeGroup
	}
	if s.store, err = badgerstore.Open(ctx, dir, options); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	o := dispatcher.Options{Observe: s.observe}
	if s.cancelAt != "" {
		o.InterruptIf = s.stops.before
	}
	if s.dispatcher, err = dispatcher.New(s.graph, s.store, o); err != nil {
		return err
	}
	past := &archive{store: s.store, dispatcher: s.dispatcher, digest: s.graph.Digest()}
	s.lib.runs = past.completed
	return nil
}

// close closes in the opposite order.
func (s *session) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (c *config) books() ([]catalogue.Book, error) {
	if c.corpus == "" {
		return catalogue.Default(), nil
	}
	f, err := os.Open(c.corpus)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	books, err := catalogue.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.corpus, err)
	}
	return books, nil
}

func (s *session) observe(e dispatcher.Event) {
	s.recorder.observe(e)
	if s.exporter != nil {
		s.exporter.observe(e)
	}
	if e.Kind == dispatcher.Emitted {
		return // heard when it was emitted; the observer is told when the node has returned
	}
	s.progress.observe(e) // the last, so that whoever reads it finds what the others know
}

// work runs the run and tells what came of it.
func (s *session) work(stdin, stdout, stderr *os.File) error {
	res, err := s.answerQuestion(s.newDialog(stdin, stderr))
	var rest *dispatcher.Rest
	if err != nil && !errors.As(err, &rest) {
		return err
	}
	_ = s.progress.close() // before anything else is written
	r := s.recorder.report(res, s.warnings(res))
	if s.json {
		if werr := writeJSON(stdout, r); werr != nil {
			return werr
		}
	}
	s.tell(stderr, r, res)
	if err == nil && !s.json {
		_, err = fmt.Fprintln(stdout, r.Answer)
	}
	return err
}

// list is -history.
func (s *session) list(stdout io.Writer) error {
	if err := s.choose(); err != nil {
		return err
	}
	return writeHistory(stdout, s.run, s.dispatcher.History(context.Background(), s.run), s.json)
}
