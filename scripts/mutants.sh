#!/usr/bin/env bash
# Changes the code of a crate, one small change at a time, and counts the changes that the crate's own tests notice.
#
#   CRATE=whit-perfdata   whose code, and whose tests
#   SHARD=0/12            the sample: every twelfth mutant from the first on; without it all of them
#   FILES='a.rs b/*.rs'   only of these files (globs, from the root of the repository)
#   TESTS='--lib loss'    only these tests, as arguments of cargo test; without it all but those of the documentation
#   TIMEOUT=120           seconds after which a test hangs; longer than the slowest test on a busy machine
#   BASELINE=skip         the tests of the unchanged code are known to pass
#
# Works on a copy of the sources. Lists stay in target/mutants/CRATE/mutants.out: missed.txt has the survivors.
set -euo pipefail
. "$(dirname "$0")/env.sh"

CRATE=${CRATE:-}
[ -n "$CRATE" ] || fail "which crate? make mutants CRATE=whit-perfdata SHARD=0/12"
have cargo-mutants || fail "cargo-mutants is missing: cargo install --locked cargo-mutants"

options=(--package "$CRATE" --test-package "$CRATE" --jobs 1 --timeout "${TIMEOUT:-120}" --shuffle --colors never)
options+=(--baseline "${BASELINE:-run}" --output "target/mutants/$CRATE")
[ -z "${SHARD:-}" ] || options+=(--sharding round-robin --shard "$SHARD")
read -r -a files <<<"${FILES:-}"
read -r -a tests <<<"${TESTS:---lib --tests}"
for file in "${files[@]}"; do options+=(--file "$file"); done

# Without debug information a mutant is built in a fraction of the time. Dependencies are built once for all runs.
export CARGO_TARGET_DIR=$ROOT/target/mutants/build CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
mkdir -p "target/mutants/$CRATE"
status=0
nice -n 19 cargo mutants "${options[@]}" -- --locked "${tests[@]}" || status=$?
# 2: some survived. 3: some ran into the time limit. Everything else is a failure of the run.
[ "$status" = 0 ] || [ "$status" = 2 ] || [ "$status" = 3 ] || exit "$status"

lines() { wc -l <"target/mutants/$CRATE/mutants.out/$1.txt"; }
missed=$(lines missed) caught=$(($(lines caught) + $(lines timeout)))
[ $((caught + missed)) -gt 0 ] || fail "no mutant of this sample can be built"
sed 's/^/survived: /' "target/mutants/$CRATE/mutants.out/missed.txt"
sed 's/^/time limit: /' "target/mutants/$CRATE/mutants.out/timeout.txt"
say "$CRATE: $caught of $((caught + missed)) viable mutants caught, $((100 * caught / (caught + missed))) % ($(lines timeout) by the time limit)"
