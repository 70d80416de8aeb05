#!/usr/bin/env bash
# Checks the crates for kernels and hypervisors with the oldest Rust that they promise (`rust-version` in their
# Cargo.toml): rustup's, or Debian's packages, unpacked below target/ and not installed.
#
#   scripts/oldest-rust.sh        exit code 3 where there is no such compiler
set -euo pipefail
. "$(dirname "$0")/env.sh"

VERSION=1.85
PACKAGES=(rustc-web libstd-rust-web-dev "libstd-rust-web-$VERSION")
FOLDER=$ROOT/target/rust-$VERSION
SYSROOT=$FOLDER/root/usr

unpack() {
    local package version
    have apt-get && have dpkg-deb || return 1
    mkdir -p "$FOLDER"
    cd "$FOLDER"
    version=$(apt-cache madison rustc-web 2>/dev/null | awk -v v="$VERSION." 'index($3, v) == 1 { print $3; exit }')
    [ -n "$version" ] || return 1
    apt-get -q download "${PACKAGES[@]/%/=$version}" libllvm19 || return 1
    for package in *.deb; do dpkg-deb -x "$package" root || return 1; done
    rm -f ./*.deb
    cat >rustc <<END
#!/bin/sh
export LD_LIBRARY_PATH="$SYSROOT/lib/$(uname -m)-linux-gnu:$SYSROOT/lib/llvm-19/lib"
exec "$SYSROOT/bin/rustc" --sysroot "$SYSROOT" "\$@"
END
    chmod +x rustc
    cd "$ROOT"
}

if RUSTC=$(rustup which --toolchain "$VERSION" rustc 2>/dev/null); then
    :
else
    RUSTC=$FOLDER/rustc
    [ -x "$RUSTC" ] || unpack || {
        warn "there is no Rust $VERSION here: rustup toolchain install $VERSION"
        exit 3
    }
fi
export RUSTC
# Lints are those of the installed compiler.
unset RUSTC_WORKSPACE_WRAPPER
"$RUSTC" --version | grep -F " $VERSION." || fail "$RUSTC is not Rust $VERSION"
for crate in whit-pmu whit-vpmu; do
    grep -q "^rust-version = \"$VERSION\"" "crates/pmu/$crate/Cargo.toml" || fail "$crate states another rust-version"
done
check() { cargo check --target-dir "$FOLDER/target" --locked --quiet "$@"; }
check -p whit-pmu --no-default-features
check -p whit-pmu --features sim
check -p whit-vpmu
check -p whit-vpmu --features sim
say "whit-pmu and whit-vpmu build with Rust $VERSION"
