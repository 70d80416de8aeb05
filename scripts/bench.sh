#!/usr/bin/env bash
# Compares `whit report`, `whit record` and others with their peers: see docs/benchmarks.md.
#
#   SIZES=50M,500M,2G   sizes of the recordings that readers are compared on; none: not at all
#   TABLES=loss,futex   tables of recorders; all by default, none: not at all
#   MORE=export,query,cgroup,switches,stat,vpmu   other comparisons; all by default, none: not at all; agents takes half
#                       an hour, and runs where it is named
#   ROUNDS=N            runs of each (default 5)
set -euo pipefail
. "$(dirname "$0")/env.sh"

SIZES=${SIZES:-50M,500M,2G}
ROUNDS=${ROUNDS:-5}
OUT=target/bench

# DuckDB takes part where one of the set-ups has installed it.
for python in "$ROOT"/target/{setup/consumers,cluster}/python/bin/python; do
    if "$python" -c 'import duckdb' 2>/dev/null; then export PYTHON=$python; fi
done

say "building whit (release)"
cargo_build --release --locked -p whit -p whit-query -p whit-serve -p whit-terminal -p whit-bench
make -s -C bench/workloads deep matrix pingpong requests sockets yield spawn token
mkdir -p "$OUT"
status=0
if [ "$SIZES" != none ]; then
    target/release/whit bench report --sizes "$SIZES" --rounds "$ROUNDS" \
        --workload target/workloads/deep --cache "$OUT" --json "$OUT/report.json" || status=$?
fi
if [ "${TABLES:-}" != none ]; then
    target/release/whit bench record ${TABLES:+--tables "$TABLES"} --rounds "$ROUNDS" \
        --workloads target/workloads --dir "$OUT" --json "$OUT/record.json" || status=$?
fi
MORE=${MORE:-export,query,cgroup,switches,requests,stat,vpmu}
for comparison in ${MORE//,/ }; do
    [ "$comparison" != none ] || continue
    [ "$comparison" != agents ] || make -s -C bench/workloads deep-go deep-py
    target/release/whit bench "$comparison" --json "$OUT/$comparison.json" || status=$?
done
exit "$status"
