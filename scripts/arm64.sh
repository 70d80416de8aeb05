#!/usr/bin/env bash
# Builds whit for arm64, and runs it: in QEMU's emulation of a process, where no kernel is needed, and under Debian's arm64
# kernel in QEMU's emulation of a machine, which has a PMU (PMUv3). No hardware is involved: all figures are of an emulated
# processor.
#
#   [LIMIT_S=900] [KEEP=1] scripts/arm64.sh [build] [user] [guest]     (all three)
#
#   build    whit, into target/arm64
#   user     `whit --version`, and reports of the recordings in tests/recordings, equal to this machine's
#   guest    in a booted guest: recordings of the ring engine, and counts compared with perf's
#
# KEEP=1 boots what is built already.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$ROOT/scripts/cross.sh"

OUT=target/arm64
LIMIT_S=${LIMIT_S:-900}
MEMORY=2G
CPUS=1
PROGRAMS_DIR=$OUT/$ARM64_TARGET/debug
WORKLOADS=(deep deep-fp)

goals=("$@")
[ ${#goals[@]} -gt 0 ] || goals=(build user guest)
for tool in qemu-system-aarch64 qemu-aarch64-static aarch64-linux-gnu-gcc cpio; do
    have "$tool" || fail "$tool is missing (make setup-arm64)"
done
[ -e "$ARM64_SYSTEM/complete" ] || fail "there is no system for arm64 (make setup-arm64)"
mkdir -p "$OUT"

build() {
    say "arm64: building"
    CARGO_PROFILE_DEV_DEBUG=false arm64_cargo build --quiet --locked -p whit
    make -s -C bench/workloads OUT="$ROOT/$OUT/workloads" CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ "${WORKLOADS[@]}"
}

# emulated PROGRAM ARGUMENT...: with the libraries of arm64. Files are those of this machine.
emulated() { qemu-aarch64-static -L "$ARM64_SYSTEM" "$@"; }

user() {
    local whit=$PROGRAMS_DIR/whit data passed=0 failed=0
    # The file of a container is opened by openat2, which QEMU 7.2 does not emulate.
    local skipped=tests/recordings/golden/perf-containers/recording.data
    cargo_build -p whit --locked
    say "arm64: $(emulated "$whit" --version) in the emulation of a process"
    say "skipped: the report of $skipped: QEMU's emulation of a process has no openat2"
    while read -r data; do
        [ "$data" != "$skipped" ] || continue
        # What both say of a file that they cannot read counts, too.
        { target/debug/whit report --stdio -i "$data" 2>&1 || true; } >"$OUT/report.here"
        { emulated "$whit" report --stdio -i "$data" 2>&1 || true; } >"$OUT/report.arm64"
        if cmp -s "$OUT/report.here" "$OUT/report.arm64"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            warn "the report of $data differs on arm64:"
            diff "$OUT/report.here" "$OUT/report.arm64" | head -10 >&2 || true
        fi
    done < <(find tests/recordings -name '*.data' | sort)
    say "arm64: reports of $((passed + failed)) recordings: $passed equal, $failed differ"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# A file of the system at the same place in the guest, with the libraries that it needs.
take() {
    local file=$1 place=$2 library found
    [ ! -e "$GUEST$place" ] || return 0
    mkdir -p "$GUEST$(dirname "$place")"
    cp -L "$file" "$GUEST$place"
    aarch64-linux-gnu-strip --strip-debug "$GUEST$place" 2>/dev/null || true
    while read -r library; do
        found=$(find "$ARM64_SYSTEM"/lib/aarch64-linux-gnu "$ARM64_SYSTEM"/usr/lib/aarch64-linux-gnu -name "$library" | head -n 1)
        [ -n "$found" ] || fail "$place needs $library, which the system for arm64 lacks"
        take "$found" "/lib/aarch64-linux-gnu/$library"
    done < <(aarch64-linux-gnu-readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}

# The file system that the guest begins with.
pack() {
    local program
    rm -rf "$GUEST"
    mkdir -p "$GUEST"/{bin,proc,sys,tmp,dev,root,lib}
    take "$ARM64_SYSTEM/bin/busybox" /bin/busybox
    take "$ARM64_SYSTEM/usr/bin/perf" /usr/bin/perf
    ln -sf aarch64-linux-gnu/ld-linux-aarch64.so.1 "$GUEST/lib/ld-linux-aarch64.so.1"
    take "$PROGRAMS_DIR/whit" /usr/bin/whit
    for program in "${WORKLOADS[@]}"; do take "$OUT/workloads/$program" "/work/$program"; done
    cp scripts/arm64-guest.sh "$GUEST/init"
    chmod +x "$GUEST/init"
    (cd "$GUEST" && find . | cpio -o -H newc --quiet | gzip -1) >"$OUT/guest.gz"
}

guest() {
    local kernel log=$OUT/guest.log passed failed
    GUEST=$ROOT/$OUT/guest
    kernel=$(ls "$ARM64_SYSTEM"/boot/vmlinuz-* | tail -n 1)
    pack
    say "arm64: $(basename "$kernel") in an emulated machine; its output is in $log"
    # The emulated PMU counts instructions only where the emulator does (-icount), and then in one thread. Time without
    # work is left out.
    timeout "$LIMIT_S" qemu-system-aarch64 -accel tcg,thread=single -icount shift=2,sleep=off -M virt -cpu max \
        -smp "$CPUS" -m "$MEMORY" -nic none -nographic -no-reboot -kernel "$kernel" -initrd "$OUT/guest.gz" \
        -append "console=ttyAMA0 quiet panic=-1 nokaslr" </dev/null >"$log" 2>&1 || warn "QEMU ended with $?: $log"
    sed -i 's/\r$//' "$log"
    grep -a '^GUEST' "$log" || true
    passed=$(grep -ac '^PASSED' "$log" || true)
    failed=$(grep -ac '^FAILED' "$log" || true)
    grep -a '^FAILED' "$log" >&2 || true
    say "arm64: in the booted guest (emulated processor and PMU, no hardware): $passed passed, $failed failed"
    grep -aq '^GUEST-END' "$log" || fail "the guest did not come to its end: $log"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

status=0
for goal in "${goals[@]}"; do
    case $goal in
        build) [ -n "${KEEP:-}" ] || build ;;
        user) user || status=1 ;;
        guest) guest || status=1 ;;
        *) fail "unknown goal '$goal': build, user or guest" ;;
    esac
done
exit $status
