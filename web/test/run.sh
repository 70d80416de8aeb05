#!/bin/sh
# Tests of the HTML page: the types of its modules, the modules under node, then the page in Chromium.
# Where there is no Chromium, its tests are skipped by name.
#
#   WHIT_TEST_EXAMPLES=FOLDER   the built programs that write and serve pages; built here otherwise
set -eu
cd "$(dirname "$0")"
PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --silent
node_modules/.bin/tsc -p ..

pages=$(mktemp -d "${TMPDIR:-/tmp}/whit-pages-XXXXXX")
trap 'rm -rf "$pages"' EXIT INT TERM
export WHIT_TEST_PAGES="$pages"

examples="${WHIT_TEST_EXAMPLES:-}"
if [ -z "$examples" ]; then
  # As `make test` builds them: another choice of packages has other features, and builds their crates again.
  cargo build --quiet --manifest-path ../../Cargo.toml --workspace --exclude whit-fuzz \
    --example sample_page --example serve_page
  examples="${CARGO_TARGET_DIR:-$PWD/../../target}/debug/examples"
fi
for kind in server hostile hostile-waits requests large waits compare compare-shop threads samples nameless one empty; do
  "$examples/sample_page" "$kind" "$pages/$kind.html" >/dev/null
done
export WHIT_TEST_SERVER="$examples/serve_page"

node --test --test-reporter=spec unit/
# They wait for Chromium most of the time.
node --test --test-reporter=spec --test-concurrency=2 browser/
