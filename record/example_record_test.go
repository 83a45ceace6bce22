package record_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/record"
	"github.com/pawlgo/pawl/state"
)

// A Trip is planned by one graph and booked by another.
type Trip struct {
	To state.Value[string]
}

func choose(ctx context.Context, t *Trip) error {
	t.To.Set("Porto")
	return dag.Decide(ctx, dag.Decision{
		ID: "where", Description: "Porto", Rationale: "it is warm", OverridableBy: []dag.Authority{dag.Human},
	})
}

func askBudget(ctx context.Context, t *Trip) error {
	_, err := dag.Ask[int](ctx, "budget", "How much may it cost?")
	return err
}

// A run stops at a question. Its record goes into a ledger, where people decide; and the work is
// handed over from the point that they approve of. The record of whoever takes it over names it.
func Example() {
	b := dag.New[Trip]("plan")
	dag.Step(b, "budget", askBudget, dag.Step(b, "choose", choose))
	graph, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	store := new(memory.Store)
	d, err := dispatcher.New(graph, store, dispatcher.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = d.Run(ctx, "trip-7", nil)
	fmt.Println(err)

	plan, err := record.From(ctx, d, "trip-7", record.Options{Goal: "a week away"})
	if err != nil {
		log.Fatal(err)
	}
	ledger, err := record.NewLedger(store, record.LedgerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	agent, ada := record.Author{Type: dag.Agent, ID: "planner"}, record.Author{Type: dag.Human, ID: "ada"}
	if _, err := ledger.Create(ctx, plan, agent); err != nil {
		log.Fatal(err)
	}
	point := plan.ResumePoints[0]
	fmt.Println(point.Label, "is", point.ApprovalStatus, "and leads to", point.NextSteps)

	_, err = ledger.Override(ctx, "trip-7", "where", "Lisbon", "", agent)
	fmt.Println(err)
	if _, err := ledger.Override(ctx, "trip-7", "where", "Lisbon", "friends live there", ada); err != nil {
		log.Fatal(err)
	}
	if _, err := ledger.Answer(ctx, "trip-7", plan.QuestionsForUser[0].ID, "800", ada); err != nil {
		log.Fatal(err)
	}
	last, err := ledger.Approve(ctx, "trip-7", point.ID, ada)
	if err != nil {
		log.Fatal(err)
	}
	decision := last.Record.Decisions[0]
	fmt.Println(decision.Description, "by", decision.MadeBy, "instead of", decision.Variants[0].Decision)

	verdict, err := ledger.Verify(ctx, "trip-7")
	fmt.Println(last.Number, "versions, whole:", verdict.Valid, err)
	work, err := record.HandOver(last.Record, point.ID, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("go on with", work.Record.Task.Goal, "for", work.Record.QuestionsForUser[0].Answer)
	// Output:
	// dispatcher: run "trip-7" is interrupted at budget: Answer what it waits for, and Resume
	// budget is pending and leads to [budget]
	// record: record "trip-7": decision "where": agent planner may not override it: it can be overridden by human
	// Lisbon by human ada instead of Porto
	// 4 versions, whole: true <nil>
	// go on with a week away for 800
}
