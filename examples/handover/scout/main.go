// Scout looks at a site, hands what it knows to somebody else, and goes on with what they have said.
// See examples/handover.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pawlgo/pawl/checkpoint/badgerstore"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
	"github.com/pawlgo/pawl/state"
)

// A Site is what the run knows.
type Site struct {
	Finds  state.List[string]
	Trench state.Value[string]
	Dug    state.Value[string]
}

// The run, and the record of it.
const site = "site-7"

var scout = record.Author{Type: dag.Agent, ID: "scout"}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "scout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("scout", flag.ContinueOnError)
	f.SetOutput(stderr)
	dir := f.String("dir", "site", "`directory` of the store")
	if err := f.Parse(args); err != nil {
		return err
	}
	what, file := f.Arg(0), f.Arg(1)
	if f.NArg() != 2 || what != "survey" && what != "merge" {
		return errors.New("wanted: [-dir DIR] survey OUT, or merge IN")
	}
	store, err := badgerstore.Open(ctx, *dir, badgerstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	graph, err := survey()
	if err != nil {
		return err
	}
	p := &program{stdout: stdout}
	if p.d, err = dispatcher.New(graph, store, dispatcher.Options{}); err != nil {
		return err
	}
	if p.ledger, err = record.NewLedger(store, record.LedgerOptions{}); err != nil {
		return err
	}
	if what == "survey" {
		return p.survey(ctx, file)
	}
	return p.merge(ctx, file)
}

// survey is the graph.
func survey() (*dag.Graph[Site], error) {
	b := dag.New[Site]("site")
	look := dag.Step(b, "look", func(ctx context.Context, s *Site) error {
		s.Finds.Append("shards", "a coin")
		return errors.Join(
			dag.Learn(ctx, dag.Learning{ID: "coin", Content: "the coin is of the third century", Confidence: 0.8}),
			dag.Decide(ctx, dag.Decision{
				ID: "tool", Description: "dig with spades", Rationale: "it is quick", OverridableBy: []dag.Authority{dag.Human},
			}),
			dag.Require(ctx, dag.Invariant{ID: "wall", Description: "the wall stands"}),
		)
	})
	ask := dag.Step(b, "ask", func(ctx context.Context, s *Site) error {
		trench, err := dag.Ask[string](ctx, "trench", "Where shall we dig?")
		s.Trench.Set(trench)
		return err
	}, look)
	dag.Step(b, "dig", func(_ context.Context, s *Site) error {
		s.Dug.Set("dug at " + s.Trench.Get())
		return nil
	}, ask)
	return b.Build()
}

type program struct {
	d      *dispatcher.Dispatcher[Site]
	ledger *record.Ledger
	stdout io.Writer
}

// survey runs until there is a question, and writes the record for whoever can answer it.
func (p *program) survey(ctx context.Context, file string) error {
	if _, err := p.d.Run(ctx, site, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		return errors.Join(err, errors.New("there is nothing to ask"))
	}
	r, err := record.From(ctx, p.d, site, record.Options{Goal: "find out what lies there", Author: scout})
	if err != nil {
		return err
	}
	r.ID = site
	if _, err := p.ledger.Create(ctx, r, scout); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(p.ledger.Export(ctx, site, out), out.Close()); err != nil {
		return err
	}
	for _, q := range r.QuestionsForUser {
		fmt.Fprintf(p.stdout, "%s asks: %s\n", q.ID, q.Question)
	}
	// Meanwhile the scout goes on looking: the record that was handed out is not the last one.
	last, err := p.ledger.Get(ctx, site)
	if err != nil {
		return err
	}
	_, err = p.ledger.Update(ctx, site, last.Record.ContentHash, func(r *record.Record) error {
		r.Learnings = append(r.Learnings, record.Learning{
			ID: "rain", Content: "the ground is wet", Confidence: 1, LearnedBy: scout, LearnedAt: r.LastModifiedAt,
		})
		return nil
	}, scout)
	return err
}

// merge takes what somebody has answered, and goes on with it.
func (p *program) merge(ctx context.Context, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()                        // it was only read
	theirs, err := p.ledger.Import(ctx, in) // verifies it
	if err != nil {
		return err
	}
	ours, err := p.ledger.Get(ctx, site)
	if err != nil {
		return err
	}
	merged, err := p.ledger.Merge(ctx, site, theirs.Record.ID, record.Manual, scout)
	if err != nil {
		return err
	}
	changes, err := record.Diff(ours.Record, merged.Record)
	if err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Fprintln(p.stdout, c)
	}
	answers := map[string]any{}
	for _, q := range merged.Record.QuestionsForUser {
		if q.Status == record.QuestionAnswered {
			answers[q.ID] = q.Answer
		}
	}
	if err := p.d.Answers(ctx, site, answers, dispatcher.Author(theirs.Record.LastModifiedBy.ID)); err != nil {
		return err
	}
	res, err := p.d.Resume(ctx, site)
	if err != nil {
		return err
	}
	fresh, err := record.From(ctx, p.d, site, record.Options{Goal: merged.Record.Task.Goal, Author: scout})
	if err != nil {
		return err
	}
	last, err := p.ledger.Advance(ctx, site, fresh, scout)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%s; the task is %s, in version %d of the record\n", res.State.Dug.Get(), last.Record.Task.Status, last.Number)
	return nil
}
