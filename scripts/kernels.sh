#!/usr/bin/env bash
# Runs whit's BPF programs on other kernels than this machine's, each in QEMU: the tests of
# crates/record/whit-bpf, and a recording of every switch and wake-up. Without KVM the processor is emulated, and a
# kernel takes some minutes.
#
#   [ACCELERATOR=tcg] [LIMIT_S=900] scripts/kernels.sh [VMLINUZ...]
#
# Without arguments it is the newest kernel of each series that apt offers, and on Debian the newest one of each later
# release. Any other will do that has its BTF (CONFIG_DEBUG_INFO_BTF) and needs no module to read an initial file system.
set -euo pipefail
. "$(dirname "$0")/env.sh"

OUT=target/kernels
LIMIT_S=${LIMIT_S:-900}
# kvm or tcg: there are machines whose KVM runs no other kernel.
ACCELERATOR=${ACCELERATOR:-$([ -w /dev/kvm ] && echo kvm || echo tcg)}
MEMORY=2G
CPUS=2

for tool in qemu-system-x86_64 cpio busybox; do
    have "$tool" || fail "$tool is missing (make setup-kernels)"
done
mkdir -p "$OUT"

# Releases of Debian whose newest kernels are run, besides those of this machine's own sources.
DEBIANS="trixie trixie-backports"
APT=$ROOT/$OUT/apt
# Runs a program of apt with the sources of a release, or with those of this machine: apt_of "" apt-cache ..
apt_of() {
    local place=$APT/$1 command=$2
    [ -n "$1" ] || { "${@:2}"; return; }
    "$command" -o Dir::Etc::SourceList="$place/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$place/lists" \
        -o Dir::Cache="$place/cache" -o APT::Sandbox::User=root "${@:3}"
}
# Prints the releases that the mirror of this machine has; none where it is no Debian.
releases() {
    local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg suite
    mirror=$(grep -hoE '^(URIs:|deb) +(\[[^]]*\] +)?http[^ ]*/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE 'http[^ ]*' | head -1) || true
    [ -n "$mirror" ] && [ -e "$keys" ] || return 0
    for suite in $DEBIANS; do
        mkdir -p "$APT/$suite"/{lists,cache/archives}/partial
        echo "deb [signed-by=$keys] $mirror $suite main" >"$APT/$suite/sources.list"
        if apt_of "$suite" apt-get update -q >"$APT/$suite/log" 2>&1; then
            echo "$suite"
        else
            warn "no kernel of $suite: $APT/$suite/log"
        fi
    done
}

# The newest of each series: "6.1 linux-image-6.1.0-50-cloud-amd64".
offered() {
    apt_of "$1" apt-cache search --names-only '^linux-image-[0-9.]+[^ ]*-(cloud-amd64|generic)$' |
        awk '{ split($1, part, "-"); split(part[3], n, /[.+~]/); print n[1] "." n[2], $1 }' |
        sort -V -k2 | awk '{ newest[$1] = $2 } END { for (s in newest) print newest[s] }' | sort -V
}

fetch() {
    local release=$1 package=$2 place=$OUT/$2 found
    found=$(find "$place" -name 'vmlinuz*' 2>/dev/null | head -1) || true
    if [ -z "$found" ]; then
        mkdir -p "$place"
        # Newer packages have the kernel itself in another one.
        for part in "$package" "${package/image/binary}"; do
            (cd "$place" && apt_of "$release" apt-get download -q "$part" >log 2>&1 && dpkg-deb -x ./*.deb . && rm -rf ./*.deb) ||
                { warn "cannot fetch $part: $place/log"; return 1; }
            found=$(find "$place" -name 'vmlinuz*' | head -1)
            [ -z "$found" ] || break
        done
    fi
    echo "$found"
}

# A program at the same place in the guest, with the libraries that it needs.
take() {
    local library
    mkdir -p "$ROOT_FS$(dirname "$1")"
    cp -L "$1" "$ROOT_FS$1"
    { strip --strip-debug "$ROOT_FS$1" || true; } 2>/dev/null
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$ROOT_FS$(dirname "$library")"
        cp -Lu "$library" "$ROOT_FS$library"
    done
}

# The test programs that were built last.
test_programs() {
    cargo test -q -p whit-bpf --tests --locked --no-run --message-format=json |
        grep -o '"executable":"[^"]*"' | cut -d'"' -f4
}

say "kernels: building"
cargo_build -p whit --locked
make -s -C bench/workloads
ROOT_FS=$ROOT/$OUT/root
rm -rf "$ROOT_FS"
mkdir -p "$ROOT_FS"/{bin,proc,sys,tmp,dev,root,work}
cp -L "$(command -v busybox)" "$ROOT_FS/bin/busybox"
WHIT=$ROOT/target/debug/whit LOAD=$ROOT/target/workloads/pingpong SERVER=$ROOT/target/workloads/sockets
take "$WHIT"
take "$LOAD"
take "$SERVER"
tests=()
while read -r program; do
    take "$program"
    tests+=("$program")
done < <(test_programs)
mkdir -p "$ROOT_FS$ROOT/crates/record/whit-bpf"

cat >"$ROOT_FS/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root RUST_BACKTRACE=0 WHIT_TEST_MACHINE=1
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mkdir -p /dev/shm /sys/fs/cgroup
mount -t tmpfs shm /dev/shm; mount -t tracefs tracefs /sys/kernel/tracing; mount -t cgroup2 cgroup /sys/fs/cgroup
echo "GUEST-KERNEL \$(uname -r)"
# cgroups have their perf_event state from the first controller on that is switched on.
mkdir /sys/fs/cgroup/idle
for counters in on off; do
    $WHIT stat -a -e cpu-clock -G idle --bpf-counters=\$counters true 2>&1 |
        grep -o 'echo +pids > /sys/fs/cgroup/cgroup.subtree_control' || echo "GUEST-SILENT \$counters"
done
echo +pids >/sys/fs/cgroup/cgroup.subtree_control
cd $ROOT/crates/record/whit-bpf
for test in ${tests[*]}; do echo "\$test"; \$test --test-threads=1; done
cd /tmp
$WHIT doctor | grep -E 'bpf engine|BTF'
$WHIT record --engine=bpf --switch-events --wakeups -F 997 -g -e cpu-clock -o a.data -- $LOAD --threads 4 --iterations 2000 &&
    $WHIT switches -q -i a.data --per-thread && echo GUEST-RECORDED
# A server whose threads hand requests over: each has its own end where the kernel says when a call begins to send.
ifconfig lo 127.0.0.1 up
$WHIT record -q --engine=bpf --request web=tcp:7117 -o b.data -- $SERVER --mode queue --requests 50 >b.txt &&
    $WHIT requests -i b.data | sed -n 's/^# Requests: \(.*\)/GUEST-REQUESTS \1/p; s/^# \(.*left out.*\)/GUEST-REQUESTS \1/p'
poweroff -f
INIT
chmod +x "$ROOT_FS/init"
(cd "$ROOT_FS" && find . | cpio -o -H newc --quiet | gzip -1) >"$OUT/root.gz"

boot() {
    # An emulator that runs CPUs side by side trips over code that the kernel changes while it runs.
    local accelerator=tcg,thread=single processor=max
    [ "$ACCELERATOR" = kvm ] && accelerator=kvm processor=host
    timeout "$LIMIT_S" qemu-system-x86_64 -accel "$accelerator" -cpu "$processor" -smp "$CPUS" -m "$MEMORY" \
        -nographic -no-reboot -kernel "$1" -initrd "$OUT/root.gz" \
        -append "console=ttyS0 quiet panic=-1 nokaslr" </dev/null >"$2" 2>&1 || warn "QEMU ended with $?: $2"
}

# A kernel's version, which some packages have in the name of its folder alone.
name_of() {
    [ "$(basename "$1")" = vmlinuz ] && basename "$(dirname "$1")" || basename "$1"
}

# What a log comes to, in one line; fails unless all of it went well.
told() {
    local log=$1 sums recorded
    sums=$(tr -d '\r' <"$log" | awk '/^test result: / { p += $4; f += $6; n++ } /^skipped / { s++ }
        END { printf "%d programs of tests: %d passed, %d failed, %d skipped", n, p, f, s }')
    recorded=$(tr -d '\r' <"$log" | sed -n 's/^\[ whit record: \(.*\) in a.data; \(lost [0-9]*\).*/\1, \2/p')
    say "$(basename "$log" .log): $sums; recorded: ${recorded:-nothing}"
    [[ $sums == "${#tests[@]} programs"*" 0 failed"* && $recorded == *"lost 0" ]] &&
        grep -q GUEST-RECORDED "$log" && ! grep GUEST-SILENT "$log" && has_requests "$log"
}

# All requests of the server; none before Linux 6.3, which has no place for their programs.
has_requests() {
    tr -d '\r' <"$1" | grep '^GUEST-REQUESTS' >"$1.requests" || true
    if grep -q 'the tracepoint sock_recv_length (since Linux 6.3)' "$1"; then
        say "$(basename "$1" .log): skipped: requests by sockets: the kernel has no sock_recv_length"
    else
        [ "$(cat "$1.requests")" = 'GUEST-REQUESTS web (200 calls)' ] || { cat "$1.requests"; return 1; }
    fi
}

kernels=("$@")
if [ $# = 0 ]; then
    for package in $(offered ""); do
        kernel=$(fetch "" "$package") && kernels+=("$kernel")
    done
    for release in $(releases); do
        package=$(offered "$release" | tail -1)
        kernel=$(fetch "$release" "$package") && kernels+=("$kernel")
    done
fi
[ ${#kernels[@]} != 0 ] || fail "no kernel: name one (scripts/kernels.sh VMLINUZ), or apt-get update first"

for kernel in "${kernels[@]}"; do
    [ -r "$kernel" ] || fail "cannot read the kernel $kernel: name a vmlinuz, or none for those that apt offers"
done

failures=0
for kernel in "${kernels[@]}"; do
    log=$OUT/$(name_of "$kernel").log
    say "kernels: $(name_of "$kernel")"
    boot "$kernel" "$log"
    if ! told "$log"; then
        failures=$((failures + 1))
        warn "what went wrong is in $log; where there is nothing, KVM may not run this kernel: ACCELERATOR=tcg"
        grep -aE 'FAILED|panicked|^error|Kernel panic' "$log" | head -20 || true
    fi
done
[ "$failures" = 0 ] || fail "$failures of ${#kernels[@]} kernels"
