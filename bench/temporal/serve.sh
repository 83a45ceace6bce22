#!/bin/sh
# A Temporal server over PostgreSQL, for the row rivals/durable-step/temporal: with its own
# development settings but for one. It makes the databases temporal and temporal_visibility if they
# are not there, and serves on 127.0.0.1:7233 until it is stopped.
#
#	PGHOST=127.0.0.1 PGPORT=5432 PGUSER=postgres PGPASSWORD=… sh serve.sh DIR
#
# DIR keeps its programs and its settings.
set -eu
version=v1.32.1
dir=$(mkdir -p "${1:?usage: serve.sh DIR}" && cd "$1" && pwd)
host=${PGHOST:-127.0.0.1} port=${PGPORT:-5432} user=${PGUSER:-postgres} password=${PGPASSWORD:-none}

export GOWORK=off GOFLAGS= GOBIN="$dir/bin"
go install "go.temporal.io/server/cmd/server@$version" "go.temporal.io/server/cmd/tools/sql@$version"
module="$(go env GOMODCACHE)/go.temporal.io/server@$version"

# A shard looks for work 20 times a second at most unless it is told otherwise, so that one run of
# 150 steps would take 44 ms for each instead of 18.
mkdir -p "$dir/config/dynamicconfig"
printf 'history.transferProcessorMaxPollRPS:\n  - value: 10000\n' >"$dir/config/dynamicconfig/development-sql.yaml"
sed -e "s/127.0.0.1:5432/$host:$port/" -e "s/user: \"temporal\"/user: \"$user\"/" \
	-e "s/password: \"temporal\"/password: \"$password\"/" -e 's/level: info/level: error/' \
	"$module/config/development-postgres12.yaml" >"$dir/config/bench.yaml"

sql() {
	"$dir/bin/sql" --plugin postgres12 --ep "$host" --port "$port" --user "$user" --password "$password" --db "$@"
}
for database in temporal temporal_visibility; do
	sql "$database" create
	sql "$database" setup-schema --version 0.0 || true # it is there
	sql "$database" update-schema --schema-dir "$module/schema/postgresql/v12/${database#temporal_}/versioned"
done
cd "$dir"
exec bin/server --root . --config config --env bench --allow-no-auth start
