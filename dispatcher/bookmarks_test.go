package dispatcher

import (
	"fmt"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// What is known of a run is its own, or nothing, while others put bookmarks of theirs.
func TestWhatIsKnownOfARunIsItsOwn(t *testing.T) {
	marks := &bookmarks{}
	of := func(id string) *hindsight {
		return &hindsight{info: checkpoint.Info{Run: id, Head: checkpoint.Head{Seq: 1}}}
	}
	a := of("a")
	marks.put(a, newChronicle("a"))
	if marks.known(&a.info) != a {
		t.Error("nothing is known of what was put")
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			h := a
			if i%40 > 0 {
				h = of(fmt.Sprint(i % 40))
			}
			marks.put(h, newChronicle(h.info.Run))
		}
	}()
	defer func() {
		close(stop)
		<-ended
	}()
	for range 200_000 {
		if h := marks.known(&a.info); h != nil && h != a {
			t.Fatalf("of run %q what run %q was is known", a.info.Run, h.info.Run)
		}
	}
}
