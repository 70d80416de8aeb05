#!/usr/bin/env bash
# Makes the recordings of this folder anew that a real perf makes: perf-*. All others come from
# the generator in crates/whit/whit/tests/whole_program/golden (see README.md). Afterwards the expected output has
# to be made anew as well:
#
#   record.sh && WHIT_BLESS=1 cargo test -p whit --test whole_program golden::
#
# Needs root, perf with zstd, gcc that can -m32, and /opt, where the recorded programs lie: the
# reports find them below root/ with --symfs. Neither the name of this machine nor its kernel's
# release, nor its environment, gets into the recordings.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
programs=/opt/whit-golden

if [ "${1:-}" != inside ]; then
    exec unshare --uts -- "$0" inside
fi
hostname golden

mkdir -p "$programs" root/opt
build() {
    local name=$1
    shift
    gcc -O1 -g0 -static -nostdlib -no-pie -fno-stack-protector -fcf-protection=none \
        -Wl,--build-id=none -Wl,-z,noseparate-code "$@" -o "$programs/$name"
    objcopy --remove-section=.comment --remove-section=.note.gnu.property "$programs/$name"
}
build spin -fno-omit-frame-pointer -fno-asynchronous-unwind-tables programs/spin.c
build spin-dwarf -fomit-frame-pointer -fasynchronous-unwind-tables programs/spin.c
build spin-32 -m32 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables programs/spin.c
build spin-long -DTURNS=2000 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables programs/spin.c
build family -fno-omit-frame-pointer -fno-asynchronous-unwind-tables programs/family.c
rm -rf root/opt/whit-golden
cp -r "$programs" root/opt/

# The release of the kernel, in place: features are padded with zeros.
forget_release() {
    local release pad
    release=$(uname -r)
    pad=$((${#release} - 4))
    [ "$pad" -ge 0 ]
    find "$1" -type f -exec sed -i "s/${release//./\\.}/5.10$(printf '\\x00%.0s' $(seq 1 "$pad"))/g" {} +
    chmod -R u=rwX,go=rX "$1"
}

# record NAME PROGRAM OPTIONS...
record() {
    local name=$1 program=$2
    shift 2
    rm -rf "perf-$name"
    mkdir "perf-$name"
    (
        cd "perf-$name"
        env -i PATH="$PATH" PERF_CONFIG=/dev/null \
            perf record --no-buildid --no-buildid-cache "$@" -o recording.data -- "$programs/$program"
    )
    forget_release "perf-$name"
}

clock=(-e cpu-clock:u -c 2000000)
record fp spin "${clock[@]}" -g
record dwarf spin-dwarf "${clock[@]}" --call-graph dwarf,512
record zstd spin "${clock[@]}" -g -z
record threads spin "${clock[@]}" -g --threads
record group spin -e '{cpu-clock,task-clock}:uS' -e page-faults:u -c 4000000
record switches spin "${clock[@]}" --switch-events
record data spin "${clock[@]}" -d -W --phys-data --data-page-size --code-page-size
record registers spin "${clock[@]}" --intr-regs=ip,sp,flags --user-regs=ip,sp,bp,r8
record 32bit spin-32 "${clock[@]}" --call-graph dwarf,512
record family family "${clock[@]}" -g
record cgroups spin "${clock[@]}" --namespaces --all-cgroups
# One program in several cgroups of version 2, of which the first is removed and made again.
record_in_cgroups() {
    local top=$(findmnt -nt cgroup2 -o TARGET | head -1)
    local id=$(printf '3f1c8a0d9be24756%.0s' 1 2 3 4)
    local pod=kubepods-pod0d2a1b3c_1111_2222_3333_444455556666.slice
    rm -rf perf-containers
    mkdir perf-containers
    (
        cd perf-containers
        env -i PATH="$PATH" PERF_CONFIG=/dev/null \
            perf record --no-buildid --no-buildid-cache "${clock[@]}" --all-cgroups -o recording.data -- \
            sh -c 'top=$1; program=$2; shift 2
                for path; do
                    mkdir -p "$top/$path"; echo $$ >"$top/$path/cgroup.procs"; "$program"
                    echo $$ >"$top/cgroup.procs"; rmdir -p "$top/$path" 2>&-
                done; :' \
            sh "$top" "$programs/spin" golden.slice/web.service "golden.slice/docker-$id.scope" \
            "$pod/cri-containerd-$id.scope" golden.slice/web.service
    )
    forget_release perf-containers
}
record_in_cgroups
record clockid spin "${clock[@]}" -k CLOCK_MONOTONIC
record tracepoint spin -e sched:sched_process_exec -e sched:sched_process_exit

# Pipes, and what a killed perf leaves behind.
record_pipe() {
    local name=$1
    shift
    rm -rf "$name"
    mkdir "$name"
    (
        cd "$name"
        env -i PATH="$PATH" PERF_CONFIG=/dev/null \
            perf record --no-buildid --no-buildid-cache "$@" -o - -- "$programs/spin" | cat >recording.data
    )
    forget_release "$name"
}
record_pipe perf-pipe "${clock[@]}" -g
record_pipe perf-pipe-tracepoint -e sched:sched_process_exec -e sched:sched_process_exit
rm -rf perf-killed
mkdir perf-killed
(
    cd perf-killed
    env -i PATH="$PATH" PERF_CONFIG=/dev/null \
        perf record --no-buildid --no-buildid-cache -e cpu-clock:u -c 10000000 -g -m 1 -o recording.data -- \
        "$programs/spin-long" &
    recorder=$!
    sleep 1
    program=$(pgrep -P "$recorder")
    kill -9 "$recorder"
    kill "$program"
    wait "$recorder" || true
)
forget_release perf-killed
cd "$here"
du -sk perf-*
