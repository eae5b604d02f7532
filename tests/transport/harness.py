"""A recording sink, and servers of a few lines to connect to."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from mcpsync.deadline import Deadline
from mcpsync.errors import McpError
from mcpsync.transport.base import Frame
from mcpsync.transport.stdio import StdioTransport

PEERS = Path(__file__).parent / "peers"
PATIENCE = 20.0
ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line); sys.stdout.buffer.flush()\n"


class Recorder:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.warnings: List[Tuple[str, str]] = []
        self.losses: queue.SimpleQueue[McpError] = queue.SimpleQueue()

    def frame(self, data: bytes, stream: object) -> None:
        self.frames.put(data)

    def alive(self, stream: object) -> None:
        raise AssertionError("stdio has no heartbeat")

    def lost(self, cause: McpError) -> None:
        self.losses.put(cause)

    def warn(self, kind: str, detail: str) -> None:
        self.warnings.append((kind, detail))

    def next(self) -> bytes:
        return self.frames.get(timeout=PATIENCE)

    def loss(self) -> McpError:
        return self.losses.get(timeout=PATIENCE)


class Call:
    """A request, as a transport sees it."""

    def __init__(self, request_id: int = 1) -> None:
        self.request_id = request_id
        self.answered = False


class Connected:
    """An open transport with its reader thread."""

    def __init__(self, transport: Any, sink: Optional[Recorder] = None) -> None:
        self.transport = transport
        self.sink = sink if sink is not None else Recorder()
        transport.open(Deadline(PATIENCE))
        self.reader = threading.Thread(target=transport.run, args=(self.sink,), name="mcpsync-test-reader")
        self.reader.start()

    def send(self, data: bytes, request: Optional[Call] = None, seconds: float = PATIENCE) -> None:
        self.transport.send(Frame(data), request, Deadline(seconds))

    def close(self, seconds: float = PATIENCE) -> float:
        """Close, and say how many seconds it took."""
        start = time.monotonic()
        self.transport.close(Deadline(seconds))
        return time.monotonic() - start


def python(code: str, *arguments: str) -> List[str]:
    """A command that runs Python code, without the start-up of site."""
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


def peer(name: str, *arguments: str) -> List[str]:
    """A command that runs a script of the folder ``peers``."""
    return [sys.executable, "-I", "-S", str(PEERS / name), *arguments]


@contextmanager
def connected(command: Sequence[str], **options: Any) -> Iterator[Connected]:
    connection = Connected(StdioTransport(command, **options))
    try:
        yield connection
    finally:
        connection.transport.close(Deadline(PATIENCE))
        connection.reader.join(PATIENCE)
        assert not connection.reader.is_alive()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def running(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        text = Path("/proc/%d/stat" % pid).read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """For what gives no event: another program's process."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
