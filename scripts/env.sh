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

say() { printf '%s\n' "$*"; }
warn() { printf 'note: %s\n' "$*" >&2; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command with its output in a log; prints the log where the command fails.
# quietly LOG COMMAND...
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        return 1
    fi
}

# cargo shows its progress bar on a terminal and is silent elsewhere.
cargo_build() {
    if [ -t 2 ]; then cargo build "$@"; else cargo build --quiet "$@"; fi
}
