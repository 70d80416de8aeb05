#!/bin/busybox sh
# The first program of the kernel that scripts/arm64.sh boots. Each check prints a line that begins with PASSED or FAILED.
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/root RUST_BACKTRACE=0
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
echo "GUEST kernel $(uname -r), PMUs: $(ls /sys/bus/event_source/devices | tr '\n' ' ')"

# check NAME COMMAND...
check() {
    name=$1
    shift
    if timeout 60 "$@" >/tmp/output 2>&1; then
        echo "PASSED $name"
    else
        echo "FAILED $name ($*)"
        tail -n 30 /tmp/output
    fi
}

# holds NAME PATTERN COMMAND...: the command's output has a line of that form.
holds() {
    name=$1 pattern=$2
    shift 2
    timeout 60 "$@" >/tmp/output 2>&1
    if grep -qE -e "$pattern" /tmp/output; then
        echo "PASSED $name"
    else
        echo "FAILED $name: no line '$pattern' ($*)"
        tail -n 30 /tmp/output
    fi
}

# alike EVENT: whit counts of the emulated PMU what perf counts, as far as two runs of a program are alike.
alike() {
    ours=$(awk -v event="$1:u" '$2 == event { print $1 }' /tmp/whit.count)
    theirs=$(awk -v event="$1:u" '$2 == event { print $1 }' /tmp/perf.count)
    echo "GUEST $1: whit ${ours:-none}, perf ${theirs:-none} (emulated PMU)"
    if awk -v a="$ours" -v b="$theirs" 'BEGIN { exit !(a > 0 && b > 0 && a / b > 0.99 && a / b < 1.01) }'; then
        echo "PASSED counts of $1"
    else
        echo "FAILED counts of $1"
        cat /tmp/whit.count /tmp/perf.count
    fi
}

load="/work/deep --iterations 2000"
check version whit --version
whit stat -e cycles:u,instructions:u -- $load 2>/tmp/whit.count >/dev/null
perf stat -e cycles:u,instructions:u -- $load 2>/tmp/perf.count >/dev/null
sed -i 's/,//g' /tmp/whit.count /tmp/perf.count
alike cycles
alike instructions
holds 'stat of a group' ' [1-9][0-9,]* +instructions' whit stat -e '{cycles,instructions}' -- $load
holds 'more events than counters take turns' 'cycles .*\([1-9][0-9.]+%\)' \
    whit stat -e cycles,instructions,r08,r11,r12,r10,r04,r03 -- $load
check 'record dumps of stacks by cycles' \
    whit record -q --engine=ring -e cycles -F 499 --call-graph dwarf -o /tmp/dwarf.data -- $load
check 'record frame pointers' \
    whit record -q --engine=ring -e cpu-clock -F 499 --call-graph fp -o /tmp/fp.data -- /work/deep-fp --iterations 2000
for chains in dwarf fp; do
    holds "outermost frames of $chains" '---_start$' whit report --stdio -i /tmp/$chains.data
    holds "frames of $chains" ' pipeline::Pipeline<30>::stage' whit report --stdio -i /tmp/$chains.data
done
echo GUEST-END
poweroff -f
