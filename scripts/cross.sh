# Sourced by scripts that build for arm64 on another machine (`make setup-arm64` has fetched what that needs). The build
# has a folder of its own: its compiler may be another one, which would build the programs of this machine anew.
# shellcheck shell=bash

ARM64=$ROOT/target/setup/arm64
ARM64_TARGET=aarch64-unknown-linux-gnu
# Of Debian's kernel, C library, perf and the like.
ARM64_SYSTEM=$ARM64/system

# arm64_cargo ARGUMENT...: cargo for arm64.
arm64_cargo() {
    (
        for program in rustc rustdoc; do
            [ ! -x "$ARM64/bin/$program" ] || export "${program^^}=$ARM64/bin/$program"
        done
        export CARGO_TARGET_DIR=$ROOT/target/arm64 CARGO_BUILD_TARGET=$ARM64_TARGET
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
        export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
        export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
        # Behind the C library's own headers come those of libelf and zlib.
        export CFLAGS_aarch64_unknown_linux_gnu="-idirafter $ARM64_SYSTEM/usr/include"
        export LIBBPF_SYS_LIBRARY_PATH_aarch64_unknown_linux_gnu=$ARM64/lib
        cargo "$@"
    )
}
