package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Cursor says where a run stands: the position in its log, and the visits that have still to run
// or wait, in declaration order. Of a frame that pauses after a visit these are the ones that come
// next, or that visit if none does. It prints as run@seq, followed by a space and the visits joined
// by commas, and [ParseCursor] reads that back.
type Cursor struct {
	Run    string   `json:"run"`
	Seq    uint64   `json:"seq"`
	Visits []string `json:"visits"`
}

// String returns c as text, for example "inquiry-42@17 compose-loop/2/validate,respond".
func (c Cursor) String() string {
	text := c.Run + "@" + strconv.FormatUint(c.Seq, 10)
	if len(c.Visits) > 0 {
		text += " " + strings.Join(c.Visits, ",")
	}
	return text
}

// ParseCursor reads what [Cursor.String] wrote. Any other text is an error that wraps
// [ErrCursor] and quotes it.
//
// A run id may hold blanks and even "@7", a visit neither '@' nor ',' nor white space:
// so the last '@' is always the one that ends the run id.
func ParseCursor(text string) (Cursor, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return Cursor{}, badCursor(text, "there is no @")
	}
	c := Cursor{Run: text[:at]}
	if reason := badID(c.Run); reason != "" {
		return Cursor{}, badCursor(text, "the run id "+reason)
	}
	number, visits, some := strings.Cut(text[at+1:], " ")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || strconv.FormatUint(seq, 10) != number {
		return Cursor{}, badCursor(text, "no sequence number follows the @")
	}
	c.Seq = seq
	if !some {
		return c, nil
	}
	c.Visits = strings.Split(visits, ",")
	for _, v := range c.Visits {
		if !goodVisit(v) {
			return Cursor{}, badCursor(text, fmt.Sprintf("%.64q is no path of a visit", v))
		}
	}
	return c, nil
}

func badCursor(text, reason string) error {
	return fmt.Errorf("%w: %.300q: %s", ErrCursor, text, reason)
}

func goodVisit(path string) bool {
	if path == "" || !utf8.ValidString(path) {
		return false
	}
	return strings.IndexFunc(path, func(r rune) bool {
		return r == '@' || r == ',' || unicode.IsSpace(r) || unicode.IsControl(r)
	}) < 0
}
