#!/usr/bin/env bash
# RUSTC_WORKSPACE_WRAPPER of scripts/fuzz.sh: compiles the crates of this workspace with coverage for libFuzzer and
# with the checks of the development profile. Dependencies are left as they are, so that they are built once for tests
# and fuzz targets. No nightly compiler is needed: these are ordinary options of code generation.
# Build scripts and tests are left as they are: they are linked without libFuzzer.
# Only here the targets are compiled.
[ "${CARGO_PKG_NAME:-}" != whit-fuzz ] || [ -z "${WHIT_LINT_FOLDER:-}" ] || set -- scripts/lint-rustc.sh "$@" -D warnings
case " $* " in *" --crate-name build_script_"* | *" --test "*) exec "$@" ;; esac
exec "$@" -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares
