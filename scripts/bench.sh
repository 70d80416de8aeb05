#!/usr/bin/env bash
# Compares `whit report` with its peers on the same recordings: see docs/benchmarks.md.
#
#   SIZES=50M,500M,2G   sizes of the recordings
set -euo pipefail
. "$(dirname "$0")/env.sh"

say "building whit (release)"
cargo_build --release --locked -p whit
make -s -C bench/workloads deep
mkdir -p target/bench
exec target/release/whit bench report --sizes "${SIZES:-50M,500M,2G}" \
    --workload target/workloads/deep --cache target/bench --json target/bench/report.json
