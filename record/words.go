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
