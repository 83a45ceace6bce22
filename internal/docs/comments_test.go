package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"
)

// mostColumns is how wide a comment may be, where a tab is four columns.
const mostColumns = 100

// A comment that has lines of its own is read from the top of a screen to its end. What is
// preformatted in it, as a table or an output, is as wide as it is.
func TestCommentsAreNotWide(t *testing.T) {
	comments := 0
	for name, text := range sources(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text, "\n")
		for _, group := range file.Comments {
			comments += len(group.List)
			for _, c := range wide(fset, group, lines) {
				at := fset.Position(c.Pos())
				t.Errorf("%s:%d: the comment is wider than %d columns", name, at.Line, mostColumns)
			}
		}
	}
	if comments < 10_000 {
		t.Fatalf("only %d lines of comments were found", comments)
	}
}

// wide returns the lines of a comment that are too wide.
func wide(fset *token.FileSet, group *ast.CommentGroup, lines []string) (all []*ast.Comment) {
	for _, c := range group.List {
		words, ok := strings.CutPrefix(c.Text, "//")
		if !ok {
			continue
		}
		if strings.Contains(words, "utput:") {
			break
		}
		line := lines[fset.Position(c.Pos()).Line-1]
		item := strings.HasPrefix(strings.TrimSpace(words), "- ")
		switch {
		case strings.TrimSpace(line) != c.Text: // it is behind code
		case !item && (strings.HasPrefix(words, "\t") || strings.HasPrefix(words, "  ")):
		case utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > mostColumns:
			all = append(all, c)
		}
	}
	return all
}
