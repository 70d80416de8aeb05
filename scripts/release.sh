#!/usr/bin/env bash
# Builds everything that a release consists of into dist/, from the commit that is checked out:
#
#   whit-VERSION-source.tar.gz           this repository and the sources of all crates that it is built of
#   whit_VERSION_ARCH.deb                and whit-dbgsym_VERSION_ARCH.deb, its debug information
#   whit-VERSION-ARCH.tar.gz             static programs; their debug information is in whit-VERSION-ARCH-debug.tar.gz
#   whit-VERSION-PROGRAM.cdx.json        the crates in each program (CycloneDX)
#   SHA256SUMS
#
#   scripts/release.sh           builds once
#   scripts/release.sh twice     builds once more, in another folder, and fails where a byte differs
#
#   PACKAGES='deb tarball'       the packages to build
#   QUICK=1                      without optimization, to try a change of the build: not for users
#
# The packages are built from the source tarball alone, without a network and with an empty CARGO_HOME. So everybody who
# has the tarball and the same compilers can build the same bytes.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$ROOT/scripts/share.sh"

ARCH=$(uname -m)
DIST=$ROOT/dist
WORK=$ROOT/target/from-source
PACKAGES=${PACKAGES:-deb tarball}
NAME=whit-$VERSION
export LC_ALL=C TZ=UTC
umask 022

case ${1:-} in
    '' | twice) ;;
    *) fail "usage: scripts/release.sh [twice]" ;;
esac
for tool in git gzip cargo-deb cargo-cyclonedx dpkg-shlibdeps objcopy sha256sum; do
    have "$tool" || fail "$tool is missing (make setup-release)"
done
changes=$(git status --porcelain)
[ -z "$changes" ] || fail "a release is a commit, and these files have changes without one:
$changes"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# source_tarball FOLDER FILE
source_tarball() {
    local tree=$1/$NAME
    git archive --prefix="$NAME/" HEAD | tar -xf - -C "$1"
    # The folders of crates have their versions, as in cargo's home: it is the same path in all builds.
    (cd "$tree" && cargo vendor --locked --versioned-dirs --quiet vendor >/dev/null)
    mkdir "$tree/.cargo"
    cat >"$tree/.cargo/config.toml" <<'END'
# The sources of all crates are in this folder.
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
END
    tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime="@$SOURCE_DATE_EPOCH" \
        -cf - "$NAME" | gzip -9n >"$2"
}

# alone FOLDER COMMAND...: without a network, with nothing of this user's environment but the compilers.
alone() {
    local folder=$1 network=()
    shift
    if unshare --net true 2>/dev/null; then
        network=(unshare --net)
    elif unshare --map-root-user --net true 2>/dev/null; then
        network=(unshare --map-current-user --net)
    else
        warn "unshare is refused: a build that used the network would not be noticed"
    fi
    rm -rf "$folder/home"
    mkdir -p "$folder/home"
    env -i "${network[@]}" env PATH="$PATH" HOME="$folder/home" CARGO_HOME="$folder/home/cargo" CARGO_NET_OFFLINE=true \
        RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" ${RUSTUP_TOOLCHAIN:+RUSTUP_TOOLCHAIN="$RUSTUP_TOOLCHAIN"} \
        ${QUICK:+CARGO_PROFILE_DIST_OPT_LEVEL=0} \
        SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" LC_ALL=C TZ=UTC BUILD_ONLY=1 "$@"
}

# Lists of crates by a tool of cargo, whose names of packages are paths.
# bills FOLDER TREE OUT
bills() {
    local program
    alone "$1" env -C "$2" cargo cyclonedx --quiet --format json --override-filename bill
    for program in "${PROGRAMS[@]}"; do
        sed "s|$2|/usr/src/$NAME|g" "$2"/crates/*/"$program"/bill.json >"$3/$NAME-$program.cdx.json"
    done
    find "$2/crates" "$2/fuzz" -name bill.json -delete
}

# No folder of the build may be in a program.
# without_paths TREE
without_paths() {
    local found
    found=$(grep -rlaF "$1" "$1"/target/dist/{whit,whit-*} "$1"/target/*-linux-gnu/dist/{whit,whit-*} 2>/dev/null |
        grep -v '\.d$' || true)
    [ -z "$found" ] || fail "the path $1 is in $found"
}

# release FOLDER OUT
release() {
    local folder=$1 out=$2 tree=$1/$NAME
    rm -rf "$folder" "$out"
    mkdir -p "$folder" "$out"
    say "source tarball"
    source_tarball "$folder" "$out/$NAME-source.tar.gz"
    rm -rf "$tree"
    tar -C "$folder" -xzf "$out/$NAME-source.tar.gz"
    bills "$folder" "$tree" "$out"
    # shellcheck disable=SC2086
    alone "$folder" "$tree/scripts/package.sh" $PACKAGES
    without_paths "$tree"
    find "$tree/target/package" -maxdepth 1 \( -name '*.deb' -o -name "$NAME-*.tar.gz" \) -exec cp -t "$out" {} +
    (cd "$out" && sha256sum -- * >../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS)
}

release "$WORK/first" "$DIST"
if [ "${1:-}" = twice ]; then
    second=$WORK/the/second/one
    say "once more, in $second"
    release "$second" "$WORK/second-dist"
    diff "$DIST/SHA256SUMS" "$WORK/second-dist/SHA256SUMS" ||
        fail "two builds differ: compare dist and $WORK/second-dist"
    say "two builds in two folders have the same bytes"
fi
for other in x86_64 aarch64; do
    [ "$other" = "$ARCH" ] ||
        say "skipped: packages for $other: this machine is $ARCH; \`make release\` of the same commit on $other builds them"
done
cat "$DIST/SHA256SUMS"
[ -z "${QUICK:-}" ] || warn "these programs are not optimized: they are no release"
