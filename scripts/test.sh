#!/usr/bin/env bash
# Runs every check of the repository and closes with one line of counts. A failed step prints
# its log and the others still run. `make test` installs what this needs first.
#
#   FUZZ_ITERATIONS=N   inputs per fuzz target (default 20000)
set -euo pipefail
. "$(dirname "$0")/env.sh"

LOGS=target/test
FUZZ_ITERATIONS=${FUZZ_ITERATIONS:-20000}
# Lines that a failed step shows of its log.
SHOWN_LINES=200
# The oldest node whose test runner knows the options that web/test/run.sh gives.
NODE_MAJOR_MIN=18
# Tests append `name: reason` here when this machine lacks something that they need.
export WHIT_SKIP_LOG=$ROOT/$LOGS/skipped

mkdir -p "$LOGS"
rm -f "$LOGS"/*.log "$WHIT_SKIP_LOG"
: >"$WHIT_SKIP_LOG"

passed=0
failed=0
failed_steps=()
# Tests that failed beside others and passed alone.
alone=()

skip() {
    printf '%s\n' "$1" >>"$WHIT_SKIP_LOG"
    printf '%-28s skipped: %s\n' "${1%%: *}" "${1#*: }"
}

# Counts the tests of cargo's and node's test runners; a step without one is one check.
count() {
    local log=$1 status=$2 sums
    sums=$(awk '/^test result: / { p += $4; f += $6; n = 1 }
        $2 == "pass" && NF == 3 { p += $3; n = 1 }
        $2 == "fail" && NF == 3 { f += $3; n = 1 }
        END { if (n) print p + 0, f + 0 }' "$log")
    if [ -z "$sums" ]; then
        [ "$status" = 0 ] && sums="1 0" || sums="0 1"
    elif [ "$status" != 0 ] && [ "${sums#* }" = 0 ]; then
        sums="${sums% *} 1"
    fi
    passed=$((passed + ${sums% *}))
    failed=$((failed + ${sums#* }))
    [ "$status" = 0 ] && printf 'ok' || printf 'FAILED'
    [ "${sums% *}" -gt 1 ] && printf ', %s passed' "${sums% *}"
    return 0
}

# The tests that failed by a log of cargo's, each with the options that name its program:
# "-p whit --test whole_program switches::delays".
failed_tests() {
    awk '/^failures:$/ { n = 0; listed = 1; next }
        /^test result: / { listed = 0 }
        listed && /^    [^ ]+$/ { names[n++] = $1 }
        /^error: test failed, to rerun pass `/ {
            split($0, part, "`")
            for (i = 0; i < n; i++) print part[2], names[i]
            n = 0
        }' "$1"
}

# run_again LOG: each test that failed there once more, alone; fails unless all of them pass.
run_again() {
    local tests count programs options name all=()
    tests=$(failed_tests "$1")
    count=$(awk '/^test result: / { n += $6 } END { print n + 0 }' "$1")
    programs=$(grep -c '^error: test failed, to rerun pass `' "$1")
    # What did not build, or was killed, names no test.
    [ -n "$tests" ] && [ "$(wc -l <<<"$tests")" = "$count" ] &&
        [ "$(sed 's/ [^ ]*$//' <<<"$tests" | sort -u | wc -l)" = "$programs" ] || return 1
    while read -r options; do
        name=${options##* }
        # shellcheck disable=SC2086 # several words
        cargo test ${options% *} --locked --quiet -- --exact "$name" >>"${1%.log}-again.log" 2>&1 </dev/null ||
            return 1
        all+=("$name")
    done <<<"$tests"
    alone+=("${all[@]}")
    # As what they did in the end.
    passed=$((passed + count))
    failed=$((failed - count))
}

# step NAME COMMAND...
# With AGAIN=1, tests that fail are run again, alone, before they are taken to have failed.
step() {
    local name=$1 log status=0 start=$SECONDS remark=
    shift
    log=$LOGS/$(printf '%s' "$name" | tr ' /' '--').log
    printf '%-28s ' "$name"
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ "$status" != 0 ] && [ "${AGAIN:-0}" = 1 ] && run_again "$log"; then
        status=0
        remark=", ${#alone[@]} only alone"
    fi
    # Not in a subshell: it adds to the counts.
    count "$log" "$status"
    printf '%s' "$remark"
    printf ' (%s s)\n' $((SECONDS - start))
    if [ "$status" != 0 ]; then
        failed_steps+=("$name")
        printf -- '--- %s, exit code %s: %s\n' "$log" "$status" "$*"
        tail -n "$SHOWN_LINES" "$log"
        printf -- '---\n'
    fi
}

documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet; }

# Every target in the folder, whether or not it is declared: one that is not fails here.
fuzz_smoke_runs() {
    local source
    step "fuzz lints" cargo clippy --quiet --manifest-path fuzz/Cargo.toml --all-targets -- -D warnings
    step "fuzz driver" cargo test --quiet --manifest-path fuzz/Cargo.toml --lib
    for source in fuzz/fuzz_targets/*.rs; do
        [ -e "$source" ] || continue
        step "fuzz $(basename "$source" .rs)" cargo run --quiet --manifest-path fuzz/Cargo.toml \
            --bin "$(basename "$source" .rs)" -- --iterations "$FUZZ_ITERATIONS"
    done
}

# run.sh runs the page's modules under node and the page in Chromium, and leaves the latter out
# where there is no Chromium.
page_tests() {
    local node_major
    if [ ! -x web/test/run.sh ]; then
        return
    elif ! have node || ! have npm; then
        skip "page: there is no node or no npm here"
        return
    fi
    node_major=$(node -p 'process.versions.node.split(".")[0]')
    if [ "$node_major" -lt "$NODE_MAJOR_MIN" ]; then
        skip "page: node is version $node_major, the tests need $NODE_MAJOR_MIN"
        return
    fi
    if ! have chromium && ! have chromium-browser && ! have google-chrome; then
        skip "page in a browser: there is no Chromium here"
    fi
    step "page" web/test/run.sh
}

# cargo-deny takes several minutes to build, so it is used where it is and not installed.
licences() {
    if ! have cargo-deny; then
        skip "licences: cargo-deny is not installed (cargo install --locked cargo-deny)"
        return
    fi
    step "licences and sources" cargo deny check licenses bans sources
    # The list of known vulnerabilities has to come over the network.
    if cargo deny fetch db >"$LOGS/advisory-fetch.log" 2>&1 </dev/null; then
        step "advisories" cargo deny check advisories
    else
        skip "advisories: the advisory database cannot be fetched from here ($LOGS/advisory-fetch.log)"
    fi
}

step "format" cargo fmt --all --check
step "format of fuzz" cargo fmt --manifest-path fuzz/Cargo.toml --check
step "format of the guest" rustfmt --check --edition 2024 guest/main.rs
step "workloads" make -C bench/workloads
step "lints" cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
step "whit-pmu without std" cargo build -p whit-pmu --no-default-features --locked --quiet
step "whit-vpmu alone" cargo build -p whit-vpmu --locked --quiet
step "whit-pmu with alloc" cargo build -p whit-pmu --features alloc --locked --quiet
step "unit and property tests" cargo test --workspace --lib --bins --locked --quiet --no-fail-fast
step "documentation tests" cargo test --workspace --doc --locked --quiet --no-fail-fast
# They measure the running machine, on which other tests and other machines run as well: there are moments
# in which one gets no CPU at all. What is wrong in whit is wrong alone, too.
AGAIN=1 step "whole-program tests" cargo test --workspace --test '*' --locked --quiet --no-fail-fast
step "documentation" documentation
fuzz_smoke_runs
page_tests
licences

if [ ${#alone[@]} != 0 ]; then
    say "failed beside others and passed alone ($LOGS/whole-program-tests.log):"
    printf '  %s\n' "${alone[@]}"
fi
skipped=$(wc -l <"$WHIT_SKIP_LOG")
if [ "$skipped" != 0 ]; then
    say "skipped here:"
    sort "$WHIT_SKIP_LOG" | sed 's/^/  /'
fi
[ ${#failed_steps[@]} = 0 ] || printf 'failed: %s\n' "${failed_steps[@]}"
say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
