#!/usr/bin/env bash
# RUSTDOC of scripts/test.sh: writes the documentation of a crate, where warnings are errors, and then runs its examples.
# Both use the crates that the tests have. `cargo doc` would compile all of them once more.
set -euo pipefail

options=() is_test=false is_value=false
for argument in "$@"; do
    if [ "$is_value" = true ]; then
        is_value=false
        continue
    fi
    case $argument in
    --test) is_test=true ;;
    --test-run-directory | --test-args | --test-runtool | --test-runtool-arg) is_value=true ;;
    --test-run-directory=* | --test-args=* | --test-runtool=* | --test-runtool-arg=* | --no-run | --nocapture) ;;
    *) options+=("$argument") ;;
    esac
done
# cargo asks for versions, too.
if [ "$is_test" = true ]; then
    rustdoc "${options[@]}" -D warnings --out-dir "$WHIT_DOC_FOLDER"
fi
exec rustdoc "$@"
