"""Messages as lines: one JSON text on each, on standard input and output (specification, Transports / stdio)."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, Dict, Iterator, Optional

__all__ = ["RpcError", "Wire"]

PARSE_ERROR = -32700


class RpcError(Exception):
    """Answer the request with this error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: Dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.body["data"] = data


class Wire:
    """Reads messages on one thread, writes them from any."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._open = True

    def messages(self) -> Iterator[Any]:
        """What the client sends, until it closes its end."""
        for line in sys.stdin.buffer:
            if line.isspace():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self.answer(None, error={"code": PARSE_ERROR, "message": "this line is no JSON"})
            else:
                yield message

    def answer(self, request_id: Any, **outcome: Any) -> None:
        """Answer a request with ``result=...`` or ``error=...``."""
        self._send({"jsonrpc": "2.0", "id": request_id, **outcome})

    def request(self, request_id: int, method: str, params: Dict[str, Any]) -> None:
        """Ask the client something."""
        self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def notify(self, method: str, params: Optional[Dict[str, Any]] = None) -> None:
        """Tell the client something."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def _send(self, message: Dict[str, Any]) -> None:
        rest = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        with self._writing:  # one line at a time, whole
            while rest and self._open:
                try:
                    rest = rest[os.write(1, rest) :]
                except OSError:  # the client is gone
                    self._open = False
