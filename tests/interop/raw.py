"""A peer spoken to with bare JSON-RPC lines, so that a test shows what the peer does, not what our client does."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

ANSWER_SECONDS = 60
Message = Dict[str, Any]
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
}


class RawPeer:
    """A server process and its pipes; a context manager that leaves no process behind.

    :param answers: method to a function that makes the result for a request of the server's
    :ivar heard: every notification and request that the server sent, in order
    """

    def __init__(
        self, command: Sequence[str], answers: Optional[Mapping[str, Callable[[Message], Message]]] = None
    ) -> None:
        self.heard: List[Message] = []
        self._answers = dict(answers or {})
        self._next_id = 0
        self._lines: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._stderr: List[bytes] = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self._threads = [threading.Thread(target=read, daemon=True) for read in (self._read_stdout, self._read_stderr)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def initialize(self, revision: str) -> Message:
        """The handshake of the legacy era; returns the server's result."""
        client = {"name": "raw", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": CAPABILITIES, "clientInfo": client}
        result = self.request("initialize", params)["result"]
        self.notify("notifications/initialized")
        return dict(result)

    def request(self, method: str, params: Optional[Message] = None) -> Message:
        """Send a request and return the whole response; what comes before it is answered or remembered."""
        return self.response(self.begin(method, params))

    def modern(self, method: str, params: Optional[Message] = None) -> Message:
        """As ``request``, with the metadata of the modern era."""
        given = dict(params or {})
        return self.request(method, {**given, "_meta": {**MODERN_META, **given.get("_meta", {})}})

    def begin(self, method: str, params: Optional[Message] = None) -> int:
        """Send a request and return its id."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self._next_id

    def response(self, request_id: int) -> Message:
        """Wait for the response to that id."""
        while True:
            message = self.receive()
            if "method" not in message and message.get("id") == request_id:
                return message
            self.take(message)

    def notify(self, method: str, params: Optional[Message] = None) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    def wait_for(self, method: str) -> Message:
        """Wait for a notification or request of the server's."""
        while True:
            message = self.receive()
            self.take(message)
            if message.get("method") == method:
                return message

    def take(self, message: Message) -> None:
        """Remember a message, and answer it if it is a request that we have an answer for."""
        self.heard.append(message)
        answer = self._answers.get(message.get("method", ""))
        if "id" in message and answer is not None:
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer(message.get("params", {}))})

    def send(self, message: Any) -> None:
        """Write one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def receive(self) -> Message:
        """The next message; fails with the server's stderr if the server ends or stays silent."""
        try:
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise AssertionError("no answer in %d s; stderr: %s" % (ANSWER_SECONDS, self._tail())) from None
        if line is None:
            raise AssertionError("the server ended; stderr: %s" % self._tail())
        return dict(json.loads(line))

    def _tail(self) -> str:
        return b"".join(self._stderr)[-2000:].decode(errors="replace")

    def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._stderr.append(line)
