#!/usr/bin/env bash
# Runs every check of the repository and closes with one line of counts. A failed step prints
# its log and the others still run. `make test` installs what this needs first.
#
#   FUZZ_RUNS=N   inputs per fuzz target (default 20000), with a new seed each time, which its log names
set -euo pipefail
# Under nohup a hang-up is ignored, and tests send it. Programs inherit that, and no shell takes it back.
if [ -z "${WHIT_TEST_SIGNALS:-}" ] && env --default-signal true 2>/dev/null; then
    WHIT_TEST_SIGNALS=default exec env --default-signal "$0" "$@"
fi
. "$(dirname "$0")/env.sh"

LOGS=target/test
# Lines that a failed step shows of its log.
SHOWN_LINES=200
SHOWN_COLUMNS=600
# Programs of fuzz targets search until they are stopped.
EVERYTHING=(--workspace --exclude whit-fuzz)
# Crates have their lints where they are compiled.
export RUSTC_WORKSPACE_WRAPPER=$ROOT/scripts/lint-rustc.sh WHIT_LINT_FOLDER=$ROOT/target/lints
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
begun=()

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

# The output of failed tests, which may stand far above the end of a log. Reads all of it: a closed pipe would end the run.
failures() {
    sed -n '/^---- .* stdout ----$/,/^stack backtrace:$/p' "$1" | cut -c "1-$SHOWN_COLUMNS" | awk -v n="$SHOWN_LINES" 'NR <= n'
}

log_of() { printf '%s/%s.log' "$LOGS" "$(printf '%s' "$1" | tr ' /' '--')"; }

# step NAME COMMAND...
step() {
    local status=0 start=$SECONDS
    printf '%-28s ' "$1"
    "${@:2}" >"$(log_of "$1")" 2>&1 </dev/null || status=$?
    ended "$status" $((SECONDS - start)) "$@"
}

# Begins a step that leaves CPUs idle and builds nothing. Others run until `await` prints its line.
# begin NAME COMMAND...
begin() {
    begun=("$@")
    begun_at=$SECONDS
    "${@:2}" >"$(log_of "$1")" 2>&1 </dev/null &
    begun_pid=$!
}

await() {
    local status=0
    [ ${#begun[@]} -gt 0 ] || return 0
    printf '%-28s ' "${begun[0]}"
    wait "$begun_pid" || status=$?
    ended "$status" $((SECONDS - begun_at)) "${begun[@]}"
    begun=()
}

# Not in a subshell: it adds to the counts.
# ended STATUS SECONDS NAME COMMAND...
ended() {
    local status=$1 log
    log=$(log_of "$3")
    count "$log" "$status"
    printf ' (%s s)\n' "$2"
    if [ "$status" != 0 ]; then
        failed_steps+=("$3")
        printf -- '--- %s, exit code %s: %s\n' "$log" "$status" "${*:4}"
        failures "$log"
        tail -n "$SHOWN_LINES" "$log"
        printf -- '---\n'
    fi
}

# All at once: another choice of packages or targets has other features, and builds their crates again. Tests run
# programs of other packages, and `cargo test` builds only those of the tested one.
build() { cargo build "${EVERYTHING[@]}" --lib --bins --examples --tests --locked --quiet; }

# cargo prints the warnings of what it does not compile again, too.
lints() {
    build || return
    [ ! -s "$(log_of "lints")" ] || return 1
}

documentation() {
    RUSTDOC=$ROOT/scripts/rustdoc.sh WHIT_DOC_FOLDER=$ROOT/target/doc \
        cargo test "${EVERYTHING[@]}" --doc --locked --quiet --no-fail-fast
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
    # Built with the programs: two builds wait for each other.
    begin "page" env WHIT_TEST_EXAMPLES="$ROOT/target/debug/examples" web/test/run.sh
}

# As a user installs whit, and removes it, below a root of its own.
installation() {
    local root=$ROOT/target/install/root name
    rm -rf "$root"
    BUILT=$ROOT/target/debug PREFIX=/opt/whit DESTDIR=$root scripts/install.sh install || return
    for name in whit whit-watch whit-serve whit-query whit-terminal whit-debuginfod; do
        "$root/opt/whit/bin/$name" --version || return
    done
    # Subcommands that are programs of their own are found where they are installed.
    for name in watch serve query; do
        "$root/opt/whit/bin/whit" "$name" --help >/dev/null || return
    done
    for name in man/man1/whit-record.1.gz bash-completion/completions/whit zsh/site-functions/_whit doc/whit/LICENSE-MIT; do
        [ -s "$root/opt/whit/share/$name" ] || { echo "there is no share/$name"; return 1; }
    done
    grep -q '^ExecStart=/opt/whit/bin/whit watch' "$root/opt/whit/lib/systemd/system/whit-watch.service" || return
    PREFIX=/opt/whit DESTDIR=$root scripts/install.sh uninstall || return
    [ -z "$(find "$root" -type f)" ] || { find "$root" -type f; return 1; }
}

# mdbook takes minutes to build too. The tests run the book's commands and check its links without it.
book() {
    if ! have mdbook; then
        skip "book: mdbook is not installed (cargo install --locked mdbook)"
        return
    fi
    step "book" mdbook build docs/book
}

# Debian has the compiler, rustup may; neither is installed for this.
oldest_rust() {
    local status=0
    scripts/oldest-rust.sh >"$LOGS/oldest-rust.log" 2>&1 </dev/null || status=$?
    if [ "$status" = 3 ]; then
        skip "oldest Rust: $(sed -n 's/^note: //p' "$LOGS/oldest-rust.log" | tail -n 1)"
    else
        step "oldest Rust" scripts/oldest-rust.sh
    fi
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

# Fresh machines do not have it mounted, and without it no tracepoint is tested.
mount_tracefs() {
    local point=/sys/kernel/tracing
    [ ! -d "$point/events" ] || return 0
    [ "$(id -u)" = 0 ] && mount -t tracefs nodev "$point" 2>"$LOGS/mount-tracefs.log" && return
    warn "tracefs is not mounted and cannot be from here: mount -t tracefs nodev $point"
}

mount_tracefs
step "format" cargo fmt --all --check
step "format of the guest" rustfmt --check --edition 2024 guest/main.rs guest/kernel.rs
step "judgement of prose" scripts/prose.pl --self-test
step "prose" scripts/prose.pl
step "judgement of import circles" scripts/circles.pl --self-test
step "import circles" scripts/circles.pl crates/*/*
step "judgement of sleeps" scripts/sleeps.pl --self-test
step "sleeps in tests" scripts/sleeps.pl
step "workloads" make -C bench/workloads
step "whit-pmu without std" cargo build -p whit-pmu --no-default-features --locked --quiet
step "whit-vpmu alone" cargo build -p whit-vpmu --locked --quiet
oldest_rust
step "whit-pmu with alloc" cargo build -p whit-pmu --features alloc --locked --quiet
step "programs and tests" build
step "lints" lints
# rustdoc uses one CPU.
begin "documentation" documentation
step "unit and property tests" cargo test "${EVERYTHING[@]}" --lib --bins --locked --quiet --no-fail-fast
await
step "installation" installation
# Two at a time for each CPU: tests wait for half of their time.
step "whole-program tests" cargo test "${EVERYTHING[@]}" --test '*' --locked --quiet --no-fail-fast -- --skip measured:: "--test-threads=$((2 * $(nproc)))"
# Tests that measure the running machine judge several repetitions by their median (whit_testing::measure), one
# test at a time: what another one does would be measured as well.
step "measured tests" cargo test "${EVERYTHING[@]}" --test '*' --locked --quiet --no-fail-fast -- measured:: --test-threads=1
page_tests
# Every target in the folder: one that is not declared fails to build.
step "fuzz targets" scripts/fuzz.sh check
step "fuzz runs" scripts/fuzz.sh smoke
await
book
licences

skipped=$(wc -l <"$WHIT_SKIP_LOG")
if [ "$skipped" != 0 ]; then
    say "skipped here:"
    sort "$WHIT_SKIP_LOG" | sed 's/^/  /'
fi
# A test that does not run where it could is a test that cannot fail.
step "judgement of skips" scripts/skips.sh --self-test
step "no unexpected skip" scripts/skips.sh "$WHIT_SKIP_LOG"
[ ${#failed_steps[@]} = 0 ] || printf 'failed: %s\n' "${failed_steps[@]}"
say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
