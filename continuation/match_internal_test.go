package continuation

import (
	"slices"
	"testing"
)

// Of the waits of a run whose frame was voided none is meant if another one is that goes on; and of
// those alone the first, to which the run comes first. What is meant in another run does not
// matter.
func TestReached(t *testing.T) {
	one, other := &history{run: "one"}, &history{run: "other"}
	of := func(h *history, id string, gone bool) *wait {
		return &wait{h: h, id: id, asks: []*ask{{gone: gone}}}
	}
	for name, c := range map[string]struct {
		meant []*wait
		want  []string
	}{
		"none is voided":             {[]*wait{of(one, "a", false), of(one, "b", false)}, []string{"a", "b"}},
		"one is voided, one goes on": {[]*wait{of(one, "a", true), of(one, "b", false)}, []string{"b"}},
		"all are voided":             {[]*wait{of(one, "a", true), of(one, "b", true), of(one, "c", true)}, []string{"a"}},
		"of two runs":                {[]*wait{of(other, "a", false), of(one, "b", true), of(one, "c", true)}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range reached(c.meant) {
				got = append(got, w.id)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("meant are %q, want %q", got, c.want)
			}
		})
	}
}
