package dag

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a node or graph, in bytes.
const MaxName = 128

// CheckName says what is wrong with name as the name of a node or a graph, or nil.
//
// Names are the parts of paths, cursors and command lines, so a name is 1 to [MaxName]
// bytes of valid UTF-8 without control characters and white space, and without any of
// these: / @ , # " \ and the back quote. It is not made of the digits 0 to 9 alone,
// because in a path such a part is the number of an iteration or an item.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("dag: the name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("dag: the name is %d bytes long, the limit is %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("dag: the name %q is not valid UTF-8", name)
	case strings.Trim(name, "0123456789") == "":
		return fmt.Errorf("dag: the name %q is made of digits only, as an iteration's number is", name)
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.IsSpace(r) || strings.ContainsRune("/@,#\"\\`", r) {
			return fmt.Errorf("dag: the name %q contains %q", name, r)
		}
	}
	return nil
}

// checkOutcome says what is wrong with the name of an outcome. Outcomes stand in entries
// and drawings but in no path, so little is refused.
func checkOutcome(outcome string) string {
	switch {
	case outcome == "":
		return "is empty"
	case !utf8.ValidString(outcome):
		return "is not valid UTF-8"
	case strings.ContainsFunc(outcome, unicode.IsControl):
		return "contains a control character"
	}
	return ""
}
