#!/bin/sh
# Records RUNS runs of two commands in turn, and compares them: samples with a page, waits, locks.
# Ends with 3 where the second one is worse by more than LIMIT, with 0 where nothing shows that, else with 1.
#
#   RUNS=5 LIMIT=2% PAGE=diff.html compare-builds.sh './old/server --bench' './new/server --bench'
set -eu

before=$1
after=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# In turn, so that a slow minute of the machine meets both.
for run in $(seq "${RUNS:-5}"); do
    whit record -q --engine=bpf --wakeups -F 999 -o "$folder/before-$run.data" -- sh -c "exec $before"
    whit record -q --engine=bpf --wakeups -F 999 -o "$folder/after-$run.data" -- sh -c "exec $after"
done

worst=0
compare() {
    echo "== whit diff $*"
    code=0
    whit diff "$@" --fail-above "${LIMIT:-2%}" "$folder"/before-*.data -- "$folder"/after-*.data || code=$?
    case $code in
    0) ;;
    3) worst=3 ;;
    *) exit 1 ;;
    esac
}
compare --html "${PAGE:-diff.html}"
compare --waits
compare --locks
exit $worst
