package dispatcher_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/dag"
	"github.com/pawlgo/pawl/dispatcher"
	"github.com/pawlgo/pawl/state"
)

// What lists things puts something between them that is in none of them, and says what to do.
func TestEdgesTextsOfLists(t *testing.T) {
	many := strings.Fields("a b c d e f g h i j")
	for want, is := range map[string]any{
		`Total: visit pay at r@3, visit loop/2/pay attempt 2 at r@7, edit by ann at r@9`: dispatcher.Blame{
			Cell: "Total", Writers: dispatcher.Writers{
				{Kind: dispatcher.WroteVisit, Path: "pay", Run: "r", Seq: 3, Attempt: 1},
				{Kind: dispatcher.WroteVisit, Path: "loop/2/pay", Run: "r", Seq: 7, Attempt: 2},
				{Kind: dispatcher.WroteEdit, By: "ann", Run: "r", Seq: 9},
			},
		},
		`dispatcher: run "r" is interrupted at a, b, c, d, e, f, g, h and 2 more`: &dispatcher.Rest{
			Run: "r", Status: checkpoint.StatusInterrupted, Cursor: checkpoint.Cursor{Visits: many},
		},
		`dispatcher: run "r" is interrupted before pay: Resume ends the pause`: waits(
			dispatcher.Interrupt{Path: "pay", Kind: dispatcher.KindBefore}),
		`dispatcher: run "r" is interrupted after a, b, before c: Resume ends the pauses`: waits(
			dispatcher.Interrupt{Path: "a", Kind: dispatcher.KindAfter}, dispatcher.Interrupt{Path: "b", Kind: dispatcher.KindAfter},
			dispatcher.Interrupt{Path: "c", Kind: dispatcher.KindBefore}),
		`dispatcher: run "r" is interrupted at pay: Answer what it waits for, and Resume`: waits(
			dispatcher.Interrupt{Path: "pay", Kind: dispatcher.KindAsked, Key: "one"},
			dispatcher.Interrupt{Path: "pay", Kind: dispatcher.KindAsked, Key: "other"}),
		`dispatcher: run "r" is interrupted at pay: say with Resolve what happened, and Resume`: waits(
			dispatcher.Interrupt{Path: "pay", Kind: dispatcher.KindDoubt}),
		`dispatcher: run "r" is interrupted before send, after look: Answer what it waits for, and Resume`: waits(
			dispatcher.Interrupt{Path: "send", Kind: dispatcher.KindBefore, By: "gate"}, dispatcher.Interrupt{Path: "look", Kind: dispatcher.KindAfter}),
		`dispatcher: run "r": answer refused: nothing waits for an answer`: &dispatcher.AnswerError{
			Run: "r", Reason: "nothing waits for an answer",
		},
		`dispatcher: run "r": answer to "i" refused: it has expired`: &dispatcher.AnswerError{Run: "r", Interrupt: "i", Reason: "it has expired"},
		`dispatcher: run "r" was cancelled by ann at a, b`: &dispatcher.Rest{
			Run: "r", Status: checkpoint.StatusCancelled, Cursor: checkpoint.Cursor{Visits: many[:2]}, By: "ann",
		},
		`dispatcher: run "r" failed at b, with 9 more still to run: the disk is full`: &dispatcher.Rest{
			Run: "r", Status: checkpoint.StatusFailed, Cursor: checkpoint.Cursor{Visits: many},
			Failures: []dag.Failure{{Path: "b"}}, Cause: errors.New("the disk is full"),
		},
		`dispatcher: run "r" failed at a, b, c, d, e, f, g, h and 1 more, with 1 more still to run`: &dispatcher.Rest{
			Run: "r", Status: checkpoint.StatusFailed, Cursor: checkpoint.Cursor{Visits: many}, Failures: failuresAt(many[:9]),
		},
		`dispatcher: run "r" failed at a, b`: &dispatcher.Rest{ // a limit: no visit is the cause
			Run: "r", Status: checkpoint.StatusFailed, Cursor: checkpoint.Cursor{Visits: many[:2]},
		},
		`dispatcher: run "r": its graph has changed from 1 to 2: node a: removed; node b: was route, is step: ` +
			`use the graph that made it, or a Migration`: &dispatcher.GraphChangedError{
			Run: "r", Stored: "1", Current: "2", Changes: []string{"node a: removed", "node b: was route, is step"},
		},
		`dispatcher: run "r": its graph has changed from 1 to 2: visit rows/1/ask is open, and its node is gone (and 1 more like it); ` +
			`cell X of rows/1 was a sum and is gone; cell X of rows was a sum and is gone; cell Y of rows/1 was a sum and is gone (and 1 more like it): ` +
			`use the graph that made it, or a Migration with a State, which may return what it gets if that fits the new types`: &dispatcher.GraphChangedError{
			Run: "r", Stored: "1", Current: "2", Changes: []string{
				"visit rows/1/ask is open, and its node is gone", "cell X of rows/1 was a sum and is gone", "cell X of rows was a sum and is gone",
				"cell Y of rows/1 was a sum and is gone", "visit rows/20/ask is open, and its node is gone", "cell Y of rows/2 was a sum and is gone",
			},
		},
		`dispatcher: run "r": its graph has changed from 1 to 2: a; b; c; d; e; f; g; h; and 2 more: use the graph that made it, or a Migration`: &dispatcher.GraphChangedError{
			Run: "r", Stored: "1", Current: "2", Changes: many[:10],
		},
		`dispatcher: run "r": in doubt: r/a#x, r/b#y: say with Resolve what happened, or go on without Manual`: &dispatcher.DoubtError{
			Run: "r", Effects: []dispatcher.OpenEffect{{ID: "r/a#x"}, {ID: "r/b#y"}},
		},
		"dispatcher: limit 5 of items reached by review (Options.Limits.Items)": &dispatcher.LimitError{Limit: "items", Max: 5, Where: "review"},
		"dispatcher: limit 7 of supersteps reached (Options.Limits.Supersteps)": &dispatcher.LimitError{Limit: "supersteps", Max: 7},
		`state: "a/1" and "b c" write to key "k" of cell "Notes" in one superstep, and these writes don't merge: let one follow the other, or give the cell a type that merges`: &state.ConflictError{
			Cell: "Notes", Key: "k", Visits: [2]string{"a/1", "b c"},
		},
	} {
		if got := fmt.Sprint(is); got != want {
			t.Errorf("%T reads\n%s\nwant\n%s", is, got, want)
		}
	}
}

func failuresAt(paths []string) (all []dag.Failure) {
	for _, path := range paths {
		all = append(all, dag.Failure{Path: path})
	}
	return all
}

// waits is the error of a run that waits so, and has another visit to run behind that.
func waits(all ...dispatcher.Interrupt) *dispatcher.Rest {
	return &dispatcher.Rest{
		Run: "r", Status: checkpoint.StatusInterrupted, Cursor: checkpoint.Cursor{Visits: []string{"next"}}, Interrupts: all,
	}
}

// What a run says that rests behind a visit, or before it, is where it rests, and not what comes
// next.
func TestEdgesTextsOfPauses(t *testing.T) {
	for want, o := range map[string]dispatcher.Options{
		`dispatcher: run "r" is interrupted after look: Resume ends the pause`: {InterruptAfter: []string{"look"}},
		`dispatcher: run "r" is interrupted before pay: Resume ends the pause`: {InterruptBefore: []string{"pay"}},
		`dispatcher: run "r" is interrupted before pay: Answer what it waits for, and Resume`: {
			Gates: dispatcher.Gates{Names: []string{"pay"}},
		},
	} {
		b := dag.New[Tale]("shop")
		dag.Step(b, "pay", nothing[Tale], dag.Step(b, "look", nothing[Tale]))
		if _, err := process(t, frozen(t, b), new(memory.Store), o).Run(t.Context(), "r", nil); fmt.Sprint(err) != want {
			t.Errorf("Run returned\n%v\nwant\n%s", err, want)
		}
	}
}

// The state of a run's own frame, which has no path, is told as the run's.
func TestEdgesTextsOfAnotherState(t *testing.T) {
	b := dag.New[Tale]("shop")
	dag.Step(b, "pay", nothing[Tale])
	d := process(t, frozen(t, b), new(memory.Store), dispatcher.Options{})
	res, err := d.Run(t.Context(), "r", nil)
	completes(t, res, err)
	want := `dispatcher: run "r": state of another type: that of the run is dispatcher_test.Tale, not dispatcher_test.TaleInNumbers`
	if _, err := dispatcher.StateOf[TaleInNumbers](t.Context(), d, "r", ""); fmt.Sprint(err) != want {
		t.Errorf("StateOf returned\n%v\nwant\n%s", err, want)
	}
	want = `dispatcher: run "r": answer to "x" refused: no such interrupt waits: State tells those that do`
	if err := d.Answer(t.Context(), "r", "x", 1); fmt.Sprint(err) != want {
		t.Errorf("Answer returned\n%v\nwant\n%s", err, want)
	}
}
