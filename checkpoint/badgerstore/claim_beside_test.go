package badgerstore

import (
	"errors"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Of two who make a store in one directory at once one has it, or both have one after the other,
// and it is one store; who has not is told that it is locked, and nothing else.
func TestClaimBesideAnother(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for i := range 300 {
		dir := filepath.Join(top, strconv.Itoa(i))
		var both sync.WaitGroup
		start := make(chan struct{})
		var held atomic.Int32
		var names [2]name
		for who := range names {
			both.Go(func() { // waited for below
				<-start
				lock, n, err := claim(dir, 0)
				if err != nil {
					if !errors.Is(err, checkpoint.ErrLocked) {
						t.Errorf("round %d: %v", i, err)
					}
					return
				}
				names[who] = n
				if held.Add(1) > 1 {
					t.Errorf("round %d: both have it", i)
				}
				runtime.Gosched()
				held.Add(-1)
				_ = unlockFile(lock)
			})
		}
		close(start)
		both.Wait()
		switch a, b := names[0].Store, names[1].Store; {
		case a == "" && b == "":
			t.Errorf("round %d: nobody has it", i)
		case a != "" && b != "" && a != b:
			t.Errorf("round %d: one has the store %s, the other %s", i, a, b)
		}
	}
}
