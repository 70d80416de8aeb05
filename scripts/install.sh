#!/usr/bin/env bash
# Installs whit from the sources, or removes it.
#
#   scripts/install.sh install|uninstall
#
#   PREFIX=/usr/local   where the programs are to run from
#   DESTDIR=            a directory to install into in place of the root: for packages
#   BUILT=              a directory of built programs, whit-reference among them: nothing is built
#
# The list of installed files is PREFIX/share/whit/installed. uninstall removes these files.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$ROOT/scripts/share.sh"

PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
BUILT=${BUILT:-}
TO=$DESTDIR$PREFIX
LIST=$TO/share/whit/installed
OUT=$ROOT/target/install

case $PREFIX in
/*) ;;
*) fail "PREFIX=$PREFIX is no absolute path" ;;
esac

writable() {
    local at=$TO
    while [ ! -e "$at" ]; do at=$(dirname "$at"); done
    [ -w "$at" ] || fail "$at may not be written: sudo make $1 PREFIX=$PREFIX, or PREFIX=\$HOME/.local"
}

build() {
    [ -z "$BUILT" ] || return 0
    BUILT=$ROOT/target/release
    have cargo || fail "there is no cargo here: make setup-demo installs Rust"
    say "building whit (the first time takes some minutes)"
    cargo_build --release --locked "${PROGRAM_PACKAGES[@]}"
}

# put MODE FROM TO
put() {
    install -D -m "$1" "$2" "$TO/$3"
    printf '%s\n' "$3" >>"$OUT/installed"
}

install_all() {
    local program file
    writable install
    build
    rm -rf "$OUT/share"
    share "$OUT/share" "$BUILT"
    mkdir -p "$OUT"
    : >"$OUT/installed"
    for program in "${PROGRAMS[@]}"; do
        put 755 "$BUILT/$program" "bin/$program"
    done
    while IFS= read -r file; do
        put 644 "$OUT/share/$file" "share/${file/#zsh\/vendor-completions/zsh/site-functions}"
    done < <(cd "$OUT/share" && find . -type f ! -path './whit/watch/whit-watch.service' | sed 's|^\./||' | sort)
    sed "s|/usr/bin/whit|$PREFIX/bin/whit|" deploy/whit-watch.service >"$OUT/whit-watch.service"
    put 644 "$OUT/whit-watch.service" lib/systemd/system/whit-watch.service
    printf '%s\n' share/whit/installed >>"$OUT/installed"
    install -D -m 644 "$OUT/installed" "$LIST"
    say "installed $(wc -l <"$LIST") files below $TO; make uninstall PREFIX=$PREFIX removes them"
    case :$PATH: in
    *":$PREFIX/bin:"*) ;;
    *) say "PATH does not have $PREFIX/bin: export PATH=$PREFIX/bin:\$PATH" ;;
    esac
}

uninstall_all() {
    local file count
    [ -f "$LIST" ] || fail "there is no list of installed files, $LIST: whit was not installed there by make install"
    writable uninstall
    count=$(wc -l <"$LIST")
    mkdir -p "$OUT"
    cp "$LIST" "$OUT/removed"
    while IFS= read -r file; do
        rm -f "${TO:?}/$file"
    done <"$OUT/removed"
    # Its own directories; one that is not empty stays.
    for file in share/whit/examples share/whit/watch share/whit share/doc/whit; do
        rmdir "${TO:?}/$file" 2>/dev/null || true
    done
    say "removed $count files below $TO"
}

case ${1:-} in
install) install_all ;;
uninstall) uninstall_all ;;
*) fail "usage: scripts/install.sh install|uninstall" ;;
esac
