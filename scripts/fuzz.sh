#!/usr/bin/env bash
# Coverage-guided fuzzing of every target in fuzz/fuzz_targets, with libFuzzer and the installed compiler.
#
#   scripts/fuzz.sh check               builds the targets into the ordinary target folder, as the tests are optimized,
#                                       and looks for missing files of theirs
#   scripts/fuzz.sh smoke [TARGET]      a moment with a new seed (FUZZ_RUNS=N inputs, FUZZ_SEED=N repeats one); without
#                                       a target, all of them, as many at a time as there are CPUs
#   scripts/fuzz.sh campaign            MINUTES=10 for each of TARGETS (default: all)
#   scripts/fuzz.sh minimize            puts the smallest inputs of a campaign that reach all it reached into fuzz/corpus
#   scripts/fuzz.sh package             builds the targets, and puts each with its dictionary and corpus into OUT=FOLDER,
#                                       by the names that OSS-Fuzz demands of a build
#
# An input that makes a target panic stays in fuzz/artifacts/TARGET; `target/debug/TARGET FILE` repeats it.
set -euo pipefail
. "$(dirname "$0")/env.sh"

MINUTES=${MINUTES:-10}
FUZZ_RUNS=${FUZZ_RUNS:-20000}
# Longest moment, where inputs are slow.
SMOKE_SECONDS_MAX=20
# An input that takes longer is a finding. Inputs take milliseconds; a busy machine may give no CPU for seconds.
INPUT_SECONDS_MAX=60
# Longest inputs that a campaign makes, and longest of those that are committed.
INPUT_BYTES_MAX=16384
COMMITTED_BYTES_MAX=1024
CORPUS=target/fuzz-corpus

targets() {
    local source
    for source in fuzz/fuzz_targets/*.rs; do basename "$source" .rs; done
}

export RUSTC_WORKSPACE_WRAPPER=$ROOT/scripts/fuzz-rustc.sh

# All features of the workspace, as the tests have them, so that dependencies are built once. The test brings the
# features of what only tests depend on.
build() {
    local bins=() target
    for target in $(targets); do bins+=(--bin "$target"); done
    cargo build --workspace --locked --quiet "${bins[@]}" --test folder "$@"
}

# A campaign makes up for the time that this takes to build.
build_optimized() {
    build --config profile.dev.opt-level=2 --config profile.dev.package.whit-profile.opt-level=2
}

check() { build && cargo test --workspace --locked --quiet --test folder; }

# run TARGET OPTIONS... CORPUS...: with what every run has.
run() {
    local target=$1
    shift
    mkdir -p "fuzz/artifacts/$target"
    "target/debug/$target" -dict="fuzz/dictionaries/$target.dict" -artifact_prefix="fuzz/artifacts/$target/" \
        -timeout=$INPUT_SECONDS_MAX -rss_limit_mb=4096 -print_final_stats=1 "$@"
}

# The same seed and the same corpus give the same inputs; what it finds is thrown away. In a moment the weights of
# -entropic pay for nothing, and they take 40 % of the CPU time of the target `profile`.
smoke() {
    local target=$1 seed=${FUZZ_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
    [ "$seed" != 0 ] || seed=1
    say "FUZZ_SEED=$seed scripts/fuzz.sh smoke $target"
    rm -rf "target/fuzz-smoke/$target"
    mkdir -p "target/fuzz-smoke/$target"
    run "$target" -seed="$seed" -runs="$FUZZ_RUNS" -max_total_time=$SMOKE_SECONDS_MAX -entropic=0 \
        "target/fuzz-smoke/$target" "fuzz/corpus/$target"
}

# The logs of targets that fail, and a line for each that does not.
smoke_all() {
    mkdir -p target/fuzz-log
    # shellcheck disable=SC2016
    targets | xargs -P "$(nproc)" -I{} bash -c '
        log=target/fuzz-log/{}.log
        if scripts/fuzz.sh smoke {} >$log 2>&1; then echo "{} ok"; else echo "{} FAILED: $(cat $log)"; exit 1; fi'
}

campaign() {
    local target failed=0
    for target in ${TARGETS:-$(targets)}; do
        mkdir -p "$CORPUS/$target" target/fuzz-log
        printf '%-16s ' "$target"
        if run "$target" -max_total_time=$((MINUTES * 60)) -max_len=$INPUT_BYTES_MAX \
            "$CORPUS/$target" "fuzz/corpus/$target" >"target/fuzz-log/$target.log" 2>&1; then
            summary "target/fuzz-log/$target.log"
        else
            failed=1
            say "FAILED: target/fuzz-log/$target.log"
            tail -n 40 "target/fuzz-log/$target.log"
        fi
    done
    return $failed
}

# Edges after the corpus was read, and at the end.
summary() {
    awk '/ INITED / { for (i = 1; i < NF; i++) if ($i == "cov:") first = $(i + 1) }
        / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") last = $(i + 1) }
        /number_of_executed_units/ { runs = $2 }
        END { printf "%d executions, %d edges of the corpus, %d found\n", runs, first, last }' "$1"
}

# Files whose names begin with "seed-" were made by hand and stay. Of the others, few that reach as much as all do.
minimize() {
    local target folder seed
    for target in ${TARGETS:-$(targets)}; do
        rm -rf target/fuzz-small target/fuzz-minimal
        mkdir -p target/fuzz-small target/fuzz-minimal "$CORPUS/$target"
        # Names are hashes of the content: one that is there twice is the same.
        for folder in "fuzz/corpus/$target" "$CORPUS/$target"; do
            find "$folder" -type f ! -name 'seed-*' -size -$((COMMITTED_BYTES_MAX + 1))c \
                -exec cp -t target/fuzz-small {} +
        done
        cp "fuzz/corpus/$target"/seed-* target/fuzz-small/
        run "$target" -set_cover_merge=1 target/fuzz-minimal target/fuzz-small >target/fuzz-merge.log 2>&1
        # The same bytes under the name of their hash.
        for seed in "fuzz/corpus/$target"/seed-*; do rm -f "target/fuzz-minimal/$(sha1sum <"$seed" | cut -d ' ' -f 1)"; done
        find "fuzz/corpus/$target" -type f ! -name 'seed-*' -delete
        find target/fuzz-minimal -type f -exec cp -t "fuzz/corpus/$target" {} +
        printf '%-16s %s files, %s\n' "$target" "$(find "fuzz/corpus/$target" -type f | wc -l)" \
            "$(du -sh --apparent-size "fuzz/corpus/$target" | cut -f 1)"
    done
}

package() {
    local target
    have zip || fail "zip is missing: apt-get install zip"
    mkdir -p "$OUT"
    OUT=$(cd "$OUT" && pwd)
    for target in $(targets); do
        cp "target/debug/$target" "fuzz/dictionaries/$target.dict" "$OUT/"
        rm -f "$OUT/${target}_seed_corpus.zip"
        (cd "fuzz/corpus/$target" && zip -q -r -X "$OUT/${target}_seed_corpus.zip" .)
    done
}

case ${1:-} in
    check) check ;;
    package)
        [ -n "${OUT:-}" ] || fail "OUT= names no folder for the targets"
        build_optimized
        package
        ;;
    smoke) if [ -n "${2:-}" ]; then smoke "$2"; else smoke_all; fi ;;
    campaign)
        build_optimized
        campaign
        ;;
    minimize)
        build_optimized
        minimize
        ;;
    *) fail "usage: scripts/fuzz.sh check | smoke [TARGET] | campaign | minimize | package" ;;
esac
