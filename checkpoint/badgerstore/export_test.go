package badgerstore

import (
	"github.com/dgraph-io/badger/v4"
)

// BadgerOptions returns the options of the database of a store with the zero Options.
func BadgerOptions(dir string, synced bool) badger.Options {
	return Options{}.withDefaults(dir).forBadger(dir, synced)
}

// LogKey returns the key of an append.
func LogKey(run, seq uint64) []byte { return seqKey(logKey, run, seq) }
