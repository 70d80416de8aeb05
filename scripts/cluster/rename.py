"""Changes the header of a recording, so that it comes from another host, by another whit, or with another clock.

    rename.py RECORDING [--host NAME] [--version TEXT] [--clock-ahead SECONDS]
"""

import argparse
import struct
import sys

HOSTNAME, VERSION, CLOCK_DATA = 3, 5, 29
# Where the header has offset and size of the records, and the bits of its features.
DATA, FEATURES = 40, 72


def sections(recording):
    """Offset and size of each feature, whose descriptions stand behind the records."""
    recording.seek(DATA)
    offset, size = struct.unpack("<QQ", recording.read(16))
    recording.seek(FEATURES)
    bits = int.from_bytes(recording.read(32), "little")
    recording.seek(offset + size)
    present = [bit for bit in range(256) if bits >> bit & 1]
    return {bit: struct.unpack("<QQ", recording.read(16)) for bit in present}


def set_text(recording, section, text):
    offset, size = section
    room = size - 4
    content = text.encode()
    if len(content) >= room:
        sys.exit(f"{text} is too long: there are {room} bytes")
    recording.seek(offset)
    recording.write(struct.pack("<I", room) + content.ljust(room, b"\0"))


def add_seconds(recording, section, seconds):
    # Behind the version and the clock stands the time of day.
    at = section[0] + 8
    recording.seek(at)
    (ns,) = struct.unpack("<Q", recording.read(8))
    recording.seek(at)
    recording.write(struct.pack("<Q", ns + seconds * 10**9))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recording")
    parser.add_argument("--host")
    parser.add_argument("--version")
    parser.add_argument("--clock-ahead", type=int)
    options = parser.parse_args()
    with open(options.recording, "r+b") as recording:
        found = sections(recording)
        if options.host:
            set_text(recording, found[HOSTNAME], options.host)
        if options.version:
            set_text(recording, found[VERSION], options.version)
        if options.clock_ahead:
            add_seconds(recording, found[CLOCK_DATA], options.clock_ahead)


main()
