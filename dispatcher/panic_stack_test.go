package dispatcher

import (
	"strings"
	"testing"
)

// What the dispatcher has panic again is placed where it was, and nothing outside the user's code
// is.
func TestPanicPlaceOfStacks(t *testing.T) {
	const dir = "/home/x/"
	for stack, want := range map[string]string{
		"panic( a.go:1|" + pawl + "dispatcher.(*host).effectGate.func1 gate.go:60|panic( p.go:2|main.rule rule.go:7|" + pawl + "dispatcher.protect( b.go:9": "rule.go:7",
		"panic( a.go:1|" + pawl + "state.(*List[...]).At list.go:95|" + pawl + "dispatcher.(*visit).call( b.go:9|main.main m.go:3":                          "list.go:95",
		"panic( a.go:1|" + pawl + "dispatcher.(*visit).call( b.go:9|main.main m.go:3":                                                                       "",
		"panic( a.go:1|internal/runtime/maps.(*Map).Delete map.go:5|runtime.mapdelete map.go:6|my/nodes.Count n.go:8":                                       "n.go:8",
		"main.node n.go:1|main.main m.go:3":                                    "",
		"panic( a.go:1|" + pawl + "state.f s.go:2|created by main.main m.go:3": "s.go:2",
	} {
		var lines []string
		for _, frame := range strings.Split(stack, "|") {
			i := strings.LastIndexByte(frame, ' ')
			lines = append(lines, frame[:i]+"(...)", "\t"+dir+frame[i+1:]+" +0x12")
		}
		if is := panicPlace([]byte("goroutine 1 [running]:\n" + strings.Join(lines, "\n"))); is != want {
			t.Errorf("%s: %q, want %q", stack, is, want)
		}
	}
}
