# Everything here can be done with plain go commands; these are the ones that take longer
# than the ordinary test, or are long to type.
.PHONY: check race crash damage faults fuzz random mutants bench

check: # all that a commit has to pass
	.ci/run

race:
	go test -race -timeout 30m work

# Those of forks are killed 40 times, not 4. The supervisor, the agent and the payments are killed as in the ordinary test.
crash: # programs and stores are killed 200 times each, not 25 and 10 times
	PAWL_CRASHES=200 PAWL_KILLS=200 go test -count=1 -timeout 60m -run 'Crash|Kill' \
		./checkpoint/badgerstore ./continuation ./supervisor ./examples/agent ./examples/archivist ./examples/payments

KILLS ?= 1000
CUTS ?= 200
EACH ?= 1
faults: # the store of Badger under kills, power cuts, a full disk, syncs that fail, an end before every system call: much more than the ordinary test
	PAWL_KILLS=$(KILLS) PAWL_CUTS=$(CUTS) PAWL_EACH=$(EACH) go test -count=1 -timeout 600m -v ./internal/victim

FLIPS ?= 1000
damage: # bits flipped, files cut, zeroed, swapped and removed of stores of Badger
	PAWL_FLIPS=$(FLIPS) go test -count=1 -timeout 600m -v -run TestEveryFileIsChecked ./checkpoint/badgerstore

FUZZTIME ?= 1m
fuzz: # every fuzz target in turn
	@grep -rn --include='*_test.go' '^func Fuzz' . | sed 's,/[^/]*:.*func \(Fuzz[A-Za-z0-9_]*\).*, \1,' | \
	while read -r dir name; do \
		echo "$$dir $$name"; \
		(cd "$$dir" && go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x .) || exit 1; \
	done

random: # twenty-five times as many random graphs, from other seeds, and random calls of two stores, random merges of records, and random lives of waits
	PAWL_RANDOM=10000 go test -count=1 -timeout 60m -run Random ./dispatcher ./checkpoint/badgerstore ./record ./continuation

mutants: # planted bugs, each of which a test has to find
	sh dispatcher/testdata/mutants.sh

bench:
	cd bench && go run .
