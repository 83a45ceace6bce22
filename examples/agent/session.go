package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/agent/model"
	"github.com/pawlgo/pawl/examples/agent/script"
)

// A session is one command at work on the store.
type session struct {
	*config
	stderr     io.Writer
	calls      atomic.Int64 // of the model
	store      *badgerstore.Store
	dispatcher *dispatcher.Dispatcher[Mind]
	closers    []func() error
}

// do does what the command line says. What became of the run is told before it returns.
func (c *config) do(ctx context.Context, stdout, stderr io.Writer) (err error) {
	s := &session{config: c, stderr: stderr}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	res, err := s.work(ctx)
	var rest *dispatcher.Rest
	if err != nil && !errors.As(err, &rest) {
		return err
	}
	mind := s.mind(ctx, res)
	s.tell(res, mind)
	if c.json {
		return errors.Join(err, writeJSON(stdout, mind))
	}
	if err == nil {
		_, err = fmt.Fprintln(stdout, res.State.Answer.Get())
	}
	return err
}

func (s *session) open(ctx context.Context) error {
	ask, err := s.model()
	if err != nil {
		return err
	}
	graph, err := newGraph(&Agent{model: ask, tools: allTools(s.notes)})
	if err != nil {
		return err
	}
	dir, err := s.directory()
	if err != nil {
		return err
	}
	if s.store, err = badgerstore.Open(ctx, dir, badgerstore.Options{MemTableSize: 8 << 20}); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	s.dispatcher, err = dispatcher.New(graph, s.store, dispatcher.Options{Observe: s.observe, Gates: gates})
	return err
}

// allTools are what the agent can do. It has no others.
func allTools(notes string) []Tool {
	book := &Notebook{dir: notes}
	return []Tool{calculator(), search(), book.tool()}
}

// model is that of the environment, or else the script, with all that is done round a call of it.
func (s *session) model() (model.Func, error) {
	m, err := model.FromEnv(os.Getenv)
	if err != nil {
		return nil, usagef("%v", err)
	}
	if m == nil {
		server, err := script.Serve(script.Mountaineer)
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, server.Close)
		if m, err = model.New(server.URL, "", "script"); err != nil {
			return nil, err
		}
	}
	log := slog.New(slog.DiscardHandler)
	if s.verbose {
		log = slog.New(slog.NewTextHandler(s.stderr, nil))
	}
	return model.Through(m.Ask, model.Retried(3, time.Second), model.Logged(log), model.Counted(&s.calls)), nil
}

// close closes in the opposite order.
func (s *session) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

// work is the line that the program is for, and what a person has to say before it.
func (s *session) work(ctx context.Context) (*dispatcher.Result[Mind], error) {
	if err := s.choose(ctx); err != nil {
		return nil, err
	}
	if err := s.sameTask(ctx); err != nil {
		return nil, err
	}
	var options []dispatcher.RunOption
	if s.budget != nil {
		options = append(options, dispatcher.Settings(Settings{Budget: *s.budget}, "the command line"))
	}
	if !s.resume {
		return s.dispatcher.Run(ctx, s.run, func(m *Mind) {
			m.Task.Set(s.task)
			if s.audience != "" {
				m.Audience.Set(s.audience)
			}
		}, options...)
	}
	if s.answer != nil {
		if err := s.give(ctx, *s.answer); err != nil {
			return nil, err
		}
	}
	return s.dispatcher.Resume(ctx, s.run, options...)
}

// choose finds the run that is meant. Runs that can't be read are passed by, and told; if there are
// no others, or an answer is given, that is the error.
func (s *session) choose(ctx context.Context) error {
	if s.run != "" {
		return nil
	}
	if !s.resume {
		s.run = dispatcher.NewRunID()
		return nil
	}
	f := checkpoint.Filter{Graph: s.dispatcher.Graph(), Limit: 1, Status: []checkpoint.Status{
		checkpoint.StatusPending, checkpoint.StatusRunning, checkpoint.StatusInterrupted,
		checkpoint.StatusCancelled, checkpoint.StatusTimedOut, checkpoint.StatusFailed,
	}}
	var passed []error
	for info, err := range checkpoint.Runs(ctx, s.dispatcher.Store(), f) {
		switch {
		case err != nil && info.Run == "":
			return err
		case err != nil:
			passed = append(passed, fmt.Errorf("run %s can't be read: %w", info.Run, err))
		case len(passed) > 0 && s.answer != nil: // that may be for one of them
			return errors.Join(append(passed, errors.New("name the run that is answered with -run"))...)
		default:
			for _, err := range passed {
				fmt.Fprintf(s.stderr, "agent: %s\n", printable(err.Error()))
			}
			s.run = info.Run
			return nil
		}
	}
	if len(passed) > 0 {
		return errors.Join(passed...)
	}
	return errors.New("there is nothing to resume: every run is completed")
}

// sameTask refuses a task, or an audience, other than the one that a run which exists has.
func (s *session) sameTask(ctx context.Context) error {
	if s.task == "" && s.audience == "" {
		return nil
	}
	res, err := s.dispatcher.State(ctx, s.run)
	if errors.Is(err, dispatcher.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	task, own := strings.TrimSpace(s.task), strings.TrimSpace(res.State.Task.Get())
	switch {
	case task != "" && own == "":
		return usagef("run %q asks for its task: answer with -resume -answer", s.run)
	case task != "" && task != own:
		return usagef("run %q has another task: %s", s.run, printable(shortened(own)))
	case s.audience != "" && s.audience != res.State.Audience.Get():
		return usagef("run %q has another audience: %q", s.run, res.State.Audience.Get())
	}
	return nil
}

// give answers what the run asked first, as a person says it.
func (s *session) give(ctx context.Context, said string) error {
	res, err := s.dispatcher.State(ctx, s.run)
	if err != nil {
		return err
	}
	if len(res.Interrupts) == 0 {
		return fmt.Errorf("run %q asks nothing", s.run)
	}
	i := res.Interrupts[0]
	var value any = said
	options := []dispatcher.RunOption{dispatcher.Author("the command line")}
	if i.Kind == dispatcher.KindEffect {
		word, why, _ := strings.Cut(said, ":")
		verdict := dispatcher.Verdict(strings.TrimSpace(word))
		if verdict != dispatcher.Approve && verdict != dispatcher.Reject {
			return usagef("answer approve or reject, and why behind a colon")
		}
		value = verdict
		if why = strings.TrimSpace(why); why != "" {
			options = append(options, dispatcher.Because(why))
		}
	}
	return s.dispatcher.Answer(ctx, s.run, i.ID, value, options...)
}

// observe shows a run at work.
func (s *session) observe(e dispatcher.Event) {
	switch e.Kind {
	case dispatcher.RunStarted, dispatcher.RunResumed:
		fmt.Fprintf(s.stderr, "run %s\n", printable(e.Run))
	case dispatcher.VisitDone:
		fmt.Fprintf(s.stderr, "  %-16s done\n", e.Path)
	case dispatcher.AttemptFailed:
		fmt.Fprintf(s.stderr, "  %-16s failed: %s\n", e.Path, printable(e.Cause))
	}
}

// mind is what the agent knows by now: that of the round that it is in, of which the run's own
// state learns when the loop has ended.
func (s *session) mind(ctx context.Context, res *dispatcher.Result[Mind]) *Mind {
	if res.Status == checkpoint.StatusCompleted {
		return res.State
	}
	// The context of a run that was cancelled is done.
	round, err := dispatcher.StateOf[Mind](context.WithoutCancel(ctx), s.dispatcher, res.Run, "work")
	if err != nil {
		return res.State // it has not come so far
	}
	return round.State
}

// tell says what a person should know: what is odd, what it cost, and how to go on.
func (s *session) tell(res *dispatcher.Result[Mind], mind *Mind) {
	say := func(format string, args ...any) { fmt.Fprintf(s.stderr, "agent: "+format+"\n", args...) }
	for _, text := range append(mind.Warnings(), res.Warnings...) {
		say("warning: %s", printable(text))
	}
	for _, name := range res.Abandoned {
		say("warning: %s did not stop in time and was abandoned", name)
	}
	say("the model was asked %d times in this call; the run has spent %d tokens", s.calls.Load(), mind.Spent.Get())
	for id, step := range mind.Steps.All() {
		if step.Type == ToolCall && step.Status == Failed {
			say("%s was not done in step %s: %s", step.Tool.Tool, id, printable(step.Error))
		}
	}
	for _, i := range res.Interrupts {
		say("%s asks: %s", i.Path, printable(asked(i)))
	}
	if res.Status == checkpoint.StatusCompleted {
		return
	}
	say("the run is %s; go on with: %s", res.Status, s.resumeCommand(res.Interrupts))
	if len(res.Interrupts) > 0 && res.Interrupts[0].Kind == dispatcher.KindEffect {
		say("or with reject in place of approve, or 'reject: WHY'")
	}
}

// asked is a question as a person reads it.
func asked(i dispatcher.Interrupt) string {
	if i.Kind == dispatcher.KindEffect {
		return "may this be done? " + string(i.Question)
	}
	var text string
	if json.Unmarshal(i.Question, &text) != nil {
		return string(i.Question)
	}
	return text
}

// printable is a text without what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '·'
		}
		return r
	}, text)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
