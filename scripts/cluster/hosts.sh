#!/usr/bin/env bash
# Records three hosts at different rates, and exports them into a dataset.
#
#   hosts.sh WHIT WORKLOADS FOLDER ROUNDS
#
# FOLDER gets HOST.data and the dataset `lake`. All hosts are this machine: their recordings get other names. One has
# waits for locks with addresses and wakers, one has switches and cgroups, one has losses.
set -euo pipefail
whit=$1 workloads=$2 folder=$3 rounds=$4
here=$(dirname "$0")
golden=$here/../../tests/recordings/golden/losses/recording.data

record() {
    local host=$1
    shift
    "$whit" record -q -e cpu-clock:u -k monotonic -o "$folder/$host.data" "$@" >"$folder/$host.out"
    python3 "$here/rename.py" "$folder/$host.data" --host "$host"
}

record web1 -F 99 --engine=bpf --wakeups --all-cgroups -- "$workloads/mutexes" --rounds "$rounds"
record web2 -F 997 --engine=ring -g --switch-events --all-cgroups -- \
    "$workloads/pingpong" --threads 2 --iterations $((rounds * 1000))
record db1 -F 499 --engine=ring -g --all-cgroups -- "$workloads/shares" faster:0 $((rounds * 20000))
cp "$golden" "$folder/losses.data"
python3 "$here/rename.py" "$folder/losses.data" --host db1
for host in web1 web2 db1 losses; do
    "$whit" export --parquet "$folder/lake" -i "$folder/$host.data"
done
