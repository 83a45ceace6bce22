package main

import (
	"github.com/pawlgo/pawl/state"
)

// A Mind is what the agent knows about one task, and all that a model is told of it. Whoever has
// it, another process, another model or a person, can go on with the task.
type Mind struct {
	Task     state.Value[string]
	Audience state.Value[string] // for whom the answer is written; only the last node reads it

	// Steps by id: "00" is the intent, "03" the third thought, "03.1" the first call that it wants.
	Steps       state.Map[string, Step]
	Facts       state.Map[string, Fact]
	Assumptions state.Map[string, Assumption]
	Questions   state.Map[string, Question]
	Beliefs     state.Map[string, Belief]
	Goals       state.Map[string, Goal]
	Todo        state.List[Item]

	Thoughts   state.Sum[int]
	Spent      state.Sum[int]      // tokens
	Conclusion state.Value[string] // of the last thought
	Answer     state.Value[string]
}

// A Step is one thing that the agent thought, did or was told. When it happened, and how often it
// was tried, the log of the run knows.
type Step struct {
	Type        StepType `json:"type"`
	Phase       Phase    `json:"phase"`
	Status      Status   `json:"status"`
	Label       string   `json:"label"`
	Parent      string   `json:"parent,omitempty"`    // the step that it follows from
	BlockedBy   []string `json:"blockedBy,omitempty"` // questions that have to be answered first
	Assumptions []string `json:"assumptions,omitempty"`
	Confidence  float64  `json:"confidence"`
	Tool        *Binding `json:"tool,omitempty"` // of a tool call
	Error       string   `json:"error,omitempty"`
}

// StepType says what a step is.
type StepType string

const (
	Intent      StepType = "intent"
	Decision    StepType = "decision"
	Reasoning   StepType = "reasoning"
	ToolCall    StepType = "tool-call"
	Observation StepType = "observation"
	Reflection  StepType = "reflection"
	Milestone   StepType = "checkpoint" // of the work, not of the run
)

// Phase says what a step is for.
type Phase string

const (
	Setup        Phase = "setup"
	Exploration  Phase = "exploration"
	Planning     Phase = "planning"
	Execution    Phase = "execution"
	Verification Phase = "verification"
	Reflecting   Phase = "reflection"
)

// Status says how far a step is.
type Status string

const (
	Pending   Status = "pending"
	Active    Status = "active"
	Paused    Status = "paused"
	Completed Status = "completed"
	Failed    Status = "failed"
	Deferred  Status = "deferred"
)

// A Binding is a tool call, from the moment at which it was thought of: with what it still lacks,
// and with what was not chosen and why, which nobody could tell later.
type Binding struct {
	Tool     string            `json:"tool"`
	Inputs   map[string]string `json:"inputs"`
	Complete bool              `json:"inputsComplete"`
	Rejected []Alternative     `json:"rejectedAlternatives,omitempty"`
	Output   string            `json:"output,omitempty"`
}

// An Alternative is a tool that was not chosen.
type Alternative struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// A Fact is what a tool or a person has said. No model can state one, so a belief that rests on
// facts rests on something.
type Fact struct {
	Content    string  `json:"content"`
	Source     string  `json:"source"` // "tool:search", "person:ada"
	Step       string  `json:"step"`   // that brought it
	Confidence float64 `json:"confidence"`
}

// An Assumption is taken for true and not verified.
type Assumption struct {
	Content   string `json:"content"`
	Validated bool   `json:"validated,omitempty"`
}

// A Question is open until it has an answer.
type Question struct {
	Question string   `json:"question"`
	Priority Priority `json:"priority"`
	Blocks   []string `json:"blocks,omitempty"` // steps that wait for the answer
	Answer   string   `json:"answer,omitempty"`
}

// Priority says how much depends on a question.
type Priority string

const (
	High   Priority = "high"
	Medium Priority = "medium"
	Low    Priority = "low"
)

// A Belief is a conclusion from facts.
type Belief struct {
	Statement  string   `json:"statement"`
	Confidence float64  `json:"confidence"`
	Evidence   []string `json:"evidence"` // ids of facts
}

// A Goal is what the agent is after.
type Goal struct {
	Description string     `json:"description"`
	Status      GoalStatus `json:"status"`
	Parent      string     `json:"parent,omitempty"` // the goal that it serves
	Priority    int        `json:"priority"`
}

// GoalStatus says what has become of a goal.
type GoalStatus string

const (
	GoalActive    GoalStatus = "active"
	GoalAchieved  GoalStatus = "achieved"
	GoalAbandoned GoalStatus = "abandoned"
	GoalDeferred  GoalStatus = "deferred"
)

// An Item is something to do.
type Item struct {
	Text string `json:"text"`
	Goal string `json:"goal,omitempty"`
	Done bool   `json:"done,omitempty"`
}
