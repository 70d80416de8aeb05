#!/usr/bin/env bash
# RUSTC_WORKSPACE_WRAPPER of scripts/test.sh: compiles a crate, and looks for lints with the dependencies that it was
# compiled with. `cargo clippy` would compile all dependencies once more. clippy-driver cannot do both at once: what it
# compiles lacks optimizations, and the checks of pointers.
set -euo pipefail
"$@"

# A library is compiled for its tests, too, with all of its code.
case " $* " in *" --crate-type lib "*) exit 0 ;; esac
options=() is_compilation=false previous=
for argument in "$@"; do
    case $argument in
    --emit=*) is_compilation=true argument=--emit=metadata ;;
    # cargo waits for no artifact of the second run.
    --json=*) argument=${argument//,artifacts/} ;;
    # The folder belongs to the first run: `-C` gets another word.
    incremental=*) argument=debuginfo=0 ;;
    esac
    [ "$previous" != --out-dir ] || argument=$WHIT_LINT_FOLDER
    options+=("$argument")
    previous=$argument
done
# cargo asks for versions, too.
[ "$is_compilation" = false ] || exec clippy-driver "${options[@]}"
