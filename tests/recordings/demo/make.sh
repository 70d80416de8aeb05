#!/usr/bin/env bash
# Makes demo.data and deep.gz of this folder anew: the recording that `make demo` shows where
# the kernel refuses recording, and the program that it shows.
#
# The program is linked statically, so that it alone is needed to unwind and to name every
# frame. It lies at a path of no machine's: the report finds it with `--symfs`, below which
# `unpack.sh` puts it. Needs perf with zstd, g++, and the right to write to /opt.
set -euo pipefail
cd "$(dirname "$0")"
sources=$(cd ../../../bench/workloads && pwd)
program=/opt/whit-demo/deep

mkdir -p "$(dirname $program)"
g++ -std=c++17 -O2 -g -fomit-frame-pointer -static -no-pie -pthread -ffunction-sections \
    -Wl,--gc-sections "-ffile-prefix-map=$sources=bench/workloads" \
    "$sources/deep.cpp" -o $program
# Recorded from there, so that no other path gets into the file. User mode only: the names of
# this kernel's functions would be missing elsewhere.
(
    cd "$(dirname $program)"
    perf record --no-buildid-cache -e cpu-clock:u -F 999 --call-graph dwarf,4096 -z3 -m 16M \
        -o demo.data -- $program --iterations 50000
)
install -m 644 "$(dirname $program)/demo.data" demo.data
gzip -9 -n -c $program >deep.gz
