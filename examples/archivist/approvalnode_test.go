package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/dag/dagtest"
	"github.com/pawlgo/pawl/examples/archivist/catalogue"
)

// The node that answers, alone: it asks a person if the settings say so, about the answer that
// would go out, and lets nothing out before. What a person has said counts whatever the settings
// say by then.
func TestRespondAsksForApproval(t *testing.T) {
	t.Parallel()
	lib := openLibrary(t, catalogue.Default())
	for _, c := range []struct {
		visit *dagtest.Visit
		says  string
		err   error
		asked int
	}{
		{&dagtest.Visit{}, "nothing", nil, 0},
		{&dagtest.Visit{Settings: Settings{Approve: true}}, "", dagtest.ErrUnanswered, 1},
		{&dagtest.Visit{Settings: Settings{Approve: true}, Answers: map[string]any{
			approval + "-1": Verdict{Decision: "perhaps"}, approval + "-2": Verdict{Decision: Reject}}}, rejected, nil, 2},
		{&dagtest.Visit{Answers: map[string]any{approval + "-1": Verdict{Decision: Reject}}}, rejected, nil, 1},
		{&dagtest.Visit{Answers: map[string]any{approval + "-1": Verdict{Decision: "perhaps"}}}, "nothing", nil, 1},
	} {
		q, _ := inquire(t, lib, "a book about zzyzx")
		err := lib.Respond(dagtest.Context(t.Context(), c.visit), q)
		if !errors.Is(err, c.err) || len(c.visit.Asked()) != c.asked {
			t.Errorf("%v, asked %v", err, c.visit.Asked())
		}
		if err == nil && !strings.Contains(flat(q), c.says) || err != nil && q.Answer.Get() != "" {
			t.Errorf("answered %q, want something of %q", q.Answer.Get(), c.says)
		}
	}
}
