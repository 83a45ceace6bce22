package memory

import (
	"iter"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Who began to read before an append is torn reads what he began with: what is torn is what is
// stored, not what he has.
func TestTornBesideAReader(t *testing.T) {
	var f Faulty
	l, err := f.Acquire(t.Context(), "run", "owner")
	if err != nil {
		t.Fatal(err)
	}
	head, err := f.Append(t.Context(), l, checkpoint.Head{}, []checkpoint.Entry{{Kind: checkpoint.Opened}})
	if err != nil {
		t.Fatal(err)
	}
	var next func() (checkpoint.Entry, error, bool)
	f.tear("Append", "run", func() error {
		_, err := f.Store.Append(t.Context(), l, head, []checkpoint.Entry{{Kind: checkpoint.Done}})
		var stop func()
		next, stop = iter.Pull2(f.Store.Read(t.Context(), "run", 0, 0))
		t.Cleanup(stop)
		if e, err, ok := next(); !ok || err != nil || e.Seq != 1 {
			t.Errorf("the reader begins with entry %d, %v", e.Seq, err)
		}
		return err
	})
	if e, err, ok := next(); !ok || err != nil || e.Seq != 2 {
		t.Errorf("the reader goes on with entry %d, %v, want the one that was torn meanwhile", e.Seq, err)
	}
	again := f.Crash(0)
	for e, err := range again.Read(t.Context(), "run", 2, 0) {
		if err == nil {
			t.Errorf("entry %d was not torn", e.Seq)
		}
	}
}
