package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/examples/payments/bank"
)

// A report is what -json prints of a payment.
type report struct {
	Run      string            `json:"run"`
	Status   checkpoint.Status `json:"status"`
	Cursor   []string          `json:"cursor"` // visits that have still to run, or wait
	Payment  *Payment          `json:"payment"`
	Waits    []wait            `json:"waits"`
	Warnings []string          `json:"warnings"`
}

// A wait is a visit that waits for a person.
type wait struct {
	Path     string `json:"path"`
	Key      string `json:"key"`
	Question string `json:"question"`
}

func reportOf(res *dispatcher.Result[Payment]) report {
	return report{
		res.Run, res.Status, append([]string{}, res.Cursor.Visits...), res.State, waitsOf(res.Interrupts), warningsOf(res),
	}
}

// warningsOf are what a person should know although nothing failed.
func warningsOf(res *dispatcher.Result[Payment]) []string {
	all := append([]string{}, res.Warnings...)
	for _, name := range res.Abandoned {
		all = append(all, name+" did not stop in time and was abandoned")
	}
	return all
}

func waitsOf(interrupts []dispatcher.Interrupt) []wait {
	all := []wait{}
	for _, i := range interrupts {
		all = append(all, wait{i.Path, i.Key, question(i)})
	}
	return all
}

// question is what an interrupt asks, as a person reads it.
func question(i dispatcher.Interrupt) string {
	var asked struct{ Input bank.Request } // of an Action or a DoubtQuestion, where it is the same
	if json.Unmarshal(i.Question, &asked) != nil {
		return string(i.Question)
	}
	if i.Kind == dispatcher.KindDoubt {
		return fmt.Sprintf("was the transfer of %s made? The bank's statement tells", sum(asked.Input.Cents))
	}
	return fmt.Sprintf("may %s be charged?", sum(asked.Input.Cents))
}

// tell writes what came of a payment: what it came to on standard output, what it waits for beside
// it.
func (s *session) tell(stdout io.Writer, res *dispatcher.Result[Payment]) error {
	r := reportOf(res)
	if s.json {
		return writeJSON(stdout, r)
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(s.stderr, "payments: warning: %s\n", text)
	}
	if res.Status == checkpoint.StatusCompleted {
		_, err := fmt.Fprintln(stdout, res.State.Told.Get())
		return err
	}
	for _, w := range r.Waits {
		fmt.Fprintf(s.stderr, "payments: %s waits: %s\n", w.Path, w.Question)
	}
	fmt.Fprintf(s.stderr, "payments: payment %s is %s at %v; to see what it waits for: %s\n",
		r.Run, r.Status, r.Cursor, s.command("-run", r.Run, "-open"))
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// observe shows a payment at work.
func (s *session) observe(e dispatcher.Event) {
	show := func(what string) { fmt.Fprintf(s.stderr, "  %-10s %s\n", e.Path, what) }
	switch e.Kind {
	case dispatcher.RunStarted:
		fmt.Fprintf(s.stderr, "payment %s\n", e.Run)
	case dispatcher.RunResumed:
		fmt.Fprintf(s.stderr, "payment %s goes on\n", e.Run)
	case dispatcher.VisitStarted:
		show("begins")
	case dispatcher.VisitDone:
		show("done")
	case dispatcher.AttemptFailed:
		show(fmt.Sprintf("failed: %v", e.Err))
	case dispatcher.VisitInterrupted:
		show("waits")
	}
}
