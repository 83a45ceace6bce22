#!/bin/sh
# Every file in mutants is a bug to plant: a line that says what it is, and a patch. Each is
# applied to a copy of the module, and the random graphs have to find it there, or the tests
# that a line "tests: REGEXP" names. Without any bug the random graphs have to find nothing.
#
# An argument is the name of the one mutant to try; PAWL_RANDOM is how many graphs to try
# it with.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT INT TERM
export GOWORK=off GOFLAGS=-mod=mod
PAWL_RANDOM=${PAWL_RANDOM:-300}
export PAWL_RANDOM

fresh() {
	rm -rf "$copy/pawl"
	mkdir "$copy/pawl"
	(cd "$root" && tar -cf - go.mod go.sum state dag checkpoint pawltest dispatcher) | tar -xf - -C "$copy/pawl"
}

# graphs runs the random graphs in the copy, or the tests named, for as long as none fails. A
# mutant that hangs is found when it has taken much longer than the tests without any.
limit=15m
graphs() {
	(cd "$copy/pawl" && go test -count=1 -failfast -timeout "$limit" -run "${1:-^TestRandom}" ./dispatcher) >"$copy/out" 2>&1
}

fresh
(cd "$copy/pawl" && go vet ./dispatcher)
if [ $# -eq 0 ]; then
	began=$(date +%s) limit=60m
	if ! graphs; then
		tail -n 40 "$copy/out"
		echo "the tests fail without a mutant" >&2
		exit 1
	fi
	limit=$((4 * ($(date +%s) - began) + 120))s
fi

lived=0
for patch in "$here"/mutants/${1:-*}.patch; do
	name=$(basename "$patch" .patch)
	fresh
	(cd "$copy/pawl" && git apply "$patch")
	(cd "$copy/pawl" && go vet ./dispatcher) # a mutant that doesn't compile proves nothing
	if graphs "$(sed -n 's/^tests: //p' "$patch")"; then
		lived=$((lived + 1))
		verdict="LIVES"
	else
		verdict="found by $(sed -n 's/^ *--- FAIL: \(Test[^ /]*\).*/\1/p; s/^\(panic: .*\)/a \1/p' "$copy/out" | sort -u | head -n 1)"
	fi
	printf '%-24s %s\n\t%s\n' "$name" "$(head -n 1 "$patch")" "$verdict"
done
[ "$lived" -eq 0 ]
