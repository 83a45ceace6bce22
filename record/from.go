package record

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/internal/misuse"
)

// ParentLabel is the label of a run that names the record which it goes on from, by its content
// hash: see [HandOver].
const ParentLabel = "pawl.record.parent"

// Runs is what [From] has to know of runs. A [dispatcher.Dispatcher] is one, whatever its state,
// for the runs in its store: also for those of other graphs.
type Runs interface {
	// Store returns the store that has the logs.
	Store() checkpoint.Store
	// Open tells where a run stands, and changes nothing.
	Open(ctx context.Context, run string) (*dispatcher.Opened, error)
}

// Options say of a run what its log does not. The zero Options work.
type Options struct {
	// Goal is that of the task. Zero means "run the graph", by its name.
	Goal string
	// Criteria say when the task is done.
	Criteria []string
	// Author is who makes the record. Zero means [Automatic].
	Author Author
	// Authors tells who somebody is that the log names. Nil means a human of that id.
	Authors func(name string) Author
	// Tokens is what language models have used so far.
	Tokens int64
	// Parent is the content hash of the record that this one goes on from. Zero means what the
	// run's label [ParentLabel] says.
	Parent string
	// Metadata is that of the record. Zero priority means medium.
	Metadata Metadata
}

// From makes the record of a run as it stands, live or at rest, and runs nothing. It reads the log:
// equal logs and options give equal records. While somebody is at work on a run its record has no
// point to go on from, and the advice about its effects in doubt says so.
//
//   - What was voided does not count, and neither does what a rewind abandoned, unless the run goes
//     on from a checkpoint at which it counted.
//   - An effect that has happened stays in the record, marked as abandoned if what it was done for
//     was.
//   - Of a log that was trimmed, or is a fork's, the record tells what is still there ([Source]).
//   - The record has at most 1000 actions, the last ones.
//
// The record is sealed and kept nowhere: see [Ledger.Create]. The errors are those of Open and of
// the store, [*ArgumentError] and [*InvalidError].
func From(ctx context.Context, d Runs, run string, o Options) (*Record, error) {
	switch {
	case ctx == nil:
		return nil, &ArgumentError{"From", "context", misuse.NoContext}
	case misuse.Missing(d) || misuse.Missing(d.Store()):
		return nil, &ArgumentError{"From", "dispatcher", "is nil or has no store, so there is no log to read: give one with a store"}
	}
	opened, info, l, err := readStill(ctx, d, run)
	if err != nil {
		return nil, err
	}
	t := telling{log: l, opened: opened, info: info, o: o, said: map[[2]string]int{}}
	r := t.record()
	if err := r.Seal(); err != nil {
		return nil, err
	}
	return r, nil
}

// readStill opens a run and reads its log up to there; again if it was trimmed, or deleted and
// begun anew, before it was read.
func readStill(ctx context.Context, d Runs, run string) (*dispatcher.Opened, checkpoint.Info, *log, error) {
	for {
		opened, info, err := still(ctx, d, run)
		if err != nil {
			return nil, info, nil, err
		}
		l, err := read(ctx, d.Store(), info, opened.Cursor.Seq)
		if !errors.Is(err, checkpoint.ErrTrimmed) && !errors.Is(err, checkpoint.ErrNotFound) {
			return opened, info, l, err
		}
		now, gone := d.Store().Stat(ctx, run)
		if gone != nil || now.First == info.First && now.Created.Equal(info.Created) {
			return nil, info, nil, cmp.Or(gone, err)
		}
	}
}

// still opens a run and learns the head at which it was opened. If the run is so busy that it
// has always gone on in between, the head has no digest.
func still(ctx context.Context, d Runs, run string) (*dispatcher.Opened, checkpoint.Info, error) {
	for tries := 1; ; tries++ {
		opened, err := d.Open(ctx, run)
		if err != nil {
			return nil, checkpoint.Info{}, err
		}
		info, err := d.Store().Stat(ctx, run)
		if err != nil {
			return nil, checkpoint.Info{}, err
		}
		if info.Head.Seq == opened.Cursor.Seq {
			return opened, info, nil
		}
		if tries == 10 {
			info.Head = checkpoint.Head{Seq: opened.Cursor.Seq}
			return opened, info, nil
		}
	}
}

// A telling makes a record of what was read.
type telling struct {
	*log
	opened *dispatcher.Opened
	info   checkpoint.Info
	o      Options
	said   map[[2]string]int // where what was said stands in its list, by the note's name and the id
}

func (t *telling) record() *Record {
	r := &Record{
		ID: t.info.Run, ParentCRHash: cmp.Or(t.o.Parent, t.info.Labels[ParentLabel]),
		Source:    t.source(),
		CreatedBy: cmp.Or(t.o.Author, Automatic), CreatedAt: millis(t.info.Created),
		LastModifiedBy: cmp.Or(t.o.Author, Automatic), LastModifiedAt: millis(t.last),
		ExecutionSummary: t.summary(),
		Metadata:         t.o.Metadata,
	}
	r.Metadata.Priority = cmp.Or(r.Metadata.Priority, PriorityMedium)
	r.Metadata.Tags = slices.Clone(r.Metadata.Tags)
	r.Task = Task{
		ID: t.info.Run, Goal: cmp.Or(t.o.Goal, "run the graph "+t.info.Graph),
		SuccessCriteria: slices.Clone(t.o.Criteria), Status: taskStatus(t.opened.Status),
		StartedAt: t.started,
	}
	if t.opened.Status == checkpoint.StatusCompleted {
		r.Task.CompletedAt = t.completed
	}
	for i := range t.notes {
		t.noted(r, &t.notes[i])
	}
	t.ask(r)
	for _, e := range t.effects {
		r.ToolEffects = append(r.ToolEffects, e.tool())
	}
	t.block(r)
	t.rest(r)
	return r
}

func (t *telling) source() *Source {
	s := &Source{Run: t.info.Run, Seq: t.opened.Cursor.Seq, Graph: t.info.Graph}
	if t.info.Head.Digest != (checkpoint.Digest{}) {
		s.Digest = hex.EncodeToString(t.info.Head.Digest[:])
	}
	if t.info.First > 1 {
		s.First = t.info.First
	}
	if o := t.info.Origin; o != nil {
		s.Origin = fmt.Sprintf("%s@%d", o.Run, o.Seq)
	}
	return s
}

func taskStatus(s checkpoint.Status) TaskStatus {
	switch s {
	case checkpoint.StatusPending:
		return TaskNotStarted
	case checkpoint.StatusRunning:
		return TaskInProgress
	case checkpoint.StatusCompleted:
		return TaskCompleted
	case checkpoint.StatusFailed:
		return TaskFailed
	}
	return TaskBlocked
}

// mostActions is how many actions a record of a run tells.
const mostActions = 1000

func (t *telling) summary() Summary {
	s := Summary{TokensConsumed: t.o.Tokens, ElapsedMs: max(t.last.Sub(t.info.Created).Milliseconds(), 0)}
	for i := range t.steps {
		x := &t.steps[i]
		if x.failed != nil && x.failed.Final && x.failed.Origin == "" {
			s.StepsFailed++
		} else if x.failed == nil {
			s.StepsCompleted++
		}
		s.Actions = append(s.Actions, x.action())
	}
	s.Actions = lastActions(s.Actions)
	return s
}

func lastActions(all []Action) []Action { return slices.Clone(all[max(len(all)-mostActions, 0):]) }

// who is somebody that the log names.
func (t *telling) who(name string) Author {
	if t.o.Authors != nil {
		return t.o.Authors(name)
	}
	return Author{Type: dag.Human, ID: name}
}

// node is the author of what a visit says.
func (t *telling) node(path string) Author {
	return Author{Type: dag.Agent, ID: t.info.Graph + "/" + path}
}

// block adds what stands in the way, beside what nodes have said.
func (t *telling) block(r *Record) {
	var all []Blocker
	add := func(id, description, severity, needs string) {
		all = append(all, Blocker{
			ID: id, Description: description, Severity: severity, Needs: needs,
			ReportedBy: Automatic, ReportedAt: r.LastModifiedAt,
		})
	}
	for _, e := range t.opened.InDoubt() {
		add("doubt:"+e.ID, "nobody knows what came of effect "+e.String(), "high", e.Advice)
	}
	if t.opened.Status == checkpoint.StatusFailed {
		open := words(t.opened.Cursor.Visits)
		for i := range t.steps {
			x := &t.steps[i]
			if x.failed != nil && x.failed.Final && open[x.is] {
				add("failed:"+x.is, fmt.Sprintf("visit %s failed: %s", x.is, x.failed.Message), "high", "mend the cause, and resume")
			}
		}
	}
	if t.resting != nil && t.opened.Status.Resting() {
		text := "the run is " + string(t.opened.Status)
		if t.resting.By != "" {
			text += " by " + t.resting.By
		}
		if t.resting.Cause != "" {
			text += ": " + t.resting.Cause
		}
		add(fmt.Sprintf("rest:%d", t.restAt), text, "medium", "resume it, if it is to go on")
	}
	r.Blockers = put(r.Blockers, all...)
}

// rest adds the point from which the whole run goes on.
func (t *telling) rest(r *Record) {
	s := t.opened.Status
	waits := s == checkpoint.StatusInterrupted && len(t.opened.Interrupts) > 0
	if s == checkpoint.StatusCompleted || t.opened.Owner != "" || waits {
		return
	}
	p := ResumePoint{
		ID:    fmt.Sprintf("%s@%d", t.info.Run, t.stands),
		Label: "go on from where the run stands", Description: "the run is " + string(s),
		When: "somebody resumes the run", RequiredAuthority: AnyAuthority,
		SafeToAutoExecute: s != checkpoint.StatusFailed && s != checkpoint.StatusCancelled,
		OnTimeout:         TimeoutEscalate, ApprovalStatus: ApprovalPending,
		NextSteps: slices.Clone(t.opened.Cursor.Visits),
	}
	for _, e := range t.opened.InDoubt() {
		p.Preconditions = append(p.Preconditions, "it is said what came of effect "+e.ID)
		p.RequiredAuthority, p.SafeToAutoExecute = dag.Human, false
	}
	r.ResumePoints = append(r.ResumePoints, p)
}

// read reads the log of a run up to an entry.
func read(ctx context.Context, s checkpoint.Store, info checkpoint.Info, to uint64) (*log, error) {
	l, err := newLog(ctx, s, info)
	if err != nil {
		return nil, err
	}
	for e, err := range s.Read(ctx, info.Run, info.First, to) {
		if err != nil {
			return nil, err
		}
		if err := l.hear(&e); err != nil {
			return nil, &checkpoint.CorruptError{Run: info.Run, Seq: e.Seq, Reason: err.Error()}
		}
	}
	l.settle()
	l.retries()
	if l.last.IsZero() {
		return nil, errors.Join(checkpoint.ErrNotFound, fmt.Errorf("record: run %q has no entries", info.Run))
	}
	return l, nil
}
