"""MCP servers over HTTP for the tests, as behaviours of :class:`~tests.peers.http.HttpPeer`: legacy, modern, older."""

from __future__ import annotations

import itertools
import queue
import threading
from typing import Any, Callable, Dict, List, Optional

from tests.peers.http import Exchange, tool_result

__all__ = ["Legacy", "Modern", "Older", "tool"]

Tool = Callable[[Exchange, Dict[str, Any]], None]
Probe = Callable[[Exchange], None]


def tool(name: str = "work") -> Dict[str, Any]:
    """How a listing has it."""
    return {"name": name, "inputSchema": {"type": "object"}}


def refuse(status: int, body: Any = b"", content_type: str = "text/plain") -> Probe:
    """Answers any request with this."""
    return lambda exchange: exchange.respond(status, body, content_type)


class _Server:
    """What the three have in common.

    :param work: what a tool call does; else its result is the text ``done``
    :param special: for any other method: what is done in place of an answer
    """

    def __init__(self, work: Optional[Tool] = None, **special: Tool) -> None:
        self.work = work
        self.special = {name.replace("__", "/"): act for name, act in special.items()}
        self.lock = threading.Lock()
        self.cancelled: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def result(self, message: Dict[str, Any]) -> Dict[str, Any]:
        """Of a method that needs no thought."""
        return {
            "tools/list": {"tools": [tool()]},
            "resources/list": {"resources": []},
            "prompts/list": {"prompts": []},
            "resources/templates/list": {"resourceTemplates": []},
            "tools/call": tool_result(),
        }.get(message["method"], {})


class Legacy(_Server):
    """Streamable HTTP of 2025-11-25, with sessions. A probe is answered with 404 unless one is given.

    :param probed: what it does with ``server/discover``
    :param sessions: whether it makes them
    :param stream: whether it has a GET stream
    :ivar known: the sessions that are open
    :ivar initialized: how many were made
    """

    def __init__(
        self,
        work: Optional[Tool] = None,
        *,
        probed: Optional[Probe] = None,
        sessions: bool = True,
        stream: bool = False,
        **special: Tool,
    ) -> None:
        super().__init__(work, **special)
        self.probed = probed or refuse(404, "<html>nothing here</html>", "text/html")
        self.sessions = sessions
        self.stream = stream
        self.known: List[str] = []
        self.initialized = 0
        self.deleted: List[str] = []
        self.out: queue.SimpleQueue[Optional[Dict[str, Any]]] = queue.SimpleQueue()

    def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "GET":
            self._get(exchange)
            return
        session = request.headers.get("mcp-session-id")
        if request.method == "DELETE":
            with self.lock:
                self.deleted.append(session or "")
            exchange.respond(204, b"")
            return
        message = request.message
        method = message.get("method")
        if method == "server/discover":
            self.probed(exchange)
        elif method == "initialize":
            self._initialize(exchange, message)
        elif self.sessions and session not in self.known:
            exchange.respond(404, "unknown session", "text/plain")
        elif method is None or "id" not in message:
            if method == "notifications/cancelled":
                self.cancelled.put(message["params"]["requestId"])
            self.told(message)
            exchange.respond(202, b"", None)
        elif method in self.special:
            self.special[method](exchange, message)
        elif method == "tools/call" and self.work is not None:
            self.work(exchange, message)
        else:
            exchange.result(self.result(message))

    def told(self, message: Dict[str, Any]) -> None:
        """A notification, or an answer to a request of the server's."""

    def forget_sessions(self) -> None:
        """As after a restart."""
        with self.lock:
            self.known = []

    def _initialize(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        if "initialize" in self.special:
            self.special["initialize"](exchange, message)
            return
        headers = {}
        with self.lock:
            self.initialized += 1
            if self.sessions:
                self.known.append("session-%d" % self.initialized)
                headers["Mcp_Session_Id"] = self.known[-1]
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "legacy", "version": "1"},
        }
        exchange.result(result, **headers)

    def _get(self, exchange: Exchange) -> None:
        if not self.stream:
            exchange.respond(405, b"")
            return
        exchange.start()
        exchange.write(b": here\n\n")
        while not exchange.wait_closed(0.01):
            try:
                message = self.out.get_nowait()
            except queue.Empty:
                continue
            if message is None:
                exchange.end()
                return
            exchange.event(message)


class Modern(_Server):
    """Streamable HTTP of 2026-07-28."""

    def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method != "POST":
            exchange.respond(405, b"")
            return
        message = request.message
        method = message.get("method")
        if method in self.special:
            self.special[method](exchange, message)
        elif method == "tools/call" and self.work is not None:
            self.work(exchange, message)
        elif method == "initialize":
            error = {"code": -32601, "message": "no initialize here"}
            exchange.respond(404, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif method == "server/discover":
            exchange.result(self.discovered())
        else:
            exchange.result({"resultType": "complete", **self.listing(method), **self.result(message)})

    def listing(self, method: str) -> Dict[str, Any]:
        """What listings say about how long they may be kept."""
        return {"ttlMs": 0, "cacheScope": "private"} if method.endswith("/list") else {}

    def discovered(self) -> Dict[str, Any]:
        """The answer to the probe."""
        return {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "modern", "version": "1"},
            "ttlMs": 0,
            "cacheScope": "private",
        }


class Older(_Server):
    """HTTP+SSE of 2024-11-05.

    :param status: of a POST to the stream's URL
    :param refusal: the body of that
    :ivar streams: how many were opened
    """

    def __init__(self, work: Optional[Tool] = None, *, status: int = 405, refusal: Any = b"", **special: Tool) -> None:
        super().__init__(work, **special)
        self.status = status
        self.refusal = refusal
        self.streams: List[queue.SimpleQueue[Optional[Dict[str, Any]]]] = []
        self._numbers = itertools.count()

    def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "GET":
            self._stream(exchange)
        elif request.method != "POST" or "/messages/" not in request.path:
            exchange.respond(self.status, self.refusal)
        else:
            exchange.respond(202, "Accepted", "text/plain")
            self._received(exchange, int(request.path.rpartition("/")[2]))

    def _stream(self, exchange: Exchange) -> None:
        out: queue.SimpleQueue[Optional[Dict[str, Any]]] = queue.SimpleQueue()
        with self.lock:
            number = next(self._numbers)
            self.streams.append(out)
        exchange.start()
        exchange.event("/messages/%d" % number, event="endpoint")
        while not exchange.wait_closed(0.005):
            try:
                message = out.get_nowait()
            except queue.Empty:
                continue
            if message is None:
                break
            exchange.event(message, event="message")
        exchange.close()

    def _received(self, exchange: Exchange, number: int) -> None:
        message = exchange.request.message
        if message.get("method") == "notifications/cancelled":
            self.cancelled.put(message["params"]["requestId"])
        if "id" not in message or "method" not in message:
            return
        if message["method"] in self.special:
            self.special[message["method"]](exchange, message)
            return
        if message["method"] == "tools/call" and self.work is not None:
            self.work(exchange, message)
            return
        result = self.result(message)
        if message["method"] == "initialize":
            result = {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "older", "version": "1"},
            }
        self.streams[number].put({"jsonrpc": "2.0", "id": message["id"], "result": result})
