#!/bin/sh
# Tests of the HTML page: the types of its modules, the modules under node, then the page in Chromium.
# Where there is no Chromium, its tests are skipped by name.
set -eu
cd "$(dirname "$0")"
PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent
node_modules/.bin/tsc -p ..
node_modules/.bin/tsc -p ../tsconfig.core.json

pages=$(mktemp -d "${TMPDIR:-/tmp}/whit-pages-XXXXXX")
trap 'rm -rf "$pages"' EXIT INT TERM
export WHIT_TEST_PAGES="$pages"

cargo build --quiet --manifest-path ../../Cargo.toml -p whit-page --example sample_page
for kind in server hostile hostile-waits large waits compare compare-shop threads samples nameless one empty; do
  cargo run --quiet --manifest-path ../../Cargo.toml -p whit-page --example sample_page -- \
    "$kind" "$pages/$kind.html" >/dev/null
done

cargo build --quiet --manifest-path ../../Cargo.toml -p whit-serve --example serve_page
WHIT_TEST_SERVER="${CARGO_TARGET_DIR:-$PWD/../../target}/debug/examples/serve_page"
export WHIT_TEST_SERVER

node --test --test-reporter=spec unit/
node --test --test-reporter=spec browser/
