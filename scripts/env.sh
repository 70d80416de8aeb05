# Sourced by the other scripts: where the repository and its tools are, and how to speak.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit 1

# rustup puts its proxies here, and only a new login would see them.
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

# What setup.sh had to choose, because the system's default would not do.
if [ -f target/setup/env ]; then
    # shellcheck source=/dev/null
    . target/setup/env
fi

VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# The crates that are for other programs as well.
public_crates() { grep -L '^publish = false' crates/*/*/Cargo.toml | xargs -n 1 dirname | xargs -n 1 basename; }

say() { printf '%s\n' "$*"; }
warn() { printf 'note: %s\n' "$*" >&2; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Seconds between two lines of a command that takes long.
PROGRESS_SECONDS=10

# Runs a command with its output in a log; prints the log where the command fails.
# quietly LOG COMMAND...
quietly() {
    local log=$1 status=0 beat
    shift
    mkdir -p "$(dirname "$log")"
    while sleep "$PROGRESS_SECONDS" >/dev/null 2>&1; do say "  working ($SECONDS s)"; done &
    beat=$!
    "$@" >"$log" 2>&1 </dev/null || status=$?
    kill "$beat" 2>/dev/null
    wait "$beat" 2>/dev/null || true
    [ "$status" = 0 ] || cat "$log" >&2
    return "$status"
}

# cargo shows its progress bar on a terminal. Elsewhere a line now and then says how far it is.
cargo_build() {
    if [ -t 2 ]; then
        cargo build "$@"
    else
        CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=100 cargo build "$@" 2>&1 | build_progress
    fi
}

# Reads what cargo prints for a terminal: prints how many crates are built, and errors and warnings.
build_progress() {
    local part="" rest="" line status=0 crates="" next=$((SECONDS + PROGRESS_SECONDS))
    while [ "$status" = 0 ] || [ "$status" -gt 128 ]; do
        status=0
        IFS= read -r -d $'\r' -t 2 part || status=$?
        rest+=$part
        # A part that is not whole yet: nothing came for a while.
        if [ "$status" -le 128 ]; then
            while IFS= read -r line; do
                case $line in
                *" Building ["*) [[ $line =~ ([0-9]+)/([0-9]+) ]] && crates="${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} crates built" ;;
                *" Compiling "* | *" Download"* | *" Updating "* | *" Finished "* | *" Blocking "* | *" Locking "*) ;;
                *[![:space:]]*) printf '%s\n' "$line" >&2 ;;
                esac
            done <<<"$rest"
            rest=""
        fi
        if [ "$SECONDS" -ge "$next" ]; then
            say "  ${crates:-looking for crates} ($SECONDS s)"
            next=$((SECONDS + PROGRESS_SECONDS))
        fi
    done
}
