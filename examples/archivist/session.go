package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
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

	stops    *stops
	recorder *recorder
	progress *progress
	exporter *exporter // nil without -metrics
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
	s.progress = newProgress(stderr, c.json)
	s.closers = append(s.closers, s.progress.close)
	s.recorder = newRecorder(s.graph.Plan())
	return s, s.openStore(ctx)
}

// openStore opens the store, makes the dispatcher over it, and lets the library read its past.
func (s *session) openStore(ctx context.Context) error {
	dir, err := s.directory()
	if err != nil {
		return err
	}
	if s.resume || s.history {
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
	s.progress.observe(e) // the last, so that whoever reads it finds what the others know
}

// work runs the run and tells what came of it.
func (s *session) work(stdout, stderr io.Writer) error {
	res, err := s.answerQuestion()
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

// answerQuestion is the line that the whole program is for, in its lenient and its strict form.
func (s *session) answerQuestion() (*dispatcher.Result[Inquiry], error) {
	if s.resume {
		return s.goOn()
	}
	if s.run == "" {
		s.run = dispatcher.NewRunID()
	} else if err := s.sameQuestion(); err != nil {
		return nil, err
	}
	ctx, end := s.stops.begin()
	defer end()
	return s.dispatcher.Run(ctx, s.run, func(q *Inquiry) { q.Query.Set(s.question) })
}

// sameQuestion refuses a question other than the one that a run which exists has.
func (s *session) sameQuestion() error {
	res, err := s.dispatcher.State(context.Background(), s.run)
	if errors.Is(err, dispatcher.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	asked, own := strings.TrimSpace(s.question), strings.TrimSpace(res.State.Query.Get())
	switch {
	case asked == "" || asked == own:
		return nil
	case own == "":
		return usagef("run %q asks for its question: answer with -resume -answer", s.run)
	}
	return usagef("run %q has another question, “%s”", s.run, shortened(printable(own)))
}

// goOn is -resume.
func (s *session) goOn() (*dispatcher.Result[Inquiry], error) {
	ctx := context.Background()
	if s.run == "" {
		id, err := s.newest(checkpoint.StatusPending, checkpoint.StatusRunning, checkpoint.StatusInterrupted,
			checkpoint.StatusCancelled, checkpoint.StatusTimedOut, checkpoint.StatusFailed)
		if err != nil {
			return nil, err
		}
		if s.run = id; id == "" {
			return nil, errors.New("there is nothing to resume: every run is completed")
		}
	}
	if s.answer != nil {
		if err := s.giveAnswer(ctx); err != nil {
			return nil, err
		}
	}
	ctx, end := s.stops.begin()
	defer end()
	return s.dispatcher.Resume(ctx, s.run)
}

// giveAnswer answers what the run asked.
func (s *session) giveAnswer(ctx context.Context) error {
	res, err := s.dispatcher.State(ctx, s.run)
	if err != nil {
		return err
	}
	for _, i := range res.Interrupts {
		if i.Kind == asked {
			return s.dispatcher.Answer(ctx, s.run, i.ID, *s.answer)
		}
	}
	return fmt.Errorf("run %q asks nothing: -answer is not awaited", s.run)
}

// newest returns the id of the newest run of any of these statuses, or of all; "" if there is none.
func (s *session) newest(status ...checkpoint.Status) (string, error) {
	runs, err := s.store.List(context.Background(), checkpoint.Filter{
		Status: status, Graph: s.dispatcher.Graph(), Limit: 1,
	})
	if err != nil || len(runs) == 0 {
		return "", err
	}
	return runs[0].Run, nil
}

// list is -history.
func (s *session) list(stdout io.Writer) error {
	ctx := context.Background()
	if s.run == "" {
		id, err := s.newest()
		if err != nil {
			return err
		}
		if s.run = id; id == "" {
			return errors.New("there are no runs yet")
		}
	}
	return writeHistory(stdout, s.run, s.dispatcher.History(ctx, s.run), s.json)
}
