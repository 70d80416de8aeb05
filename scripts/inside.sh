#!/usr/bin/env bash
# Runs a command in a root directory that sees this machine's processes and devices, and nothing else of it.
#
#   scripts/inside.sh ROOT COMMAND...     ROOT may be /
#
# The command has tracefs, and control groups of version 2 alone at /sys/fs/cgroup, as systemd mounts them. The mounts
# end with the command. Needs root.
set -euo pipefail
[ $# -ge 2 ] || {
    echo "usage: scripts/inside.sh ROOT COMMAND..." >&2
    exit 2
}
exec unshare --mount -- sh -e -c '
    mount --make-rprivate /
    root=${0%/}
    if [ -n "$root" ]; then
        mount -t proc proc "$root/proc"
        mount -t sysfs sysfs "$root/sys"
        mount --rbind /dev "$root/dev"
    else
        umount -R /sys/fs/cgroup 2>/dev/null || true
    fi
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    [ -d "$root/sys/kernel/tracing/events" ] || mount -t tracefs tracefs "$root/sys/kernel/tracing"
    exec chroot "$0" "$@"' "$@"
