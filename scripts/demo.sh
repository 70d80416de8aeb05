#!/usr/bin/env bash
# Builds whit, records a real program, prints the report and writes its page. Where the kernel
# refuses to record, says why and shows the recording that the repository ships.
set -euo pipefail
. "$(dirname "$0")/env.sh"

OUT=target/demo
WHIT=target/release/whit
# What a refusal by the kernel looks like; any other failure of whit record is a failure here.
REFUSED='perf_event_paranoid|[Pp]ermission|Operation not permitted|not supported|Function not implemented'

# Lines end at this width where there is no terminal, which has its own.
COLUMNS_ELSEWHERE=100
width=()
fit() { cat; }
if [ ! -t 1 ]; then
    width=(--width "$COLUMNS_ELSEWHERE")
    fit() { fold -s -w "$COLUMNS_ELSEWHERE"; }
fi

mkdir -p "$OUT"
start=$SECONDS
say "building whit (release; the first time takes a few minutes)"
cargo_build --release --locked -p whit
quietly "$OUT/workload.log" make -C bench/workloads deep

say ""
say "\$ whit record -F 5000 -- deep --seconds 2"
report=(-i "$OUT/demo.data")
if "$WHIT" record -F 5000 -o "$OUT/demo.data" -- \
    target/workloads/deep --seconds 2 2>"$OUT/record.log" | fit; then
    fit <"$OUT/record.log"
elif grep -qE "$REFUSED" "$OUT/record.log"; then
    fit <"$OUT/record.log"
    say ""
    say "\$ whit doctor"
    { "$WHIT" doctor || true; } | fit
    say ""
    say "This machine does not let whit record, for the reason above. Here is the recording that"
    say "comes with the repository instead."
    tests/recordings/demo/unpack.sh "$OUT/root"
    report=(--symfs "$OUT/root" -i tests/recordings/demo/demo.data)
else
    cat "$OUT/record.log" >&2
    fail "whit record failed ($OUT/record.log)"
fi

say ""
say "\$ whit report --stdio --no-children -g none --percent-limit 1"
"$WHIT" report --no-pager --stdio --no-children -g none --percent-limit 1 "${width[@]}" "${report[@]}"
"$WHIT" report --html "$OUT/demo.html" "${report[@]}" >/dev/null
[ -s "$OUT/demo.html" ] || fail "whit report wrote no page to $OUT/demo.html"

say ""
say "The page with the flame graph: $OUT/demo.html"
say "More:  target/release/whit report ${report[*]}"
say "       target/release/whit script ${report[*]} | less"
say "The interface of terminals, whit top, serve, query and watch: sudo make install"
say "$((SECONDS - start)) s"
