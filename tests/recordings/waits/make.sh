#!/usr/bin/env bash
# Makes waits.data of this folder anew: samples, context switches with stacks, wake-ups and cgroups of a program whose
# threads wait for each other's mutexes. The recording has the names of its functions, so no binary comes with it.
#
# The program and whit are recorded at paths of no machine's. Needs root, or what `whit doctor` asks for, and the right
# to write to /opt.
set -euo pipefail
cd "$(dirname "$0")"
top=$(cd ../../.. && pwd)
place=/opt/whit-demo

make -s -C "$top/bench/workloads" mutexes
cargo build --quiet --manifest-path "$top/Cargo.toml" -p whit
mkdir -p $place
cp "$top/target/workloads/mutexes" "$top/target/debug/whit" $place
(
    cd $place
    ./whit record --engine=bpf --wakeups --all-cgroups --embed-symbols -e cpu-clock -F 4999 -o waits.data \
        -- $place/mutexes --rounds 8
)
install -m 644 $place/waits.data waits.data
