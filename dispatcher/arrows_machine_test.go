package dispatcher_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machineImports is all that the rules of execution may use.
var machineImports = []string{
	module + "/checkpoint", module + "/dag", module + "/state",
	"encoding/json", "fmt", "maps", "slices", "strconv", "strings", "time",
}

// machineTime is what of package time they may use: types and constants, never the clock.
var machineTime = []string{"Duration", "Time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// The machine is pure: no goroutine, channel, lock, clock or disk, and no type parameter.
func TestArrowsOfTheMachine(t *testing.T) {
	seen := 0
	for _, s := range sources(t, false) {
		name := filepath.Base(s.path)
		if s.pkg() != "dispatcher" || name != "frame.go" && !strings.HasPrefix(name, "machine") {
			continue
		}
		seen++
		for _, path := range s.imports(t) {
			if !slices.Contains(machineImports, path) {
				t.Errorf("%s imports %s", s.path, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := s.impure(n); what != "" {
				t.Errorf("%s: %s", s.at(n), what)
			}
			return true
		})
	}
	if seen < 4 {
		t.Errorf("only %d files of the machine were found", seen)
	}
}

// impure says what is not pure about a node of the syntax, "" if nothing is.
func (s source) impure(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
		return "a channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive from a channel"
		}
	case *ast.FuncType:
		if n.TypeParams != nil {
			return "type parameters"
		}
	case *ast.TypeSpec:
		if n.TypeParams != nil {
			return "type parameters"
		}
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(machineTime, n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	}
	return ""
}

// goStatements is how many goroutines each file begins: by a go statement, or by AfterFunc or Go of
// what else begins them. A new one is a decision: who waits for it, and what ends it, is written
// beside it.
var goStatements = map[string]int{
	"checkpoint/ahead.go":              1,                                        // reads a long log
	"checkpoint/keep.go":               2,                                        // renews a lease, and the timer of its end
	"checkpoint/badgerstore/commit.go": 1,                                        // the committer, behind an observer that has ended its goroutine
	"continuation/outbox.go":           1,                                        // ends a delivery with its caller
	"continuation/resume.go":           1,                                        // drains a run with its caller
	"checkpoint/storetest/trial.go":    2,                                        // a case, which may hang in the store; those beside each other
	"checkpoint/badgerstore/open.go":   1, "checkpoint/badgerstore/opener.go": 1, // the committer; opening, which Open may leave
	"checkpoint/badgerstore/store.go": 1, // Badger's own Close
	"dispatcher/ahead.go":             1, // appends what a run has handed over that is ahead of the disk
	"dispatcher/cancel.go":            1, // drains what was posted to a run that was let go of
	"dispatcher/create.go":            1, // ends a call whose context has ended
	"dispatcher/conclude.go":          1, // gives a lease back that strays have kept
	"dispatcher/hooks.go":             1, // Hooks.OnEnd
	"dispatcher/journal.go":           2, // the reader of posts, the writer of a snapshot
	"dispatcher/observe.go":           1, // tells that a call leaves its run running
	"dispatcher/stream.go":            1, // the run of a stream
	"dispatcher/tenure.go":            3, // the owner, and who follows it
	"dispatcher/crew.go":              1, // bodies beside others
	"dispatcher/trim.go":              1, // the trim of Options.Retention
	"supervisor/hold.go":              1, // the timer of the next run that tries a store without room
	"supervisor/ticket.go":            2, // a run at work, and who follows one whose observer ended its goroutine
}

// begins reports whether n begins a goroutine: a go statement, or, but in a program, with which
// they end, a call of context.AfterFunc, time.AfterFunc, or the Go of a sync.WaitGroup, an errgroup
// or the like.
func begins(n ast.Node, program bool) bool {
	if _, ok := n.(*ast.GoStmt); ok {
		return true
	}
	call, ok := n.(*ast.CallExpr)
	if !ok || program {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "AfterFunc" || f.Sel.Name == "Go")
}

func TestArrowsOfGoroutines(t *testing.T) {
	found := map[string]int{}
	for _, s := range sources(t, false) {
		commented := map[int]bool{} // lines that hold a comment, or end one
		for _, c := range s.file.Comments {
			for line := s.set.Position(c.Pos()).Line; line <= s.set.Position(c.End()).Line; line++ {
				commented[line] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if !begins(n, s.file.Name.Name == "main") {
				return true
			}
			found[s.path]++
			if line := s.set.Position(n.Pos()).Line; !commented[line] && !commented[line-1] {
				t.Errorf("%s: a goroutine is begun without a comment that says who waits for it", s.at(n))
			}
			return true
		})
	}
	if !maps.Equal(found, goStatements) {
		t.Errorf("goroutines by file: %v, want %v", found, goStatements)
	}
}
