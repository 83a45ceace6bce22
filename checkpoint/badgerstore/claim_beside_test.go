package badgerstore

import (
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
)

// Of two who make a store in one directory at once one has it, or both have one after the other; who has not is
// told that it is locked, and nothing else.
func TestClaimBesideAnother(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for i := range 300 {
		dir := filepath.Join(top, strconv.Itoa(i))
		var both sync.WaitGroup
		start := make(chan struct{})
		for range 2 {
			both.Go(func() { // waited for below
				<-start
				lock, _, err := claim(dir, 0)
				if err != nil && !errors.Is(err, checkpoint.ErrLocked) {
					t.Errorf("round %d: %v", i, err)
				}
				if err == nil {
					_ = unlockFile(lock)
				}
			})
		}
		close(start)
		both.Wait()
	}
}
