package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var wrongUsage = []struct {
	args  []string
	words string
}{
	{[]string{"-nonsense"}, "nonsense"},
	{[]string{"-json=perhaps", "x"}, "json"},
	{[]string{"two", "questions"}, "quotes"},
	{[]string{"question", "-json"}, "behind the flags"},
	{[]string{"-run", "", "x"}, "-run is empty"},
	{[]string{"-run", "a\nb", "x"}, "control character"},
	{[]string{"-run", "\xff", "x"}, "UTF-8"},
	{[]string{"-run", strings.Repeat("r", 257), "x"}, "257 bytes"},
	{[]string{"-store", "", "x"}, "-store is empty"},
	{[]string{"-corpus", "", "x"}, "-corpus is empty"},
	{[]string{"-cancel-at", "", "x"}, "-cancel-at is empty"},
	{[]string{"-slow", "-1ms", "x"}, "negative"},
	{[]string{"-slow", "soon", "x"}, "slow"},
	{[]string{"-slow", "20", "x"}, "slow"},
	{[]string{"-cancel-after", "-1s", "x"}, "negative"},
	{[]string{"-cancel-after", "later", "x"}, "not a duration"},
	{[]string{"-deadline", "-1s", "x"}, "negative"},
	{[]string{"-deadline", "", "x"}, "not a duration"},
	{[]string{"-graph", "png"}, "mermaid, dot or json"},
	{[]string{"-graph", ""}, "-graph is empty"},
	{[]string{"-graph", "dot", "-history"}, "can't be combined"},
	{[]string{"-resume", "-history"}, "can't be combined"},
	{[]string{"-resume", "x"}, "takes no question"},
	{[]string{"-history", "x"}, "takes no question"},
	{[]string{"-fork", ""}, "-fork is empty"},
	{[]string{"-fork", "1", "-resume"}, "can't be combined"},
	{[]string{"-fork", "1", "two", "questions"}, "quotes"},
	{[]string{"-fork", "1", "\xff"}, "UTF-8"},
	{[]string{"-diff", "", "2"}, "-diff is empty"},
	{[]string{"-diff", "1"}, "-diff A B"},
	{[]string{"-diff", "1", ""}, "-diff A B"},
	{[]string{"-diff", "1", "-blame", "Answer"}, "can't be combined"},
	{[]string{"-diff", "1", "2", "-run", "maze"}, "-diff A B comes last"},
	{[]string{"-blame", ""}, "-blame is empty"},
	{[]string{"-record", "-blame", "Answer"}, "can't be combined"},
	{[]string{"-record", "x"}, "takes no question"},
	{[]string{"-blame", "Answer", "x"}, "takes no question"},
	{[]string{"-answer", "x"}, "needs -resume"},
	{[]string{"-answer", "x", "y"}, "needs -resume"},
	{[]string{"-answer", strings.Repeat("x", longest+1), "-resume"}, "limit"},
	{[]string{"-answer", "\xc3", "-resume"}, "UTF-8"},
	{[]string{"-books", "-1", "x"}, "-books"},
	{[]string{"-books", "0", "x"}, "from 1 to 50"},
	{[]string{"-books", "51", "x"}, "-books"},
	{[]string{"-books", "many", "x"}, "books"},
	{[]string{"-model", "", "x"}, "-model is empty"},
	{[]string{"-model", "\xff", "x"}, "UTF-8"},
	{[]string{"-model", "\xff", "-resume", "-answer", "approve"}, "UTF-8"},
	{[]string{"-approve=maybe", "x"}, "approve"},
	{[]string{"-metrics", "nowhere", "x"}, "-metrics"},
	{[]string{"-metrics", "", "x"}, "-metrics is empty"},
	{[]string{strings.Repeat("x", longest+1)}, "limit"},
	{[]string{"\xff\xfe"}, "UTF-8"},
}

// Wrong usage is refused before anything is touched: status 2, one line, nothing on standard
// output, and no store is made.
func TestWrongUsage(t *testing.T) {
	for _, c := range wrongUsage {
		for _, asJSON := range []bool{false, true} {
			store := filepath.Join(t.TempDir(), "store")
			args := append([]string{"-store", store}, c.args...)
			if asJSON {
				args = append([]string{"-json"}, args...)
			}
			archivist(t, args...).complains(t, 2, c.words)
			if _, err := os.Stat(store); err == nil {
				t.Errorf("archivist %.100q made a store", args)
			}
		}
	}
}

func TestLongestQuestion(t *testing.T) {
	question := strings.Repeat("sea ", longest/4)
	o := archivist(t, "-store", t.TempDir(), "-json", question).exits(t, 0)
	if r := o.report(t); len(r.Citations) == 0 {
		t.Errorf("nothing is cited: %s", r.Answer)
	}
}

func TestHelp(t *testing.T) {
	o := archivist(t, "-help").exits(t, 0)
	const flags = "store run resume answer json slow cancel-after cancel-at deadline history fork diff blame record graph corpus online approve books model metrics"
	for flag := range strings.FieldsSeq(flags) {
		if !strings.Contains(o.stdout, "  -"+flag) {
			t.Errorf("-help does not tell of -%s", flag)
		}
	}
}

func TestDrawings(t *testing.T) {
	for format, words := range map[string][]string{
		"mermaid": {"flowchart", "compose-loop", "subgraph", "off-topic"},
		"dot":     {"digraph", "compose-loop", "nothing"},
		"json":    {`"compose-loop"`, `"digest"`, `"validate"`},
	} {
		o := archivist(t, "-graph", format).exits(t, 0)
		for _, w := range words {
			if !strings.Contains(o.stdout, w) {
				t.Errorf("the drawing in %s has no %q:\n%s", format, w, o.stdout)
			}
		}
		if o.stderr != "" {
			t.Errorf("-graph %s says %q", format, o.stderr)
		}
	}
}

func TestShellQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"":          `''`,
		"plain/-1":  `plain/-1`,
		"two words": `'two words'`,
		"it's":      `'it'\''s'`,
		"$HOME;`x`": "'$HOME;`x`'",
		"~":         `'~'`,
		"ä":         `'ä'`,
	} {
		if got := shellQuoted(word); got != want {
			t.Errorf("shellQuoted(%q) = %s, want %s", word, got, want)
		}
	}
}
