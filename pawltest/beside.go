package pawltest

import (
	"strings"

	"github.com/pawlgo/pawl/checkpoint"
)

// besideFailed tells of each entry of a log whether it is of an item of an Each that was at work
// when an attempt of another item had failed. Such an item may not begin again: who tries the log
// makes the failed one's next attempt first, and an Each may stop at that.
func besideFailed(log []checkpoint.Entry) []bool {
	beside := make([]bool, len(log))
	failed := map[string]string{} // by Each that has begun: the item of which attempts have failed, the Each itself if there are several, "" if none
	for i := range log {
		e := &log[i]
		if e.Kind == checkpoint.Entered {
			failed[e.Path] = ""
		}
		for at, c := range e.Path {
			if c != '/' {
				continue
			}
			each := e.Path[:at]
			part, _, _ := strings.Cut(e.Path[at+1:], "/")
			was, begun := failed[each]
			if !begun || !isNumber(part) {
				continue
			}
			item := each + "/" + part
			beside[i] = beside[i] || was != "" && was != item
			switch {
			case e.Kind != checkpoint.AttemptFailed:
			case was == "":
				failed[each] = item
			case was != item:
				failed[each] = each
			}
		}
	}
	return beside
}
