package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"text/tabwriter"
	"time"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
)

// A report is what -json prints. Other programs read it.
type report struct {
	Run        string            `json:"run"`
	Status     checkpoint.Status `json:"status"`
	Cursor     []string          `json:"cursor"` // null when completed
	Superstep  int               `json:"superstep"`
	Answer     string            `json:"answer"`
	Citations  []Citation        `json:"citations"`
	Interrupts []interrupt       `json:"interrupts"`
	Nodes      []visit           `json:"nodes"`
	Warnings   []string          `json:"warnings"`
}

type interrupt struct {
	ID       string `json:"id"`
	Path     string `json:"path"`
	Kind     string `json:"kind"`
	Question string `json:"question"`
}

// A visit is one that this process has executed.
type visit struct {
	Path      string `json:"path"`
	Superstep int    `json:"superstep"` // of its frame
	Attempt   int    `json:"attempt"`
	MS        int64  `json:"ms"`
}

// A recorder keeps the visits of one call in the order in which they finished.
type recorder struct {
	bodies map[string]bool // node paths of nodes that are functions
	visits []visit
}

func newRecorder(plan *dag.Plan) *recorder {
	r := &recorder{bodies: make(map[string]bool)}
	r.learn(plan, "")
	return r
}

func (r *recorder) learn(plan *dag.Plan, prefix string) {
	for _, n := range plan.Nodes {
		if n.Body != nil {
			r.learn(n.Body, prefix+n.Name+"/")
			continue
		}
		r.bodies[prefix+n.Name] = true
	}
}

func (r *recorder) observe(e dispatcher.Event) {
	if e.Kind == dispatcher.VisitDone && r.bodies[e.Node] {
		r.visits = append(r.visits, visit{e.Path, e.Step, e.Attempt, e.Duration.Milliseconds()})
	}
}

// report tells of a result. No list in it is null but the cursor of a completed run.
func (r *recorder) report(res *dispatcher.Result[Inquiry], warnings []string) *report {
	out := &report{
		Run:        res.Run,
		Status:     res.Status,
		Superstep:  res.Superstep,
		Answer:     res.State.Answer.Get(),
		Citations:  append([]Citation{}, res.State.Citations.Slice()...),
		Interrupts: []interrupt{},
		Nodes:      append([]visit{}, r.visits...),
		Warnings:   append([]string{}, warnings...),
	}
	if res.Status != checkpoint.StatusCompleted {
		out.Cursor = append([]string{}, res.Cursor.Visits...)
	}
	for _, i := range res.Interrupts {
		out.Interrupts = append(out.Interrupts, interrupt{i.ID, i.Path, string(i.Kind), text(i.Question)})
	}
	return out
}

// text is a question as a person reads it: what the archivist asks is a text.
func text(question json.RawMessage) string {
	var s string
	if json.Unmarshal(question, &s) != nil {
		return string(question)
	}
	return s
}

func writeJSON(w io.Writer, v any) error {
	s, err := encoded(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, s)
	return err
}

// encoded is JSON for people too: indented, and with its signs as they are.
func encoded(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return string(bytes.TrimSpace(b.Bytes())), err
}

// A moment is a checkpoint as -history -json prints it.
type moment struct {
	Address   string    `json:"address"`
	Path      string    `json:"path"` // of the frame
	Superstep int       `json:"superstep"`
	At        time.Time `json:"at"`
}

// writeHistory lists checkpoints, oldest first.
func writeHistory(w io.Writer, run string, all iter.Seq2[dispatcher.Checkpoint, error], asJSON bool) error {
	moments := []moment{}
	for c, err := range all {
		if err != nil {
			return err
		}
		moments = append(moments, moment{c.Address(), c.Path, c.Superstep, c.At})
	}
	if asJSON {
		return writeJSON(w, struct {
			Run         string   `json:"run"`
			Checkpoints []moment `json:"checkpoints"`
		}{run, moments})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range moments {
		fmt.Fprintf(t, "%s\t%s@%d\t%s\n", m.Address, m.Path, m.Superstep, m.At.Local().Format("2006-01-02 15:04:05.000"))
	}
	return t.Flush()
}
