#!/usr/bin/env bash
# Makes the pictures and the terminal output of the README from a real run: docs/images/page.png, docs/images/waits.png,
# and the two blocks of output. Needs chromium, node and npm.
set -euo pipefail
. "$(dirname "$0")/env.sh"

OUT=$ROOT/target/pictures
have node && have npm || fail "node or npm is missing"
mkdir -p "$OUT" docs/images

# The recording names the program by its path: it is the one of an installed whit, in a file system of our own.
if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this mounts a folder of its own over /usr/local/bin, which needs root"
    cargo_build --profile dist --locked -p whit
    quietly "$OUT/workload.log" make -C bench/workloads deep mutexes
    (cd web/test && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 quietly "$OUT/npm.log" npm ci)
    exec unshare --mount --propagation private "$0" --inside
fi
mount -t tmpfs none /usr/local/bin
mount -t tmpfs none /mnt
cp "$ROOT/target/dist/whit" target/workloads/deep target/workloads/mutexes /usr/local/bin/
cd /mnt

whit record -F 5000 -- deep --seconds 2 2>record.txt >/dev/null
report=(report --no-pager --no-children -g none --percent-limit 3)
whit "${report[@]}" -q >report.txt
# whit profiles itself: code of its own, inlined code, libraries and the kernel.
whit record -F 9999 --call-graph dwarf -o page.data -- whit report --stdio >/dev/null 2>&1
whit report -i page.data --html page.html >/dev/null
whit record --engine=bpf --wakeups -F 2000 -o waits.data -- mutexes --rounds 200 >/dev/null 2>&1
whit switches -i waits.data --html waits.html >/dev/null

# picture PAGE FILE HEIGHT SCHEME [SELECTOR]
picture() {
    quietly "$OUT/picture.log" node "$ROOT/web/test/picture.js" "file:///mnt/$1" "$ROOT/docs/images/$2" 1280 "${@:3}"
}
# A range of the time in the middle, and a wait for a lock with the wake-up that ended it.
picture "page.html#range=60000000-160000000" page.png 700 light
picture "waits.html#range=20000000-45000000" waits.png 820 dark '#longest-waits .list-row:has-text("take_slow") >> nth=3'

# The blocks of output in the README: between a line that begins with "$ " and the next such line or the end.
perl -0pi -e '
    sub slurp { local $/; open my $f, "<", $_[0] or die "$_[0]: $!"; my $t = <$f>; $t =~ s/[ \t]+$//mg; $t =~ s/\s+\z//; $t }
    my ($record, $report) = map { slurp($_) } "record.txt", "report.txt";
    s/(\$ whit record -F 5000[^\n]*\n).*?(\n\n\$ )/$1$record$2/s or die "no recording in the README";
    s/(\$ whit report -q[^\n]*\n).*?(\n```)/$1$report$2/s or die "no report in the README";
' "$ROOT/README.md"
