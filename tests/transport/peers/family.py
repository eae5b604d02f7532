"""A wrapper: starts a grandchild, tells both process ids, and then does as its first argument says.

``wait``: lives on, reads stdin to its end. ``die``: exits 3 on the first line. The second argument is what the
grandchild does: ``group`` stays in the group, ``session`` makes a session of its own; both ignore the end of stdin and
SIGTERM, and keep all pipes open. ``plain`` ends at SIGTERM.
"""

import json
import os
import signal
import sys

mode, kind = sys.argv[1:3]
grandchild = os.fork()
if grandchild == 0:
    if kind == "session":
        os.setsid()
    if kind != "plain":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready = os.getpid()
    os.write(1, json.dumps({"grandchild": ready}).encode() + b"\n")
    while True:
        signal.pause()
os.write(1, json.dumps({"wrapper": os.getpid()}).encode() + b"\n")
for line in sys.stdin.buffer:
    if mode == "die":
        os.write(2, b"wrapper gives up\n")
        os._exit(3)
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
