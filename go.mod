module github.com/pawlgo/pawl

go 1.26.0

require (
	github.com/dgraph-io/badger/v4 v4.9.6
	github.com/google/uuid v1.6.0
	github.com/prometheus/client_golang v1.25.0
	golang.org/x/sync v0.24.0
)
