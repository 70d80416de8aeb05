# Sourced by scripts that try whit in a minimal system (after env.sh): makes such systems by debootstrap, which needs root.
# shellcheck shell=bash

OUT=$ROOT/target/package

SUITE=${SUITE:-bookworm}

# minimal_system SUITE: fetches a minimal system, once.
minimal_system() {
    local base=$OUT/$1
    have debootstrap || fail "debootstrap is missing (make setup-package)"
    [ "$(id -u)" = 0 ] || fail "clean roots are made by debootstrap, which needs root: use sudo"
    mkdir -p "$OUT"
    [ ! -e "$base/complete" ] || return 0
    say "debootstrap $1"
    rm -rf "$base"
    debootstrap --variant=minbase "$1" "$base" "${MIRROR:-http://deb.debian.org/debian}" \
        >"$OUT/debootstrap-$1.log" 2>&1 || { rm -rf "$base"; return 1; }
    touch "$base/complete"
}

# clean_root ROOT [SUITE]: copies a minimal system.
clean_root() {
    local suite=${2:-$SUITE}
    minimal_system "$suite" || fail "debootstrap cannot fetch $suite ($OUT/debootstrap-$suite.log)"
    rm -rf "$1"
    cp -a "$OUT/$suite" "$1"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    # The system's own sources, so that a mirror that this machine uses serves the root as well.
    [ "$suite" = "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" ] || return 0
    rm -rf "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d
    cp -a /etc/apt/sources.list.d "$1/etc/apt/" 2>/dev/null || true
    cp /etc/apt/sources.list "$1/etc/apt/" 2>/dev/null || true
    cp -a /usr/share/keyrings/. "$1/usr/share/keyrings/" 2>/dev/null || true
    cp -a /etc/apt/apt.conf.d/. "$1/etc/apt/apt.conf.d/" 2>/dev/null || true
}

# inside ROOT COMMAND...
inside() { "$ROOT/scripts/inside.sh" "$@"; }
