#!/usr/bin/env bash
# Puts the recorded program below DIR, at the path that the recording has for it:
#
#   unpack.sh DIR && whit report --symfs DIR -i demo.data
set -euo pipefail
root=${1:?usage: unpack.sh DIR}
mkdir -p "$root/opt/whit-demo"
gzip -d -c "$(dirname "$0")/deep.gz" >"$root/opt/whit-demo/deep"
chmod 755 "$root/opt/whit-demo/deep"
