"""What the tests of HTTP share: a transport with its reader, a sink that records, requests that time out."""

from __future__ import annotations

import itertools
import json
import os
import queue
import threading
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import McpError
from mcpsync.transport.base import Frame, StreamId
from mcpsync.transport.http.endpoint import Endpoint
from mcpsync.transport.http.streamable import StreamableHttp

PATIENCE = 20.0
SOON = 0.1
"""Seconds within which an exchange is over that was ended."""

MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
LEGACY = {"MCP-Protocol-Version": "2025-11-25"}


class Call:
    """A request, as a transport sees it."""

    def __init__(self, request_id: int) -> None:
        self.request_id = request_id
        self.answered = False


class Recorder:
    """A sink that keeps what it gets, and retires the requests that are answered."""

    def __init__(self) -> None:
        self.frames: queue.SimpleQueue[Tuple[Dict[str, Any], StreamId]] = queue.SimpleQueue()
        self.pulse: queue.SimpleQueue[StreamId] = queue.SimpleQueue()
        self.losses: queue.SimpleQueue[McpError] = queue.SimpleQueue()
        self.broken_ones: queue.SimpleQueue[Tuple[Any, McpError]] = queue.SimpleQueue()
        self.warnings: List[Tuple[str, str]] = []
        self.calls: Dict[int, Call] = {}
        self.answers: Dict[int, Dict[str, Any]] = {}

    def frame(self, data: bytes, stream: StreamId) -> None:
        try:
            decoded = json.loads(data)
        except ValueError:
            return
        for message in decoded if isinstance(decoded, list) else [decoded]:
            if "method" not in message and message.get("id") in self.calls:
                self.answers[message["id"]] = message
                self.calls[message["id"]].answered = True
            self.frames.put((message, stream))

    def alive(self, stream: StreamId) -> None:
        self.pulse.put(stream)

    def lost(self, cause: McpError) -> None:
        self.losses.put(cause)

    def broken(self, request: Any, cause: McpError) -> None:
        self.broken_ones.put((request, cause))

    def warn(self, kind: str, detail: str) -> None:
        self.warnings.append((kind, detail))

    def next(self) -> Dict[str, Any]:
        return self.frames.get(timeout=PATIENCE)[0]


class Wired:
    """An open transport with its reader."""

    def __init__(self, transport: Any, headers: Mapping[str, str] = MODERN) -> None:
        self.transport = transport
        self.sink = Recorder()
        self._headers = headers
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self.sent_at = 0.0
        transport.open(Deadline(PATIENCE))
        self.reader = threading.Thread(target=transport.run, args=(self.sink,), name="mcpsync-test-reader")
        self.reader.start()

    def new_call(self) -> Call:
        with self._lock:
            call = Call(next(self._ids))
        self.sink.calls[call.request_id] = call
        return call

    def send(
        self, call: Call, params: Any = None, method: str = "tools/call", seconds: Optional[float] = PATIENCE
    ) -> Any:
        """Send a request and give its result, or the whole message of an error."""
        message = {"jsonrpc": "2.0", "id": call.request_id, "method": method, "params": params}
        frame = Frame(json.dumps(message).encode(), method, self._headers)
        self.sent_at = time.monotonic()
        self.transport.send(frame, call, FOREVER if seconds is None else Deadline(seconds))
        answer = self.sink.answers.get(call.request_id)
        return None if answer is None else answer.get("result", answer.get("error"))

    def ask(self, params: Any = None, method: str = "tools/call", seconds: Optional[float] = PATIENCE) -> Any:
        return self.send(self.new_call(), params, method, seconds)

    def note(self, params: Any = None, seconds: float = PATIENCE) -> None:
        data = json.dumps({"jsonrpc": "2.0", "method": "notifications/x", "params": params}).encode()
        self.transport.send(Frame(data, "notifications/x", self._headers), None, Deadline(seconds))

    def asking(self, call: Call, seconds: Optional[float] = None, **more: Any) -> Asking:
        return Asking(self, call, seconds, **more)

    def close(self, seconds: float = PATIENCE) -> float:
        start = time.monotonic()
        self.transport.close(Deadline(seconds))
        took = time.monotonic() - start
        self.reader.join(PATIENCE)
        assert not self.reader.is_alive()
        return took


class Asking:
    """A request that is sent on a thread."""

    def __init__(self, wired: Wired, call: Call, seconds: Optional[float], **more: Any) -> None:
        self.outcome: Any = None
        self.over_at = 0.0

        def run() -> None:
            try:
                self.outcome = wired.send(call, seconds=seconds, **more)
            except McpError as error:
                self.outcome = error
            self.over_at = time.monotonic()

        self.thread = threading.Thread(target=run, name="mcpsync-test-caller")
        self.thread.start()

    def join(self) -> Any:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.outcome


@contextmanager
def wired(
    url: str, *, headers_sent: Mapping[str, str] = MODERN, max_message: int = 64 << 20, **options: Any
) -> Iterator[Wired]:
    """A transport to a URL, open until the block ends."""
    connection = Wired(StreamableHttp(Endpoint(url, **options), max_message=max_message), headers_sent)
    try:
        yield connection
    finally:
        connection.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def until(condition: Any, seconds: float = PATIENCE) -> bool:
    """For what gives no event."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True
