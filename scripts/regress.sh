#!/usr/bin/env bash
# Compares whit with an earlier revision of itself: builds both, runs the main jobs in turn, and prints the verdicts.
#
#   scripts/regress.sh BASE        # RUNS=5, LIMIT=5%, PROFILE=release; HEAD_REV=HEAD is the other side
#
# A job that one of the revisions does not have is left out, by name. Ends with 3 where a job became worse by more than
# LIMIT. Builds stay in target/regress, by revision.
set -euo pipefail
. "$(dirname "$0")/env.sh"

BASE=${1:?name the revision to compare with: make regress BASE=v1.0}
RUNS=${RUNS:-5}
PROFILE=${PROFILE:-release}
OUT=$PWD/target/regress
JOBS="record report switches why export"
EVENTS=task-clock,page-faults,instructions:u

# A tree of its own, so that the working tree is as it was.
build() {
    local revision=$1 tree=$OUT/$1
    [ -x "$tree/bin/whit" ] && return
    say "building $revision ($PROFILE)"
    rm -rf "$tree/source"
    git worktree prune
    git worktree add --quiet --detach "$tree/source" "$revision"
    (cd "$tree/source" && CARGO_TARGET_DIR=$tree/target cargo build --quiet --profile "$PROFILE" --locked -p whit)
    local folder=$PROFILE
    [ "$PROFILE" = dev ] && folder=debug
    mkdir -p "$tree/bin"
    cp "$tree/target/$folder/whit" "$tree/bin/whit"
    git worktree remove --force "$tree/source"
}

# One job of a build; all of its output goes nowhere.
job() {
    local whit=$1 name=$2
    case $name in
    record) echo "$whit record -q --engine=ring -F 999 -g -o $work/job.data -- $deep --iterations 40000" ;;
    report) echo "$whit report --stdio -i $input" ;;
    switches) echo "$whit switches --stdio -i $waits" ;;
    why) echo "$whit why -i $waits" ;;
    export) echo "$whit export --format=firefox -f -o $work/job.json -i $input" ;;
    esac
}

# Leaves out the jobs that a build does not have: their names are wrong usage. A job that it has and that fails is none of
# these.
leave_out() {
    local revision=$1 whit=$2 name code kept=""
    for name in $JOBS; do
        code=0
        "$whit" "$name" --help >/dev/null 2>"$work/log" || code=$?
        case $code in
        0) kept="$kept $name" ;;
        2) warn "whit of $revision has no 'whit $name': that job is left out" ;;
        *) fail "'whit $name --help' of $revision ends with $code: $(cat "$work/log")" ;;
        esac
    done
    JOBS=$kept
    [ -n "$JOBS" ] || fail "whit of $revision has none of the jobs"
}

# The counts of one run, each event with the name of its job.
count() {
    local side=$1 whit=$2 run=$3 name
    for name in $JOBS; do
        # shellcheck disable=SC2046
        "$after/bin/whit" stat -j -e "$EVENTS" -o "$work/counts" -- $(job "$whit" "$name") \
            >/dev/null 2>"$work/log" || fail "$name of $side fails: $(cat "$work/log")"
        sed "s/\"event\" : \"/&$name: /" "$work/counts" >>"$work/$side-$run.json"
    done
}

mkdir -p "$OUT"
base=$(git rev-parse --verify "$BASE^{commit}")
head=$(git rev-parse --verify "${HEAD_REV:-HEAD}^{commit}")
[ "$base" != "$head" ] || fail "$BASE is HEAD: nothing to compare"
build "$base"
build "$head"
before=$OUT/$base after=$OUT/$head
quietly "$OUT/workload.log" make -C bench/workloads deep

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
leave_out "$BASE" "$before/bin/whit"
leave_out "${HEAD_REV:-HEAD}" "$after/bin/whit"
deep=$PWD/target/workloads/deep
waits=$PWD/tests/recordings/waits/waits.data
input=$work/input.data
"$before/bin/whit" record -q --engine=ring -F 4999 -g -o "$input" -- "$deep" --seconds 2 >/dev/null ||
    fail "whit record of $BASE fails"

for run in $(seq "$RUNS"); do
    say "run $run of $RUNS"
    count before "$before/bin/whit" "$run"
    count after "$after/bin/whit" "$run"
done
describe() { git log -1 --format='%h %s' "$1"; }
say "before: $(describe "$base")"
say "after: $(describe "$head")"
cd "$work"
"$after/bin/whit" diff --stat --fail-above "${LIMIT:-5%}" before-*.json -- after-*.json
