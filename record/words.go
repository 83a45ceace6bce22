package record

import "github.com/pawlgo/pawl/dag"

// A TaskStatus says how far a task is.
type TaskStatus string

// The statuses of tasks.
const (
	TaskNotStarted TaskStatus = "not-started"
	TaskInProgress TaskStatus = "in-progress"
	TaskBlocked    TaskStatus = "blocked"
	TaskCompleted  TaskStatus = "completed"
	TaskFailed     TaskStatus = "failed"
)

// AnyAuthority is what a gate asks for that anybody may pass. Else it is dag.Human, dag.Agent or
// dag.System, as the authors are.
const AnyAuthority dag.Authority = "any"

// admits reports whether a gate lets the author through. What an agent or the system may do, a
// person may.
func admits(gate dag.Authority, by Author) bool {
	return gate == AnyAuthority || gate == "" || gate == by.Type || by.Type == dag.Human
}

// named reports whether somebody is named whom a gate lets through; a gate that is open to anybody
// needs no name.
func named(gate dag.Authority, by *Author) bool {
	if by == nil {
		return gate == AnyAuthority || gate == ""
	}
	return admits(gate, *by)
}

// decided reports whether the point is as a gate has it: approved by somebody whom the gate lets
// through, and where a person is needed never by itself. That nobody has decided in time anybody
// may find out.
func (p *ResumePoint) decided(gate dag.Authority) bool {
	switch p.ApprovalStatus {
	case ApprovalGiven:
		return named(gate, p.ApprovedBy)
	case ApprovalAutomatic:
		return gate != dag.Human
	case ApprovalDenied:
		return p.ApprovedBy == nil || p.ApprovedBy.Type == dag.System || named(gate, p.ApprovedBy)
	}
	return true
}

// ended reports whether the question is as a gate has it: answered by somebody whom the gate lets
// through. That nobody has answered, or will, has no author of its own.
func (q *Question) ended(gate dag.Authority) bool {
	switch q.Status {
	case QuestionAnswered:
		return named(gate, q.AnsweredBy)
	case QuestionSkipped:
		return q.AnsweredBy == nil || named(gate, q.AnsweredBy)
	}
	return true
}

// An ActionOutcome says what came of an [Action].
type ActionOutcome string

// The outcomes of actions.
const (
	OutcomeSuccess ActionOutcome = "success"
	OutcomeFailure ActionOutcome = "failure"
	OutcomePartial ActionOutcome = "partial" // an attempt failed, and there may be another
)

// An Intervention is what a person is asked for.
type Intervention string

// The interventions.
const (
	AskQuestion    Intervention = "question"
	AskApproval    Intervention = "approval"
	AskOverride    Intervention = "override"
	AskScopeChange Intervention = "scope-change"
)

// A QuestionStatus says how far a question is.
type QuestionStatus string

// The statuses of questions.
const (
	QuestionOpen     QuestionStatus = "open"
	QuestionAnswered QuestionStatus = "answered"
	QuestionExpired  QuestionStatus = "expired"
	QuestionSkipped  QuestionStatus = "skipped"
)

// A Priority says how much something matters.
type Priority string

// The priorities: critical is of records, blocking of questions.
const (
	PriorityCritical Priority = "critical"
	PriorityBlocking Priority = "blocking"
	PriorityHigh     Priority = "high"
	PriorityMedium   Priority = "medium"
	PriorityLow      Priority = "low"
)

// A TimeoutPolicy says what becomes of a resume point that nobody has approved in time.
type TimeoutPolicy string

// The policies. See [Ledger.Expire].
const (
	TimeoutAbort    TimeoutPolicy = "abort"    // it is denied
	TimeoutEscalate TimeoutPolicy = "escalate" // from then on a person has to approve
	TimeoutContinue TimeoutPolicy = "continue" // it is approved, unless a person has to
	TimeoutRetry    TimeoutPolicy = "retry"    // its questions are asked again
)

// An ApprovalStatus says whether a resume point may be gone on from.
type ApprovalStatus string

// The statuses of resume points.
const (
	ApprovalPending   ApprovalStatus = "pending"
	ApprovalGiven     ApprovalStatus = "approved"
	ApprovalDenied    ApprovalStatus = "denied"
	ApprovalAutomatic ApprovalStatus = "auto-approved"
)

// An EffectStatus says what came of an effect.
type EffectStatus string

// The statuses of effects.
const (
	EffectDone    EffectStatus = "done"
	EffectNotDone EffectStatus = "not-done"
	EffectLost    EffectStatus = "lost"     // it happened, and its output is not known
	EffectInDoubt EffectStatus = "in-doubt" // it began, and nobody knows whether it happened
)
