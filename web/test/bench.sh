#!/bin/sh
# Measures the page in Chromium with a made-up recording of 10^6 samples of 64 CPUs.
set -eu
cd "$(dirname "$0")"
page=$(mktemp "${TMPDIR:-/tmp}/whit-page-XXXXXX.html")
trap 'rm -f "$page"' EXIT INT TERM
cargo run --quiet --release --manifest-path ../../Cargo.toml -p whit-page --example sample_page -- bench "$page"
PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent
node bench.js "$page"
