package memory_test

import (
	"testing"

	"github.com/pawlgo/pawl/checkpoint"
	"github.com/pawlgo/pawl/checkpoint/memory"
	"github.com/pawlgo/pawl/checkpoint/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) checkpoint.Store { return new(memory.Store) })
}
