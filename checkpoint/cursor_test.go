package checkpoint_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

func TestParseCursor(t *testing.T) {
	for _, c := range []struct {
		text string
		want checkpoint.Cursor
	}{
		{"run@0", checkpoint.Cursor{Run: "run"}},
		{"run@17 respond", checkpoint.Cursor{Run: "run", Seq: 17, Visits: []string{"respond"}}},
		{
			"a b@18446744073709551615 compose-loop/2/validate,review/17/fetch",
			checkpoint.Cursor{
				Run: "a b", Seq: math.MaxUint64,
				Visits: []string{"compose-loop/2/validate", "review/17/fetch"},
			},
		},
		{"x@5 y@7", checkpoint.Cursor{Run: "x@5 y", Seq: 7}},
		{"x@5@7 z", checkpoint.Cursor{Run: "x@5", Seq: 7, Visits: []string{"z"}}},
		{"@@1", checkpoint.Cursor{Run: "@", Seq: 1}},
		{" @1", checkpoint.Cursor{Run: " ", Seq: 1}},
	} {
		got, err := checkpoint.ParseCursor(c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("ParseCursor(%q) = %+v, %v, want %+v", c.text, got, err, c.want)
		}
		if got := c.want.String(); got != c.text {
			t.Errorf("String() = %q, want %q", got, c.text)
		}
	}
}

func TestParseCursorRefuses(t *testing.T) {
	for _, text := range []string{
		"", "run", "run@", "@1", "run@x", "run@-1", "run@+1", "run@01", "run@1 ", "run@1 a,",
		"run@1 ,a", "run@1 a b", "run@1  a", "run@1\ta", "run@ 1", "run@1 a@b",
		"run@18446744073709551616", "r\nn@1", "run@1 a\u2028b", "run@1 \xff", "\xff@1",
		strings.Repeat("x", 257) + "@1",
	} {
		c, err := checkpoint.ParseCursor(text)
		if !errors.Is(err, checkpoint.ErrCursor) {
			t.Errorf("ParseCursor(%.40q) = %+v, %v, want ErrCursor", text, c, err)
			continue
		}
		//lint:ignore SA1011 the text is broken on purpose
		if strings.ContainsAny(err.Error(), "\n\t\xff") {
			t.Errorf("the error of ParseCursor(%.40q) is not safe to print: %q", text, err)
		}
	}
}

// What is printed is read back, whatever the run id and the visits hold.
func TestCursorRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	letters := []rune("ab/12-_.@@ ,\"ü🪓")
	text := func(not string) string {
		var b strings.Builder
		for b.Len() == 0 || random.IntN(6) > 0 {
			if r := letters[random.IntN(len(letters))]; !strings.ContainsRune(not, r) {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	for range 20_000 {
		c := checkpoint.Cursor{Run: text(""), Seq: random.Uint64() >> random.IntN(64)}
		if checkpoint.CheckRunID(c.Run) != nil {
			continue
		}
		for range random.IntN(4) {
			c.Visits = append(c.Visits, text("@, "))
		}
		got, err := checkpoint.ParseCursor(c.String())
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("seed %d: ParseCursor(%q) = %+v, %v, want %+v", seed, c, got, err, c)
		}
	}
}

// A text is no cursor, or is the text of the cursor it is read as.
func FuzzParseCursor(f *testing.F) {
	f.Add("run@17 compose-loop/2/validate,respond")
	f.Add("x@5 y@7")
	f.Add("a@0")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := checkpoint.ParseCursor(text)
		if err != nil {
			if !errors.Is(err, checkpoint.ErrCursor) {
				t.Errorf("ParseCursor(%q) = %v, want ErrCursor", text, err)
			}
			return
		}
		if c.String() != text {
			t.Errorf("ParseCursor(%q) prints as %q", text, c)
		}
	})
}

func TestCheckRunID(t *testing.T) {
	for _, id := range []string{"a", " ", "a b/c'd\"e@1,2", strings.Repeat("ü", 128)} {
		if err := checkpoint.CheckRunID(id); err != nil {
			t.Errorf("CheckRunID(%q) = %v", id, err)
		}
	}
	for _, id := range []string{"", "\x00", "a\nb", "\x7f", "\u009f", "\xff", strings.Repeat("ü", 129)} {
		err := checkpoint.CheckRunID(id)
		if !errors.Is(err, checkpoint.ErrRunID) || !strings.Contains(err.Error(), `"`) {
			t.Errorf("CheckRunID(%.20q) = %v, want ErrRunID with the id quoted", id, err)
		}
		if err := checkpoint.CheckPostID(id); !errors.Is(err, checkpoint.ErrPostID) {
			t.Errorf("CheckPostID(%.20q) = %v, want ErrPostID", id, err)
		}
		if err := checkpoint.CheckDigest(id); err == nil {
			t.Errorf("CheckDigest(%.20q) = nil", id)
		}
	}
}
