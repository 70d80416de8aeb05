#!/usr/bin/env bash
# RUSTC_WORKSPACE_WRAPPER of scripts/fuzz.sh: compiles the crates of this workspace with coverage for libFuzzer,
# optimized, with the checks of the development profile. Dependencies are left as they are, so that they are built
# once for tests and fuzz targets. No nightly compiler is needed: these are ordinary options of code generation.
# Build scripts run as they are: they are linked without libFuzzer.
case " $* " in *" --crate-name build_script_"*) exec "$@" ;; esac
# Only here the targets are compiled.
[ "${CARGO_PKG_NAME:-}" != whit-fuzz ] || [ -z "${WHIT_LINT_FOLDER:-}" ] || set -- scripts/lint-rustc.sh "$@" -D warnings
exec "$@" -C opt-level=2 -C codegen-units=1 -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares
