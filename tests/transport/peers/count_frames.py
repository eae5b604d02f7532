"""Checks every line of stdin: ``<number> <letter repeated>``. Says what it got when stdin ends, or on a ``?`` line.

The first argument is seconds to sleep between reads of 4 KiB: a slow reader.
"""

import json
import os
import sys
import time

pause = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
rest = b""
seen: "list[int]" = []
torn = 0
while True:
    chunk = os.read(0, 4096 if pause else 65536)
    if not chunk:
        break
    if pause:
        time.sleep(pause)
    *lines, rest = (rest + chunk).split(b"\n")
    for line in lines:
        if line == b"?":
            report = {"seen": seen, "torn": torn}
            os.write(1, json.dumps(report).encode() + b"\n")
            continue
        number, _, body = line.partition(b" ")
        if not number.isdigit() or not body or body.strip(body[:1]):
            torn += 1
        else:
            seen.append(int(number))
