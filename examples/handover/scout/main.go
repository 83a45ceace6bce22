// Scout looks at a site, hands what it knows to somebody else, and goes on with what they have
// said. See examples/handover.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

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
	strategy := f.String("strategy", "manual", "in a conflict of a merge: prefer-a is for the scout, prefer-b against")
	if err := f.Parse(args); err != nil {
		return err
	}
	what, file := f.Arg(0), f.Arg(1)
	if f.NArg() != 2 || what != "survey" && what != "merge" {
		return errors.New("wanted: [-dir DIR] survey OUT, or [-dir DIR] [-strategy WHICH] merge IN")
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
	return p.merge(ctx, file, record.Strategy(*strategy))
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

// survey runs until there is a question, and writes the record for whoever can answer it. It can be
// done again while the question is open: the record that is there is written again.
func (p *program) survey(ctx context.Context, file string) error {
	if _, err := p.d.Run(ctx, site, nil); !errors.Is(err, dispatcher.ErrInterrupted) {
		return errors.Join(err, errors.New("there is nothing to ask"))
	}
	r, err := record.From(ctx, p.d, site, record.Options{Goal: "find out what lies there", Author: scout})
	if err != nil {
		return err
	}
	r.ID = site
	if _, err := p.ledger.Create(ctx, r, scout); err != nil && !errors.Is(err, record.ErrExists) {
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
	return p.look(ctx)
}

// look goes on looking meanwhile: the record that was handed out is not the last one.
func (p *program) look(ctx context.Context) error {
	last, err := p.ledger.Get(ctx, site)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(last.Record.Learnings, func(l record.Learning) bool { return l.ID == "rain" }) {
		return nil
	}
	_, err = p.ledger.Update(ctx, site, last.Record.ContentHash, func(r *record.Record) error {
		r.Learnings = append(r.Learnings, record.Learning{
			ID: "rain", Content: "the ground is wet", Confidence: 1, LearnedBy: scout, LearnedAt: r.LastModifiedAt,
		})
		return nil
	}, scout)
	return err
}

// merge takes what somebody has answered, and goes on with it. It can be done again: what was done
// before is not done twice, and a conflict is told again.
func (p *program) merge(ctx context.Context, file string, strategy record.Strategy) error {
	theirs, err := p.bring(ctx, file)
	if err != nil {
		return err
	}
	ours, err := p.ledger.Get(ctx, site)
	if err != nil {
		return err
	}
	merged, err := p.ledger.Merge(ctx, site, theirs.Record.ID, strategy, scout)
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
	if err := p.answer(ctx, merged.Record); err != nil {
		return err
	}
	res, err := p.d.Run(ctx, site, nil)
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

// bring imports a file, which verifies it. One that was imported before is the record that is
// there.
func (p *program) bring(ctx context.Context, file string) (*record.Version, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	theirs, err := p.ledger.Import(ctx, bytes.NewReader(data))
	if !errors.Is(err, record.ErrExists) {
		return theirs, err
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	last, bad := record.Decode(lines[len(lines)-1])
	if bad != nil {
		return nil, bad
	}
	known, bad := p.ledger.GetByHash(ctx, last.ContentHash)
	if bad != nil || known.Unverified != "" {
		return nil, fmt.Errorf("%w: and it is not that of %s: answer under another -name", err, file)
	}
	return known, nil
}

// answer tells the run what the record says of the questions that it still asks.
func (p *program) answer(ctx context.Context, r *record.Record) error {
	opened, err := p.d.Open(ctx, site)
	if err != nil {
		return err
	}
	for _, i := range opened.Interrupts {
		for _, q := range r.QuestionsForUser {
			if q.ID != i.ID || q.Status != record.QuestionAnswered {
				continue
			}
			by := cmp.Or(q.AnsweredBy, &r.LastModifiedBy)
			if err := p.d.Answer(ctx, site, q.ID, q.Answer, dispatcher.Author(by.ID)); err != nil {
				return err
			}
		}
	}
	return nil
}
