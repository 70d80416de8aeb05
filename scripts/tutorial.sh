#!/usr/bin/env bash
# Follows the tutorials of the book as a new user: in a clean root that has the .deb alone, and the programs that the
# tutorials install. Fails if a command fails, or if its page shows other output. The transcript is
# target/package/tutorial.txt.
#
#   scripts/tutorial.sh     needs root, and the .deb of scripts/package.sh deb
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$ROOT/scripts/clean-root.sh"

root=$OUT/root-tutorial
ls "$OUT"/whit_*.deb >/dev/null 2>&1 || scripts/package.sh deb
clean_root "$root"
cp "$OUT"/whit_*.deb "$root/root/"
# Nobody is there to answer.
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/99tutorial"
quietly "$OUT/apt.log" inside "$root" apt-get -q update
say "following the tutorials"
WHIT_TUTORIAL_ROOT=$root cargo test --quiet --locked -p whit --test whole_program -- \
    --nocapture --exact book::recorded::tutorials_and_how_tos_run 2>&1 | tee "$OUT/tutorial.txt"
