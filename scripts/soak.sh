#!/usr/bin/env bash
# Records at the highest rate, everything on, for a long time; its memory must not grow.
#
#   MINUTES=10   how long
#
# The recording goes into a pipe that nobody keeps: what is tested is the recorder, not the disk.
set -euo pipefail
. "$(dirname "$0")/env.sh"

MINUTES=${MINUTES:-10}
# Memory is looked at this often; what a recorder needs it has after the first looks.
LOOK_SECONDS=5
WARM_UP_LOOKS=4
GROWTH_PERCENT_MAX=5

say "building whit (release)"
cargo_build --release --locked -p whit
make -s -C bench/workloads deep
seconds=$(awk -v m="$MINUTES" 'BEGIN { printf "%d", m * 60 }')
log=target/soak.log
target/release/whit record -F max --call-graph dwarf,16384 --switch-events -a \
    --threads --aio=4 -z --affinity=cpu -o - -- \
    target/workloads/deep --seconds "$seconds" --threads "$(nproc)" >/dev/null 2>"$log" &
recorder=$!
trap 'kill -INT "$recorder" 2>/dev/null || true' EXIT

# Memory of its own; pages of rings and of the program file do not count.
memory_kib() { awk '/^RssAnon:/ { print $2 }' "/proc/$recorder/status" 2>/dev/null; }

look=0 first=0 most=0
while sleep "$LOOK_SECONDS" && now=$(memory_kib) && [ -n "$now" ]; do
    look=$((look + 1))
    [ "$look" = "$WARM_UP_LOOKS" ] && first=$now
    [ "$now" -gt "$most" ] && most=$now
    say "$((look * LOOK_SECONDS)) s: $now KiB"
done
trap - EXIT
wait "$recorder" || fail "whit ended with $? ($log): $(tail -n 3 "$log")"
tail -n 1 "$log"
[ "$first" -gt 0 ] || fail "the soak was over before memory could be compared: give more MINUTES"
say "memory: $first KiB after the start, $most KiB at most"
[ "$most" -le $((first + first * GROWTH_PERCENT_MAX / 100 + 256)) ] ||
    fail "memory has grown by more than $GROWTH_PERCENT_MAX %"
