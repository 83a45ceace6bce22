package record

import (
	"encoding/json"
	"slices"

	"github.com/pawlgo/pawl/dag"
)

// SchemaVersion is what [Record.Version] says of the records that this package writes, and the
// only one that it reads.
const SchemaVersion = "1.0"

// A Record is a continuation record: what another agent, person or program has to know to go on.
// Its JSON has the member names of the published type ContinuationRecord; the members that are
// marked as ours may be ignored by others. All times are milliseconds since 1970, and zero times
// are left out. A nil list is the same as an empty one.
type Record struct {
	ID           string `json:"id"`
	Version      string `json:"version"`     // of the schema
	ContentHash  string `json:"contentHash"` // see [Record.Hash]
	ParentCRHash string `json:"parentCRHash,omitempty"`
	// MergedCRHash is the other parent of a merge. Ours.
	MergedCRHash string `json:"mergedCRHash,omitempty"`
	// MerkleRoot is that of the versions before this one, in a [Ledger]; "" of the first.
	MerkleRoot string `json:"merkleRoot,omitempty"`
	// Source is the run that the record tells of. Ours.
	Source *Source `json:"source,omitempty"`

	Task           Task   `json:"task"`
	CreatedBy      Author `json:"createdBy"`
	CreatedAt      int64  `json:"createdAt"`
	LastModifiedBy Author `json:"lastModifiedBy"`
	LastModifiedAt int64  `json:"lastModifiedAt"`

	ExecutionSummary Summary       `json:"executionSummary"`
	Decisions        []Decision    `json:"decisions"`
	Learnings        []Learning    `json:"learnings"`
	QuestionsForUser []Question    `json:"questionsForUser"`
	Blockers         []Blocker     `json:"blockers"`
	ResumePoints     []ResumePoint `json:"resumePoints"`
	ToolEffects      []ToolEffect  `json:"toolEffects"`
	Invariants       []Invariant   `json:"invariants"`
	Metadata         Metadata      `json:"metadata"`
}

// A Source names the position of a run's log up to which a record tells.
type Source struct {
	Run    string `json:"run"`
	Seq    uint64 `json:"seq"`    // of the last entry
	Digest string `json:"digest"` // of the append that holds it, in hexadecimal
	Graph  string `json:"graph"`
	// First is the oldest entry that could be read; 0 if the log was whole.
	First uint64 `json:"first,omitempty"`
	// Origin is the address of the checkpoint at which the run began, if it is a fork.
	Origin string `json:"origin,omitempty"`
}

// A Task is what is to be done.
type Task struct {
	ID              string     `json:"id"`
	Goal            string     `json:"goal"`
	SuccessCriteria []string   `json:"successCriteria"`
	Status          TaskStatus `json:"status"`
	StartedAt       int64      `json:"startedAt,omitempty"`
	CompletedAt     int64      `json:"completedAt,omitempty"`
}

// An Author is who did something.
type Author struct {
	Type dag.Authority `json:"type"`
	ID   string        `json:"id"`
	Name string        `json:"name,omitempty"`
}

// String tells the author on one line: human ann.
func (a Author) String() string { return string(a.Type) + " " + a.ID }

// is reports whether the two are one, perhaps under another name.
func (a Author) is(other Author) bool { return a.Type == other.Type && a.ID == other.ID }

// Automatic is the author of what nobody did: expiry, and approvals that were automatic.
var Automatic = Author{Type: dag.System, ID: "pawl"}

// A Summary counts what was done.
type Summary struct {
	StepsCompleted int      `json:"stepsCompleted"`
	StepsFailed    int      `json:"stepsFailed"`
	TokensConsumed int64    `json:"tokensConsumed"`
	ElapsedMs      int64    `json:"elapsedMs"`
	Actions        []Action `json:"actions"`
}

// An Action is one thing that was done.
type Action struct {
	Description string        `json:"description"`
	Timestamp   int64         `json:"timestamp"`
	Outcome     ActionOutcome `json:"outcome"`
}

// A Decision is a choice that was made, and who may change it.
type Decision struct {
	ID            string             `json:"id"`
	Description   string             `json:"description"`
	Status        dag.DecisionStatus `json:"status"`
	Rationale     string             `json:"rationale"`
	MadeBy        Author             `json:"madeBy"`
	MadeAt        int64              `json:"madeAt"`
	Variants      []Variant          `json:"variants,omitempty"` // what others chose, or who did before
	Affects       []string           `json:"affects"`
	OverridableBy []dag.Authority    `json:"overridableBy"`
	Confidence    float64            `json:"confidence,omitempty"`   // 0 to 1; 0 if nobody said. Ours.
	Alternatives  []dag.Alternative  `json:"alternatives,omitempty"` // that were rejected. Ours.
}

// A Variant is another choice in the place of a [Decision].
type Variant struct {
	Author    Author             `json:"author"`
	Decision  string             `json:"decision"`
	Rationale string             `json:"rationale"`
	Status    dag.DecisionStatus `json:"status,omitempty"` // what it had. Ours.
}

// A Learning is something that was found out.
type Learning struct {
	ID         string  `json:"id"`
	Content    string  `json:"content"`
	Source     string  `json:"source"`
	Confidence float64 `json:"confidence"` // 0 to 1
	LearnedBy  Author  `json:"learnedBy"`
	LearnedAt  int64   `json:"learnedAt"`
}

// A Question is what a person is asked.
type Question struct {
	ID                 string         `json:"id"`
	Type               Intervention   `json:"type"`
	Question           string         `json:"question"`
	Context            string         `json:"context"`
	Options            []string       `json:"options,omitempty"`
	Status             QuestionStatus `json:"status"`
	Answer             string         `json:"answer,omitempty"`
	AnsweredBy         *Author        `json:"answeredBy,omitempty"`
	AnsweredAt         int64          `json:"answeredAt,omitempty"`
	BlocksResumePoints []string       `json:"blocksResumePoints"`
	Priority           Priority       `json:"priority"`            // blocking, high, medium or low
	ExpiresAt          int64          `json:"expiresAt,omitempty"` // an answer from then on comes too late
	// RequiredAuthority is who may answer; "" is [AnyAuthority]. Ours.
	RequiredAuthority dag.Authority `json:"requiredAuthority,omitempty"`
}

// A Blocker is an obstacle.
type Blocker struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Severity    string `json:"severity,omitempty"`
	Needs       string `json:"needs,omitempty"` // what would remove it
	Resolved    bool   `json:"resolved"`
	ReportedBy  Author `json:"reportedBy"`
	ReportedAt  int64  `json:"reportedAt"`
}

// A ResumePoint is a gate behind which the work goes on.
type ResumePoint struct {
	ID                string            `json:"id"`
	Label             string            `json:"label"`
	Description       string            `json:"description"`
	When              string            `json:"when"`
	Preconditions     []string          `json:"preconditions"`
	RequiredAuthority dag.Authority     `json:"requiredAuthority"`
	SafeToAutoExecute bool              `json:"safeToAutoExecute"`
	OnTimeout         TimeoutPolicy     `json:"onTimeout"`
	TimeoutMs         int64             `json:"timeoutMs,omitempty"`
	ApprovalStatus    ApprovalStatus    `json:"approvalStatus"`
	ApprovedBy        *Author           `json:"approvedBy,omitempty"` // who approved or denied
	ApprovedAt        int64             `json:"approvedAt,omitempty"`
	ApprovalReason    string            `json:"approvalReason,omitempty"` // why it was denied. Ours.
	NextSteps         []string          `json:"nextSteps"`
	AlternativePaths  []AlternativePath `json:"alternativePaths,omitempty"`
}

// An AlternativePath is what else may be done at a [ResumePoint].
type AlternativePath struct {
	Condition string   `json:"condition"`
	Steps     []string `json:"steps"`
}

// A ToolEffect is a side effect, and what it takes not to do it twice.
type ToolEffect struct {
	ID             string          `json:"id"`
	ToolName       string          `json:"toolName"`
	Operation      string          `json:"operation"`
	Inputs         json.RawMessage `json:"inputs"`            // an object
	Outputs        json.RawMessage `json:"outputs,omitempty"` // an object
	IdempotencyKey string          `json:"idempotencyKey,omitempty"`
	IsReplayable   bool            `json:"isReplayable"`
	SideEffects    []string        `json:"sideEffects"`
	Reversible     bool            `json:"reversible"`
	ExecutedAt     int64           `json:"executedAt"`
	DurationMs     int64           `json:"durationMs"`
	Status         EffectStatus    `json:"status,omitempty"` // "" is that nobody said. Ours.
	// Abandoned: the run went back to before it; it has happened all the same. Ours.
	Abandoned bool `json:"abandoned,omitempty"`
}

// An Invariant is what has to stay true.
type Invariant struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Check       string `json:"check,omitempty"` // how to find out
}

// Metadata is what helps to find a record.
type Metadata struct {
	Tags                   []string `json:"tags"`
	Priority               Priority `json:"priority"` // critical, high, medium or low
	EstimatedRemainingWork string   `json:"estimatedRemainingWork,omitempty"`
}

// Clone returns a copy that shares no memory with r.
func (r *Record) Clone() *Record {
	if r == nil {
		return nil
	}
	c := *r
	c.Source = pointer(r.Source)
	c.Task.SuccessCriteria = slices.Clone(r.Task.SuccessCriteria)
	c.ExecutionSummary.Actions = slices.Clone(r.ExecutionSummary.Actions)
	c.Metadata.Tags = slices.Clone(r.Metadata.Tags)
	for _, s := range sections {
		s.clone(&c)
	}
	return &c
}

func (d Decision) clone() Decision {
	d.Variants, d.Affects = slices.Clone(d.Variants), slices.Clone(d.Affects)
	d.OverridableBy, d.Alternatives = slices.Clone(d.OverridableBy), slices.Clone(d.Alternatives)
	return d
}

func (q Question) clone() Question {
	q.Options, q.BlocksResumePoints = slices.Clone(q.Options), slices.Clone(q.BlocksResumePoints)
	q.AnsweredBy = pointer(q.AnsweredBy)
	return q
}

func (p ResumePoint) clone() ResumePoint {
	p.Preconditions, p.NextSteps = slices.Clone(p.Preconditions), slices.Clone(p.NextSteps)
	p.AlternativePaths = slices.Clone(p.AlternativePaths)
	for i := range p.AlternativePaths {
		p.AlternativePaths[i].Steps = slices.Clone(p.AlternativePaths[i].Steps)
	}
	p.ApprovedBy = pointer(p.ApprovedBy)
	return p
}

func (e ToolEffect) clone() ToolEffect {
	e.Inputs, e.Outputs, e.SideEffects = slices.Clone(e.Inputs), slices.Clone(e.Outputs), slices.Clone(e.SideEffects)
	return e
}

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// plain sets what is nil and has to be there, lists are empty, inputs an object without members;
// and has the JSON of effects in the form in which it is kept, so that equal ones are equal.
func (r *Record) plain() {
	filled(&r.Task.SuccessCriteria)
	filled(&r.ExecutionSummary.Actions)
	filled(&r.Metadata.Tags)
	for _, s := range sections {
		s.plain(r)
	}
}

// cloned is a plain copy of a record, empty if there is none.
func cloned(r *Record) *Record {
	c := new(Record)
	if r != nil {
		c = r.Clone()
	}
	c.plain()
	return c
}

func (d *Decision) plain() {
	filled(&d.Affects)
	filled(&d.OverridableBy)
}

func (q *Question) plain() { filled(&q.BlocksResumePoints) }

func (p *ResumePoint) plain() {
	filled(&p.Preconditions)
	filled(&p.NextSteps)
	for i := range p.AlternativePaths {
		filled(&p.AlternativePaths[i].Steps)
	}
}

func (e *ToolEffect) plain() {
	filled(&e.SideEffects)
	if len(e.Inputs) == 0 {
		e.Inputs = json.RawMessage("{}")
	}
	e.Inputs, e.Outputs = settled(e.Inputs), settled(e.Outputs)
}

func filled[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}
