#!/usr/bin/env bash
# Makes the pictures and the terminal output of the README from a real run: docs/images/page.png, docs/images/report.png,
# and the two blocks of output. Needs chromium.
set -euo pipefail
. "$(dirname "$0")/env.sh"

OUT=$ROOT/target/pictures
WIDTH=1280
# Of the terminal in the picture.
COLUMNS=140
for chromium in chromium chromium-browser google-chrome; do have "$chromium" && break; done
have "$chromium" || fail "a browser is missing: chromium"
mkdir -p "$OUT" docs/images

# The recording names the program by its path: it is the one of an installed whit, in a file system of our own.
if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this mounts a folder of its own over /usr/local/bin, which needs root"
    cargo_build --profile dist --locked -p whit
    quietly "$OUT/workload.log" make -C bench/workloads deep
    exec unshare --mount --propagation private "$0" --inside
fi
mount -t tmpfs none /usr/local/bin
mount -t tmpfs none /mnt
cp "$ROOT/target/dist/whit" target/workloads/deep /usr/local/bin/
cd /mnt

whit record -F 5000 --call-graph dwarf -- deep --seconds 2 2>record.txt >/dev/null
report=(report --no-pager --no-children -g none --percent-limit 3)
whit "${report[@]}" -q >report.txt
whit "${report[@]}" --color=always >report.ansi
# whit profiles itself: code of its own, inlined code, libraries and the kernel.
whit record -F 9999 --call-graph dwarf -o page.data -- whit report --stdio >/dev/null 2>&1
whit report -i page.data --html page.html >/dev/null

# shoot URL FILE HEIGHT
shoot() {
    quietly "$OUT/chromium.log" "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --force-device-scale-factor=1 --window-size="$WIDTH,$3" --virtual-time-budget=5000 --screenshot="$2" "$1"
}

# Colours of a terminal as HTML: whit prints red, green and no other ones. Long remarks are wrapped, rows are cut.
{
    printf '<meta charset="utf-8"><body style="margin:0;background:#1d1f21"><pre style="margin:0;padding:16px;'
    printf 'color:#c5c8c6;font:14px/1.35 DejaVu Sans Mono,monospace;white-space:pre">'
    # The shell's prompt is part of the picture.
    printf '$ whit report --no-children -g none --percent-limit 3\n'
    while IFS= read -r line; do
        case $line in
            '# Ledger'*) printf '%s\n' "$line" | fold -s -w "$COLUMNS" ;;
            *) printf '%s\n' "$line" | cut -c "1-$((COLUMNS + 10))" ;;
        esac
    done <report.ansi | sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' \
        -e 's/\x1b\[31m/<span style="color:#e06c75">/g; s/\x1b\[32m/<span style="color:#98c379">/g; s/\x1b\[0m/<\/span>/g'
    printf '</pre>'
} >report.html
shoot "file:///mnt/page.html" "$ROOT/docs/images/page.png" 860
shoot "file:///mnt/report.html" "$ROOT/docs/images/report.png" $((50 + 19 * $(wc -l <report.ansi)))

# The blocks of output in the README: between a line that begins with "$ " and the next such line or the end.
perl -0pi -e '
    sub slurp { local $/; open my $f, "<", $_[0] or die "$_[0]: $!"; my $t = <$f>; $t =~ s/[ \t]+$//mg; $t =~ s/\s+\z//; $t }
    my ($record, $report) = map { slurp($_) } "record.txt", "report.txt";
    s/(\$ whit record -F 5000[^\n]*\n).*?(\n\n\$ )/$1$record$2/s or die "no recording in the README";
    s/(\$ whit report -q[^\n]*\n).*?(\n```)/$1$report$2/s or die "no report in the README";
' "$ROOT/README.md"
