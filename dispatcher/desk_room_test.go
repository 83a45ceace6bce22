package dispatcher

import (
	"reflect"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Nothing that was ever on a desk is there for who has it next: of facts only what is said is set.
func TestLeftDeskIsBare(t *testing.T) {
	for _, most := range []int{1, 3, 5, deskLines, deskLines + 1, 4 * deskLines} {
		d := newDesk()
		r := &run{facts: d.facts, logged: &logged{desk: d}}
		for range most {
			r.facts = append(r.facts, fact{Kind: checkpoint.Done, Path: "a", Attempt: 2, extra: &extra{ID: "x"}})
			d.lines = append(d.lines, checkpoint.Entry{ID: "x"})
		}
		d.facts = r.facts
		d.leave()
		if !reflect.DeepEqual(d.firstFacts, [len(d.firstFacts)]fact{}) || !reflect.DeepEqual(d.firstLines, [len(d.firstLines)]checkpoint.Entry{}) {
			t.Errorf("behind %d facts, some are left where they began", most)
		}
		for _, x := range d.facts[:cap(d.facts)] {
			if !reflect.DeepEqual(x, fact{}) {
				t.Errorf("behind %d facts, %+v is left", most, x)
			}
		}
	}
}
