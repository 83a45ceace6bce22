package record_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/record"
)

// full is a record of which every member says something.
func full(t *testing.T) *record.Record {
	t.Helper()
	hash := strings.Repeat("ab", 32)
	r := &record.Record{
		ID: "r", ParentCRHash: hash, MergedCRHash: hash, MerkleRoot: hash,
		Source:    &record.Source{Run: "r", Seq: 9, Digest: hash, Graph: "g", First: 3, Origin: "o@4"},
		Task:      record.Task{ID: "t", Goal: "find it", SuccessCriteria: []string{"found"}, Status: record.TaskBlocked, StartedAt: 1, CompletedAt: 2},
		CreatedBy: ann, CreatedAt: 1, LastModifiedBy: record.Author{Type: dag.Agent, ID: "bot", Name: "Bot"}, LastModifiedAt: 2,
		ExecutionSummary: record.Summary{StepsCompleted: 1, StepsFailed: 1, TokensConsumed: 5, ElapsedMs: 7,
			Actions: []record.Action{{Description: "a", Timestamp: 1, Outcome: record.OutcomePartial}}},
		Decisions: []record.Decision{{ID: "d", Description: "left", Status: dag.Contested, Rationale: "shorter", MadeBy: bot, MadeAt: 1,
			Variants: []record.Variant{{Author: ann, Decision: "right", Rationale: "safer", Status: dag.Accepted}},
			Affects:  []string{"walk"}, OverridableBy: []dag.Authority{dag.Human}, Confidence: 0.5,
			Alternatives: []dag.Alternative{{Description: "stay", Reason: "rain"}}}},
		Learnings: []record.Learning{{ID: "l", Content: "it rains", Source: "window", Confidence: 0.25, LearnedBy: bot, LearnedAt: 1}},
		QuestionsForUser: []record.Question{{ID: "q", Type: record.AskApproval, Question: "go?", Context: "walk", Options: []string{"yes"},
			Status: record.QuestionAnswered, Answer: "yes", AnsweredBy: &ann, AnsweredAt: 3, BlocksResumePoints: []string{"p"},
			Priority: record.PriorityBlocking, ExpiresAt: 4, RequiredAuthority: dag.Human}},
		Blockers: []record.Blocker{{ID: "b", Description: "no coat", Severity: "high", Needs: "a coat", Resolved: true, ReportedBy: cron, ReportedAt: 1}},
		ResumePoints: []record.ResumePoint{{ID: "p", Label: "walk", Description: "go out", When: "dry", Preconditions: []string{"coat"},
			RequiredAuthority: dag.Human, SafeToAutoExecute: true, OnTimeout: record.TimeoutRetry, TimeoutMs: 5,
			ApprovalStatus: record.ApprovalGiven, ApprovedBy: &ann, ApprovedAt: 3, ApprovalReason: "ok", NextSteps: []string{"walk"},
			AlternativePaths: []record.AlternativePath{{Condition: "wet", Steps: []string{"stay"}}}}},
		ToolEffects: []record.ToolEffect{{ID: "e", ToolName: "door", Operation: "open", Inputs: json.RawMessage(`{"key":7}`),
			Outputs: json.RawMessage(`{"value":true}`), IdempotencyKey: "e", IsReplayable: true, SideEffects: []string{"door"},
			Reversible: true, ExecutedAt: 1, DurationMs: 1, Status: record.EffectDone, Abandoned: true}},
		Invariants: []record.Invariant{{ID: "i", Description: "keep the key", Check: "look"}},
		Metadata:   record.Metadata{Tags: []string{"a"}, Priority: record.PriorityHigh, EstimatedRemainingWork: "an hour"},
	}
	done(t, r.Seal())
	whole(t, "record", reflect.ValueOf(*r))
	return r
}

// whole checks that no field is zero, so that a new one is not forgotten here.
func whole(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	if v.IsZero() {
		t.Errorf("%s says nothing", name)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); v.Type() != reflect.TypeFor[record.Author]() || f.Name != "Name" {
				whole(t, name+"."+f.Name, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				whole(t, name, v.Index(i))
			}
		}
	case reflect.Pointer:
		whole(t, name, v.Elem())
	}
}

// A hash is of the content alone: not of the order of members or of white space, and of every
// member. What it is is fixed: other programs compute it.
func TestHashIsOfTheContent(t *testing.T) {
	r := full(t)
	const want = "ae9f6889eefebace7e6338efd72c561cad2ce1979ec9e8beb9f4ede99cedd040"
	if r.ContentHash != want {
		t.Errorf("the hash is %s, want %s: other programs can't verify these records any more", r.ContentHash, want)
	}
	spaced, err := json.MarshalIndent(r, "", "  ") // in the order of the struct
	done(t, err)
	again, err := record.Decode(spaced)
	if err != nil || again.ContentHash != r.ContentHash {
		t.Errorf("written otherwise it is %v, %v", again, err)
	}
	again.ParentCRHash = ""
	if hash, err := again.Hash(); err != nil || hash == r.ContentHash {
		t.Errorf("with another parent the hash is the same, %v", err)
	}
}

// A clone shares nothing: what is changed in it is not changed in the record.
func TestCloneSharesNothing(t *testing.T) {
	r := full(t)
	before := show(r)
	scribble(reflect.ValueOf(r.Clone()).Elem())
	if show(r) != before {
		t.Errorf("the record has changed:\n%s\n%s", before, show(r))
	}
}

func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Pointer:
		scribble(v.Elem())
	case reflect.String:
		v.SetString("scribbled")
	case reflect.Uint8:
		v.SetUint(' ')
	}
}

// What is no record, or another one than it says, is refused with all that is wrong with it.
func TestDecodeRefuses(t *testing.T) {
	data, err := full(t).Encode()
	done(t, err)
	for name, change := range map[string]func(string) string{
		"nothing":           func(string) string { return "" },
		"half":              func(s string) string { return s[:len(s)/2] },
		"another content":   func(s string) string { return strings.Replace(s, "find it", "find me", 1) },
		"another version":   func(s string) string { return strings.Replace(s, `"version":"1.0"`, `"version":"1.1"`, 1) },
		"an unknown member": func(s string) string { return strings.Replace(s, `"id":"r"`, `"id":"r","mood":"bad"`, 1) },
		"a member twice":    func(s string) string { return strings.Replace(s, `"id":"r"`, `"id":"r","id":"r"`, 1) },
		"a name in capitals": func(s string) string {
			return strings.Replace(s, `"goal"`, `"Goal"`, 1)
		},
		"a missing member": func(s string) string { return strings.Replace(s, `"reversible":true,`, "", 1) },
		"two records":      func(s string) string { return s + s },
		"no UTF-8":         func(s string) string { return strings.Replace(s, "find it", "find \xff", 1) },
		"half a character": func(s string) string { return strings.Replace(s, "find it", `find \ud800`, 1) },
		"a kind":           func(s string) string { return strings.Replace(s, `"createdAt":1`, `"createdAt":"now"`, 1) },
	} {
		var bad *record.InvalidError
		r, err := record.Decode([]byte(change(string(data))))
		if !errors.As(err, &bad) || r != nil {
			t.Fatalf("%s: %v, %v", name, r, err)
		}
		for _, leaked := range []string{"No JSON data", "Unexpected", "Duplicate", "Go struct", "json:"} {
			if strings.Contains(err.Error(), leaked) {
				t.Errorf("%s: another library speaks: %v", name, err)
			}
		}
	}
}

// All that is wrong with a record is told at once, and then it is not sealed.
func TestCheckTellsEverything(t *testing.T) {
	r := full(t)
	r.Decisions = append(r.Decisions, r.Decisions[0])
	r.Decisions[0].Status = "sure"
	r.Learnings[0].Confidence = math.NaN()
	r.ToolEffects[0].Inputs = json.RawMessage(`{"n":12345678901234567890}`)
	r.ResumePoints[0].ApprovedAt = -1
	r.ExecutionSummary.TokensConsumed = 1 << 53
	before := r.ContentHash
	var bad *record.InvalidError
	if err := r.Seal(); !errors.As(err, &bad) {
		t.Fatalf("sealed: %v", err)
	}
	r.Learnings[0].Confidence = 2
	if err := r.Seal(); !errors.As(err, &bad) || len(bad.Problems) != 6 || !slices.Contains(bad.Problems, "counts: 9007199254740992 is not between 0 and 9007199254740991") {
		t.Errorf("told %q", err)
	}
	if r.ContentHash != before {
		t.Error("what was refused has changed the record")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte(`{"id":"r","toolEffects":[{"inputs":{"n":1e400}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := record.Decode(data)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatalf("decoded and can't be encoded: %v", err)
		}
		if _, err := record.Decode(again); err != nil {
			t.Fatalf("encoded and can't be decoded: %v", err)
		}
	})
}
