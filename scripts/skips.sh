#!/usr/bin/env bash
# Judges the skips of a test run against tests/expected-skips.
#
#   scripts/skips.sh LOG [LIST]     prints each skip that this machine does not explain; fails if there is one
#   scripts/skips.sh --self-test    checks the judgement itself
#
# LOG has a line "test: reason" for each skip. LIST has lines "condition | test: reason", the latter as a shell
# pattern: such a skip is expected where the condition holds. Conditions are asked of the machine here, by
# other means than the tests' own probes (perf, /sys, /proc), so that a probe that is wrong shows.
#
# A measured test may say that other programs disturbed it ("too busy to judge"), but only so many of them: beside two
# busy loops some two do.
set -euo pipefail
cd "$(dirname "$0")/.."

TOO_BUSY_MAX=5

have() { command -v "$1" >/dev/null 2>&1; }
perf() { command "${PERF:-perf}" "$@"; }

# The first version of "6.18.44-generic" that is at least $1 (major) and $2 (minor).
kernel_since() {
    local release major minor
    release=$(uname -r)
    major=${release%%.*}
    minor=${release#*.}
    minor=${minor%%[!0-9]*}
    [ "$major" -gt "$1" ] || { [ "$major" -eq "$1" ] && [ "$minor" -ge "$2" ]; }
}

# What perf counts of a command; "<not supported>" is no number.
counts() {
    local value
    value=$(perf stat -x, -e "$1" -- true 2>&1 >/dev/null | grep -v '^#' | head -n 1 | cut -d, -f1)
    [[ $value =~ ^[0-9]+$ ]]
}

# Whether a CPU leaves a task that no tracepoint showed it go to: there are kernels that show no switches of some
# tasks of their own, now and then. Asked of perf's records of all switches around short processes, up to the first one.
hides_switches() {
    local _
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        ! hides_one || return 0
    done
    return 1
}

hides_one() {
    local data hidden
    data=$(mktemp)
    hidden=$(perf record -q -a -m 4M -e sched:sched_switch -o "$data" -- \
        sh -c 'for i in $(seq 200); do /bin/true | /bin/true; done' >/dev/null 2>&1 &&
        perf script -f -i "$data" -F cpu,trace 2>/dev/null |
        awk '{ cpu = $1; match($0, /prev_pid=[0-9]+/); from = substr($0, RSTART + 9, RLENGTH - 9)
               match($0, /next_pid=[0-9]+/); to = substr($0, RSTART + 9, RLENGTH - 9)
               if (cpu in last && last[cpu] != from) hidden++
               last[cpu] = to }
             END { print hidden + 0 }')
    rm -f "$data"
    [ "${hidden:-0}" -gt 0 ]
}

# condition NAME: whether this machine is of this kind.
condition() {
    case $1 in
        always) true ;;
        # Where there is no perf to ask, the kernel's list of PMUs answers.
        no-pmu)
            if have "${PERF:-perf}"; then ! counts instructions:u; else
                [ ! -e /sys/bus/event_source/devices/cpu ] && [ ! -e /sys/bus/event_source/devices/cpu_core ]
            fi
            ;;
        no-perf) ! perf --version >/dev/null 2>&1 ;;
        no-newest-perf) ! "${NEWEST_PERF:-target/setup/newest-perf/perf}" --version >/dev/null 2>&1 ;;
        no-postgresql) ! ls /usr/lib/postgresql/*/bin/pgbench >/dev/null 2>&1 ;;
        no-zsh-or-fish) ! have zsh || ! have fish ;;
        no-groff) ! have groff ;;
        no-oldest-rust)
            ! ls ~/.rustup/toolchains/1.85* >/dev/null 2>&1 && ! apt-cache madison rustc-web 2>/dev/null | grep -q ' 1\.85\.'
            ;;
        # pyenv's own programs of these names refuse where no version is chosen.
        no-python-perf)
            for version in 3.12 3.13; do
                python$version -c '' >/dev/null 2>&1 || ls ~/.pyenv/versions/*/bin/python$version >/dev/null 2>&1 ||
                    return 0
            done
            return 1
            ;;
        # By the version behind the name: no-python-3.12, and no-python-3.11-of-the-system.
        no-python-*-of-the-system) ! "/usr/bin/python${1//[!0-9.]/}" -c '' >/dev/null 2>&1 ;;
        no-python-3.*)
            ! "python${1#no-python-}" -c '' >/dev/null 2>&1 && ! ls ~/.pyenv/versions/*/bin/"python${1#no-python-}" >/dev/null 2>&1
            ;;
        no-root) [ "$(id -u)" != 0 ] ;;
        no-whole-cpus) [ "$(id -u)" != 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 0 ] ;;
        # CAP_SYS_NICE has number 23.
        no-sys-nice) [ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 23 & 1)) = 0 ] ;;
        no-tracefs) [ ! -r /sys/kernel/tracing/events/sched ] && [ ! -r /sys/kernel/debug/tracing/events/sched ] ;;
        no-uprobes) [ ! -w /sys/kernel/tracing/uprobe_events ] && [ ! -w /sys/kernel/debug/tracing/uprobe_events ] ;;
        no-bpf) [ "$(id -u)" != 0 ] || [ ! -e /sys/kernel/btf/vmlinux ] || ! kernel_since 5 15 ;;
        no-lost-counts) ! kernel_since 6 0 ;;
        no-nmi-tracepoint) [ ! -d /sys/kernel/tracing/events/nmi ] ;;
        # The option of the kernel is that of the architecture.
        no-deferred-chains) ! condition deferred-chains ;;
        deferred-chains) kernel_since 6 19 && grep -q 'unwind_deferred_request$' /proc/kallsyms ;;
        no-sched-exit) ! grep -q ' __traceiter_sched_exit_tp$' /proc/kallsyms ;;
        no-kvm) [ ! -w /dev/kvm ] ;;
        # The list of symbols hides addresses from ordinary users, but never names.
        no-io-uring)
            ! grep -q '__x64_sys_io_uring_setup$\|__arm64_sys_io_uring_setup$' /proc/kallsyms ||
                [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0)" != 0 ]
            ;;
        no-sysrq) [ ! -w /proc/sysrq-trigger ] ;;
        no-ns-last-pid) [ ! -e /proc/sys/kernel/ns_last_pid ] ;;
        no-user-namespaces)
            [ "$(cat /proc/sys/user/max_user_namespaces 2>/dev/null || echo 0)" = 0 ] ||
                ! setpriv --reuid=54322 --clear-groups unshare --user --map-root-user --mount true 2>/dev/null
            ;;
        no-fanotify) [ "$(id -u)" != 0 ] || ! grep -q '__x64_sys_fanotify_init$\|__arm64_sys_fanotify_init$' /proc/kallsyms ;;
        no-second-cpu) [ "$(nproc --all)" -lt 2 ] ;;
        no-hotplug) [ ! -w /sys/devices/system/cpu/cpu1/online ] ;;
        no-test-machine) [ -z "${WHIT_TEST_MACHINE:-}" ] ;;
        perf-event-mounted) grep -q ' - cgroup .*perf_event' /proc/self/mountinfo ;;
        no-cpuacct) [ ! -e /sys/fs/cgroup/cpuacct/cpuacct.usage ] ;;
        no-cgroup-v2) ! grep -q ' - cgroup2 ' /proc/self/mountinfo || [ "$(id -u)" != 0 ] ;;
        # The first line is of all CPUs; its ninth word is the time that the hypervisor took.
        steal) [ "$(awk 'NR == 1 { print $9 }' /proc/stat)" != 0 ] ;;
        hides-switches) hides_switches ;;
        no-psi) ! { : >>/proc/pressure/cpu; } 2>/dev/null ;;
        # JDK 17 with its compiler.
        no-java) ! java -XX:+UnlockDiagnosticVMOptions -XX:-DumpPerfMapAtExit --describe-module jdk.compiler >/dev/null 2>&1 ;;
        no-dotnet) ! "${DOTNET_PYTHON:-python3}" -c 'import dotnetcore2, pythonnet, clr_loader' >/dev/null 2>&1 ;;
        no-systemd-analyze) ! have systemd-analyze ;;
        no-consumers) [ ! -e target/setup/consumers/with-mcp ] ;;
        no-spark) [ ! -d target/cluster/pyspark/deps/jars ] || [ ! -x target/cluster/python/bin/python ] || ! have java ;;
        no-collector) [ ! -x target/setup/receivers/bin/collector ] ;;
        no-parca) [ ! -x target/setup/receivers/bin/parca ] ;;
        no-otlp-reader) [ ! -x target/setup/consumers/read-otlp ] ;;
        no-chromium) ! have chromium && ! have chromium-browser && ! have google-chrome ;;
        no-libc-symbols) [ ! -d /usr/lib/debug/.build-id ] ;;
        # Any program by its name.
        no-*) ! have "${1#no-}" ;;
        *)
            echo "scripts/skips.sh knows no condition '$1'" >&2
            exit 2
            ;;
    esac
}

# expected LINE LIST: whether a line of the list explains it.
expected() {
    local line=$1 name pattern
    while IFS='|' read -r name pattern; do
        name=${name//[[:space:]]/}
        pattern=${pattern#"${pattern%%[![:space:]]*}"}
        pattern=${pattern%"${pattern##*[![:space:]]}"}
        [ -z "$name" ] || [ "${name:0:1}" = '#' ] && continue
        # shellcheck disable=SC2053 # it is a pattern
        [[ $line == $pattern ]] && condition "$name" && return 0
    done <"$2"
    return 1
}

judge() {
    local line unexpected=0 too_busy=0
    while IFS= read -r line; do
        if [[ $line == *': too busy to judge: '* ]]; then
            too_busy=$((too_busy + 1))
            [ $too_busy -gt $TOO_BUSY_MAX ] || continue
        fi
        expected "$line" "$2" && continue
        printf '%s\n' "$line"
        unexpected=1
    done < <(sort -u "$1")
    return $unexpected
}

self_test() {
    local dir status=0
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' RETURN
    printf '# a comment\nalways | one*: no PMU*\nno-no_such_program | two: *\nno-sh | three: *\n' >"$dir/list"
    printf 'one: no PMU here\ntwo: is missing\n' >"$dir/expected"
    judge "$dir/expected" "$dir/list" || { echo "expected skips are refused"; status=1; }
    printf 'one: no perf\nthree: no shell\nfour: whatever\n' >"$dir/unexpected"
    [ "$(judge "$dir/unexpected" "$dir/list" | wc -l)" = 3 ] || { echo "unexpected skips pass"; status=1; }
    seq $((TOO_BUSY_MAX + 1)) | sed 's/$/: too busy to judge: /' >"$dir/busy"
    [ "$(judge "$dir/busy" "$dir/list" | wc -l)" = 1 ] || { echo "busy machines have no bound"; status=1; }
    # Every condition of the real list is one that is known.
    sed -n 's/^\([a-z][a-z0-9.-]*\) *|.*/\1/p' tests/expected-skips | sort -u | while read -r name; do
        (condition "$name") || [ $? = 1 ] || exit 1
    done || status=1
    return $status
}

case ${1:-} in
    --self-test) self_test ;;
    '') echo "usage: scripts/skips.sh LOG [LIST] | --self-test" >&2; exit 2 ;;
    *) judge "$1" "${2:-tests/expected-skips}" ;;
esac
