#!/usr/bin/env bash
# Makes the pictures and the terminal output of the README from real runs: docs/images/page.png, waits.png, tracks.png and
# requests.png of PostgreSQL under pgbench, terminal.png and terminal.cast of the same, and the two blocks of output. Needs chromium,
# node, npm, tmux, and PostgreSQL with its tools.
set -euo pipefail
. "$(dirname "$0")/env.sh"

OUT=$ROOT/target/pictures
have node && have npm || fail "node or npm is missing"
PG=$(pg_config --bindir 2>/dev/null) && [ -x "$PG/initdb" ] && have pgbench || fail "PostgreSQL is missing: apt install postgresql postgresql-contrib libpq-dev"
mkdir -p "$OUT" docs/images

# The recording names the program by its path: it is the one of an installed whit, in a file system of our own.
if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this mounts a folder of its own over /usr/local/bin, which needs root"
    cargo_build --profile dist --locked -p whit -p whit-terminal
    quietly "$OUT/workload.log" make -C bench/workloads deep
    (cd web/test && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 quietly "$OUT/npm.log" npm ci)
    exec unshare --mount --propagation private "$0" --inside
fi
mount -t tmpfs none /usr/local/bin
mount -t tmpfs none /mnt
cp "$ROOT/target/dist/whit" "$ROOT/target/dist/whit-terminal" target/workloads/deep /usr/local/bin/
cd /mnt

whit record -F 5000 -- deep --seconds 2 2>record.txt >/dev/null
report=(report --no-pager --no-children -g none --percent-limit 3)
whit "${report[@]}" -q >report.txt
# A database under load: several processes of one program, locks between them, the disk.
install -d -o postgres /mnt/pg
quietly "$OUT/postgres.log" setpriv --reuid=postgres --regid=postgres --clear-groups "$PG/initdb" -D /mnt/pg/data -A trust
cat >/usr/local/bin/shop <<EOF
#!/bin/sh
as() { setpriv --reuid=postgres --regid=postgres --clear-groups env HOME=/mnt/pg "\$@"; }
as "$PG/pg_ctl" -D /mnt/pg/data -l /mnt/pg/log -o "-p 5499 -k /mnt/pg" -w start
as pgbench -h /mnt/pg -p 5499 \$1 postgres
as "$PG/pg_ctl" -D /mnt/pg/data -m fast -w stop
EOF
chmod +x /usr/local/bin/shop
quietly "$OUT/postgres.log" shop "-i -s 2"
whit record --wakeups -e cpu-clock,page-faults -F 1999 -o page.data -- shop "-c 6 -j 2 -T 3" >/dev/null 2>&1
whit report -i page.data --html page.html >/dev/null
query="query=$PG/postgres:query__start..query__done,key=arg1:string"
whit record -a --request "$query" -o requests.data -- shop "-c 6 -j 2 -T 3" >/dev/null 2>&1
whit report -i requests.data --html requests.html >/dev/null

# picture PAGE FILE HEIGHT SCHEME [SELECTOR]
picture() {
    quietly "$OUT/picture.log" node "$ROOT/web/test/picture.js" "file:///mnt/$1" "$ROOT/docs/images/$2" 1280 "${@:3}"
}
picture "page.html" page.png 800 light
picture "page.html#view=switches&hideKernel=1" waits.png 800 dark '#wait-sites .list-row:has-text("lock") >> nth=0'
picture "page.html#view=tracks&event=6&range=1000000000-1060000000" tracks.png 800 light
picture "requests.html#view=requests" requests.png 800 dark

(cd "$ROOT" && scripts/cast.sh /mnt/page.data)

# The blocks of output in the README: between a line that begins with "$ " and the next such line or the end.
perl -0pi -e '
    sub slurp { local $/; open my $f, "<", $_[0] or die "$_[0]: $!"; my $t = <$f>; $t =~ s/[ \t]+$//mg; $t =~ s/\s+\z//; $t }
    my ($record, $report) = map { slurp($_) } "record.txt", "report.txt";
    s/(\$ whit record -F 5000[^\n]*\n).*?(\n\n\$ )/$1$record$2/s or die "no recording in the README";
    s/(\$ whit report -q[^\n]*\n).*?(\n```)/$1$report$2/s or die "no report in the README";
' "$ROOT/README.md"
