#!/usr/bin/env bash
# Builds the packages of whit into target/package, and tries each in a clean root:
#
#   whit_VERSION_ARCH.deb            for Debian and Ubuntu; its debug information is in whit-dbgsym_…
#   whit-VERSION-ARCH.tar.gz         a static program, manual pages and completions
#   cargo install --path crates/whit/whit, and of the other programs
#   CRATE-VERSION.crate              of each public crate, built from what it holds alone
#
#   scripts/package.sh [deb] [tarball] [cargo] [crates]     (all four)
#
#   BUILD_ONLY=1              tries nothing, and needs neither root nor debootstrap: for scripts/release.sh
#   SOURCE_DATE_EPOCH=SECONDS the time of all files (default: that of the commit, or of an unpacked source tarball)
#
# The same sources and compilers give the same bytes of the .deb and the tarball, in any folder. The clean roots are
# minimal Debian systems made by debootstrap; they need root. The tarball is also tried on other releases,
# OTHER_SUITES='bullseye trixie'; one that cannot be fetched is skipped by name.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$ROOT/scripts/clean-root.sh"
. "$ROOT/scripts/share.sh"

ARCH=$(uname -m)
TARGET=$ARCH-unknown-linux-gnu
MAX_RECORDER_BYTES=15000000
goals=("$@")
[ ${#goals[@]} -gt 0 ] || goals=(deb tarball cargo crates)
BUILD_ONLY=${BUILD_ONLY:-}

case "${goals[*]}" in
    *deb* | *tarball*)
        tools=(objcopy dpkg-deb dpkg-shlibdeps gzip cargo-deb)
        [ -n "$BUILD_ONLY" ] || tools+=(debootstrap)
        for tool in "${tools[@]}"; do
            have "$tool" || fail "$tool is missing (make setup-package)"
        done
        [ -n "$BUILD_ONLY" ] || [ "$(id -u)" = 0 ] ||
            fail "the clean roots are made by debootstrap, which needs root: sudo make package"
        ;;
esac
mkdir -p "$OUT"
umask 022
# The files of a source tarball have the time of its commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH

# build_programs OPTION...: no program has the folder's path in it.
build_programs() {
    local sources=/usr/src/whit-$VERSION registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
    local flags="--remap-path-prefix=$ROOT=$sources" c_flags="-ffile-prefix-map=$ROOT=$sources" folder
    for folder in "$registry"/*; do
        # The place that a source tarball has for them.
        flags+=" --remap-path-prefix=$folder=$sources/vendor"
        c_flags+=" -ffile-prefix-map=$folder=$sources/vendor"
    done
    RUSTFLAGS="${RUSTFLAGS:-} $flags" CFLAGS="${CFLAGS:-} $c_flags" CXXFLAGS="${CXXFLAGS:-} $c_flags" \
        cargo_build --profile dist --locked "${PROGRAM_PACKAGES[@]}" "$@"
}

# archive FOLDER: packs a folder of $OUT.
archive() {
    tar -C "$OUT" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" |
        gzip -9n >"$OUT/$1.tar.gz"
}

# Takes the debug information of a program into a file that debuggers find by its build id.
# split PROGRAM DEBUG-DIRECTORY
split() {
    local program=$1 id file
    id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p')
    [ -n "$id" ] || fail "$program has no build id"
    file=$2/.build-id/${id:0:2}/${id:2}.debug
    mkdir -p "$(dirname "$file")"
    objcopy --only-keep-debug --compress-debug-sections "$program" "$file"
    objcopy --strip-unneeded --add-gnu-debuglink="$file" "$program"
}

# The recorder lies on every server: it stays small. Views and engines of queries are programs of their own.
# small PROGRAM
small() {
    local bytes
    bytes=$(stat -c %s "$1")
    [ "$bytes" -le "$MAX_RECORDER_BYTES" ] ||
        fail "$1 has $bytes bytes, more than $MAX_RECORDER_BYTES: what came into it that another program could hold?"
}

# The first steps of a new user: version, help, a recording by each engine, its report.
# try ROOT WHIT
try() {
    local root=$1 whit=$2 engine
    inside "$root" "$whit" --version
    inside "$root" "$whit" help hot >/dev/null
    for engine in ring bpf; do
        if [ $engine = bpf ] && [ ! -e /sys/kernel/btf/vmlinux ]; then
            say "skipped: the BPF engine in $root: the kernel does not describe its types"
            continue
        fi
        inside "$root" "$whit" record -q --engine=$engine -g -e cpu-clock -F 2000 -o /tmp/whit.data -- sh -c \
            'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
        inside "$root" "$whit" report -i /tmp/whit.data --no-children -q >"$OUT/report.txt"
        grep -q ' sh ' "$OUT/report.txt" || fail "the report in $root has no row of sh ($OUT/report.txt)"
        inside "$root" "$whit" query -i /tmp/whit.data -c "SELECT COUNT(*) FROM sample WHERE comm = 'sh'" --csv >"$OUT/query.txt"
        tail -n 1 "$OUT/query.txt" | grep -q '[1-9]' || fail "the query in $root finds no sample of sh ($OUT/query.txt)"
        # Nobody listens there: the program says so by whit's warning.
        inside "$root" "$whit" report -i /tmp/whit.data --stdio --debuginfod=http://127.0.0.1:1 --debuginfod-limit=0 \
            >"$OUT/report.txt" 2>&1
        ! grep -q 'there is no .*whit-debuginfod' "$OUT/report.txt" || fail "whit-debuginfod is missing in $root"
        say "recorded and reported by the $engine engine"
    done
}

deb() {
    rm -f "$OUT"/*.deb "$OUT"/*.ddeb
    build_programs
    rm -rf "$OUT/share"
    share "$OUT/share" target/dist
    quietly "$OUT/deb.log" cargo deb -p whit --no-build --locked --profile dist --dbgsym --output "$OUT"
    # Debian's name for what Ubuntu calls .ddeb.
    for file in "$OUT"/*.ddeb; do
        [ ! -e "$file" ] || mv "$file" "${file%.ddeb}.deb"
    done
    [ -n "$BUILD_ONLY" ] || try_deb
}

try_deb() {
    local root=$OUT/root-deb file
    clean_root "$root"
    cp "$OUT"/*.deb "$root/tmp/"
    say "trying $(cd "$OUT" && echo whit_*.deb): depends on $(dpkg-deb -f "$OUT"/whit_*.deb Depends)"
    quietly "$OUT/apt.log" inside "$root" apt-get -q update
    quietly "$OUT/apt.log" inside "$root" sh -c 'apt-get -q -y --no-install-recommends install /tmp/whit*.deb'
    try "$root" whit
    small "$root/usr/bin/whit"
    dpkg-deb -c "$OUT"/whit_*.deb >"$OUT/contents"
    for file in man1/whit-record.1.gz completions/whit vendor-completions/_whit whit.fish doc/whit/privileges.md \
        whit/examples/shop.c; do
        grep -q "$file" "$OUT/contents" || fail "the package has no $file ($OUT/contents)"
    done
    quietly "$OUT/apt.log" inside "$root" sh -c 'apt-get -q -y purge whit whit-dbgsym'
    ! inside "$root" sh -c 'command -v whit' >/dev/null || fail "whit stays after its package is gone"
}

tarball() {
    local name=whit-$VERSION-$ARCH tree program whit suite
    tree=$OUT/$name
    rm -rf "$tree" "$tree-debug"
    RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" build_programs --target "$TARGET"
    # The last one makes the completions.
    for program in "${PROGRAMS[@]:1}" whit; do
        whit=$tree/bin/$program
        install -D -m 755 "target/$TARGET/dist/$program" "$whit"
        split "$whit" "$OUT/$name-debug"
        if readelf -d "$whit" | grep -q NEEDED; then fail "$whit is not static"; fi
    done
    share "$tree/share" "target/$TARGET/dist"
    archive "$name"
    archive "$name-debug"
    [ -z "$BUILD_ONLY" ] || return 0
    try_tarball "$name" "$SUITE"
    for suite in ${OTHER_SUITES-bullseye trixie}; do
        if minimal_system "$suite"; then
            try_tarball "$name" "$suite"
        else
            say "skipped: the tarball on $suite: debootstrap cannot fetch it ($OUT/debootstrap-$suite.log)"
        fi
    done
}

# try_tarball NAME SUITE
try_tarball() {
    local root=$OUT/root-tarball
    say "trying $1.tar.gz on $2"
    clean_root "$root" "$2"
    # Nothing that the program could load.
    rm -f "$root"/lib/*/libelf* "$root"/usr/lib/*/libelf* "$root"/usr/lib/*/libz.so*
    tar -C "$root/opt" -xzf "$OUT/$1.tar.gz"
    try "$root" "/opt/$1/bin/whit"
}

cargo_install() {
    local root=$OUT/cargo program
    rm -rf "$root"
    say "cargo install"
    for program in "${PROGRAMS[@]}"; do
        quietly "$OUT/cargo-install.log" cargo install --quiet --locked --path crates/*/"$program" --root "$root" --target-dir target
        "$root/bin/$program" --version
    done
    "$root/bin/whit" record -q -e cpu-clock -o "$OUT/cargo.data" -- true
    "$root/bin/whit" report -i "$OUT/cargo.data" --stats >/dev/null
    "$root/bin/whit" query -i "$OUT/cargo.data" -c "SELECT * FROM recording" >/dev/null
}

# Each public crate is built from its package alone, with the packages of the others in the place of a registry.
crates() {
    local options=() crate
    rm -f "$OUT"/*.crate
    for crate in $(public_crates); do options+=(-p "$crate"); done
    say "cargo package ${options[*]}"
    # The packages of changes without a commit are tried, too.
    quietly "$OUT/crates.log" cargo package --locked --allow-dirty "${options[@]}"
    for crate in $(public_crates); do
        [ -e "$OUT/$crate-$VERSION.crate" ] || fail "there is no package of $crate ($OUT/crates.log)"
    done
}

for goal in "${goals[@]}"; do
    case $goal in
        deb) deb ;;
        tarball) tarball ;;
        cargo) cargo_install ;;
        crates) crates ;;
        *) fail "unknown package '$goal': deb, tarball, cargo or crates" ;;
    esac
done
say ""
ls -sh1 "$OUT"/*.deb "$OUT"/*.tar.gz "$OUT"/*.crate 2>/dev/null || true
